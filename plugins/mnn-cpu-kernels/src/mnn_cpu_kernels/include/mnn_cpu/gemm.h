// The one matrix product: C[M][N] = A[M][K] * B[K][N], B packed in panels of kPanel columns, A read where it lies.
#pragma once
#include "call.h"

namespace mnn {
namespace MNN_ISA {

constexpr int kVecs = 2;                           // vectors in a panel
constexpr int64_t kPanel = kVecs * kLanes;         // columns in a panel
constexpr int kRows = MNN_VLEN == 16 ? 14 : 6;     // rows of a tile: kRows * kVecs accumulators fill the registers

static inline int64_t packed_size(int64_t k, int64_t n) { return ceil_div(n, kPanel) * kPanel * k; }

// Packs panels [first, last) of B, whose element (k, n) is b[k * step_k + n * step_n]; columns past n are 0.
static inline void pack_panels(const float *b, int64_t step_k, int64_t step_n, int64_t k, int64_t n, float *packed, int64_t first,
                               int64_t last) {
  for (int64_t p = first; p < last; ++p) {
    float *to = packed + p * kPanel * k;
    const int64_t column = p * kPanel, width = min64(kPanel, n - column);
    for (int64_t i = 0; i < k; ++i, to += kPanel) {
      const float *from = b + i * step_k + column * step_n;
      if (step_n == 1) memcpy(to, from, size_t(width) * 4);
      else for (int64_t j = 0; j < width; ++j) to[j] = from[j * step_n];
      for (int64_t j = width; j < kPanel; ++j) to[j] = 0;
    }
  }
}

// One tile: R rows of A times a panel.
template <int R>
static inline void gemm_tile(int64_t k, const float *a, int64_t a_row, int64_t a_k, const float *panel, vf acc[R][kVecs]) {
  MNN_UNROLL for (int i = 0; i < R; ++i) MNN_UNROLL for (int j = 0; j < kVecs; ++j) acc[i][j] = vf{};
  for (int64_t p = 0; p < k; ++p, panel += kPanel, a += a_k) {
    vf b[kVecs];
    MNN_UNROLL for (int j = 0; j < kVecs; ++j) b[j] = load(panel + j * kLanes);
    MNN_UNROLL for (int i = 0; i < R; ++i) {
      const vf v = dup(a[i * a_row]);
      MNN_UNROLL for (int j = 0; j < kVecs; ++j) acc[i][j] = fma(v, b[j], acc[i][j]);
    }
  }
}

struct Gemm {
  int64_t m, n, k;
  const float *a;
  int64_t a_row, a_k;
  const float *packed;  // panels of B
  float *c;
  int64_t c_row;
  const float *bias;  // one for each column, or NULL
  bool accumulate;    // add to C
};

// Bias, what C holds if it accumulates, and the store of a tile.
template <int R> static inline void gemm_store(const Gemm &g, int64_t row, int64_t panel, const vf acc[R][kVecs]) {
  const int64_t column = panel * kPanel;
  MNN_UNROLL for (int j = 0; j < kVecs; ++j) {
    const int64_t width = min64(kLanes, g.n - column - j * kLanes);
    if (width <= 0) break;
    const vf bias = !g.bias ? vf{} : width == kLanes ? load(g.bias + column + j * kLanes) : load_tail(g.bias + column + j * kLanes, width);
    MNN_UNROLL for (int i = 0; i < R; ++i) {
      float *to = g.c + (row + i) * g.c_row + column + j * kLanes;
      vf v = acc[i][j] + bias;
      if (width == kLanes) {
        if (g.accumulate) v += load(to);
        store(to, v);
      } else {
        if (g.accumulate) v += load_tail(to, width);
        store_tail(to, v, width);
      }
    }
  }
}

template <int R> static inline void gemm_rows(const Gemm &g, int64_t row, int64_t panel) {
  vf acc[R][kVecs];
  gemm_tile<R>(g.k, g.a + row * g.a_row, g.a_row, g.a_k, g.packed + panel * kPanel * g.k, acc);
  gemm_store<R>(g, row, panel, acc);
}

// One row times kWide panels: with one panel the sums would wait for each other. The order of the sums is that of a tile.
constexpr int kWide = 4;
static inline void gemm_wide(const Gemm &g, int64_t panel) {
  vf acc[kWide][1][kVecs] = {};
  const float *b = g.packed + panel * kPanel * g.k;
  for (int64_t p = 0; p < g.k; ++p, b += kPanel) {
    const vf v = dup(g.a[p * g.a_k]);
    MNN_UNROLL for (int i = 0; i < kWide; ++i)
      MNN_UNROLL for (int j = 0; j < kVecs; ++j) acc[i][0][j] = fma(v, load(b + i * kPanel * g.k + j * kLanes), acc[i][0][j]);
  }
  for (int i = 0; i < kWide; ++i) gemm_store<1>(g, 0, panel + i, acc[i]);
}

template <int R> static inline void gemm_rest(const Gemm &g, int64_t row, int64_t rows, int64_t panel) {
  if constexpr (R > 0) {
    if (rows == R) gemm_rows<R>(g, row, panel);
    else gemm_rest<R - 1>(g, row, rows, panel);
  }
}

// Rows [begin, end) of one panel.
static inline void gemm_panel(const Gemm &g, int64_t begin, int64_t end, int64_t panel) {
  int64_t row = begin;
  for (; row + kRows <= end; row += kRows) gemm_rows<kRows>(g, row, panel);
  gemm_rest<kRows - 1>(g, row, end - row, panel);
}

// A product cut into pieces of about equal work: piece i of `gemm_pieces`.
constexpr int64_t kRowsPerPiece = kRows * 4;
static inline int64_t gemm_pieces(const Gemm &g) {
  const int64_t panels = ceil_div(g.n, kPanel);
  return g.m == 1 ? ceil_div(panels, kWide) : ceil_div(g.m, kRowsPerPiece) * panels;
}
// Pieces that are worth a thread.
static inline int64_t gemm_grain(const Gemm &g) {
  return grain_for((g.m == 1 ? kWide : min64(g.m, kRowsPerPiece)) * kPanel * max64(g.k, 1) / 8);
}
static inline void gemm_piece(const Gemm &g, int64_t i) {
  if (g.m == 1) {
    const int64_t first = i * kWide, last = min64(ceil_div(g.n, kPanel), first + kWide);
    if (last - first == kWide) gemm_wide(g, first);
    else for (int64_t panel = first; panel < last; ++panel) gemm_rows<1>(g, 0, panel);
    return;
  }
  const int64_t blocks = ceil_div(g.m, kRowsPerPiece), panel = i / blocks, block = i % blocks;
  gemm_panel(g, block * kRowsPerPiece, min64(g.m, (block + 1) * kRowsPerPiece), panel);
}

}  // namespace MNN_ISA
}  // namespace mnn

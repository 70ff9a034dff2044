// int8.MatMul: products of bytes; a constant right side is packed once.
#pragma once
#include "int8_tile.h"

namespace mnn {
namespace MNN_ISA {

struct ByteMatMul {
  int64_t m, n, k, batch;
  int64_t b_k, b_n;
  int64_t units, columns;    // units of a row; columns padded to whole panels
  int32_t *packed, *sums;    // panels and the sum of each column; NULL: made in every run, in scratch
  bool direct;               // the left side is read where it lies
  bool zeros;                // the right side has zero points
  Finish finish;
};

// Packs columns of one right matrix, 0..k-1 x 0..n-1, as -128..127, and sums them.
static void pack_bytes(const mnn_tensor &b, int64_t first, const ByteMatMul &s, int32_t *packed, int32_t *sums, int64_t panel0, int64_t panel1) {
  const uint8_t *from = static_cast<const uint8_t *>(b.data) + first;
  const uint8_t flip = uint8_t(128 - to_unsigned(b));
  for (int64_t p = panel0; p < panel1; ++p) {
    unit_right *to = reinterpret_cast<unit_right *>(packed + p * s.units * kBytePanel);
    for (int64_t j = 0; j < kBytePanel; ++j) sums[p * kBytePanel + j] = 0;
    for (int64_t u = 0; u < s.units; ++u)
      for (int64_t j = 0; j < kBytePanel; ++j)
        for (int64_t e = 0; e < kUnit; ++e) {
          const int64_t k = u * kUnit + e, n = p * kBytePanel + j;
          const int8_t v = k < s.k && n < s.n ? int8_t(from[k * s.b_k + n * s.b_n] ^ flip) : int8_t(0);
          to[(u * kBytePanel + j) * kUnit + e] = v;
          sums[n] += v;
        }
  }
}

static int byte_matmul_prepare(mnn_call *c) {
  const mnn_tensor &a = c->in[0], &b = c->in[1];
  if (!is_byte(a) || !is_byte(b) || a.rank < 1 || b.rank < 2) return c->fail(c, "not a product of bytes");
  ByteMatMul *s = new_state<ByteMatMul>(c);
  if (!s) return no_memory(c);
  if (const char *why = finish_of(c, 4, s->finish)) return c->fail(c, why);
  const bool flip = attr_int(c, "transposeB");
  s->k = b.shape[b.rank - (flip ? 1 : 2)], s->n = b.shape[b.rank - (flip ? 2 : 1)];
  s->b_k = flip ? 1 : s->n, s->b_n = flip ? s->k : 1;
  s->batch = count(b, 0, b.rank - 2);
  if (b.rank == 2) s->batch = 1, s->m = count(a, 0, a.rank - 1);
  else {
    if (a.rank != b.rank) return c->fail(c, "batches that broadcast");
    for (int32_t d = 0; d < a.rank - 2; ++d)
      if (a.shape[d] != b.shape[d]) return c->fail(c, "batches that broadcast");
    s->m = a.shape[a.rank - 2];
  }
  if (s->k < 1 || s->k > 65536) return c->fail(c, "an inner dimension that is 0 or very large");
  s->units = ceil_div(s->k, kUnit), s->columns = ceil_div(s->n, kBytePanel) * kBytePanel;
  s->direct = kUnit == 4 && s->k % 4 == 0 && a.dtype.code == MNN_UINT;
  s->zeros = present(c, 3);
  const size_t matrix = size_t(s->units * s->columns) * 4;
  if (b.data && matrix) {
    int fresh = 0;
    s->packed = static_cast<int32_t *>(c->shared(c, 1, flip ? (kUnit == 4 ? "bytes4_t" : "bytes2_t") : (kUnit == 4 ? "bytes4" : "bytes2"),
                                                 (matrix + size_t(s->columns) * 4) * size_t(s->batch), &fresh));
    if (!s->packed) return no_memory(c);
    s->sums = s->packed + s->batch * s->units * s->columns;
    if (fresh)
      for (int64_t i = 0; i < s->batch; ++i)
        pack_bytes(b, i * s->k * s->n, *s, s->packed + i * s->units * s->columns, s->sums + i * s->columns, 0, s->columns / kBytePanel);
  } else {
    c->scratch_bytes += (matrix + size_t(s->columns) * 4) * size_t(s->batch);
  }
  c->scratch_bytes += columns_bytes(s->columns * s->batch) + size_t(s->columns) * 4;      // the columns, and zero points of the right side
  c->scratch_bytes += size_t(s->batch * s->m) * 4;                                       // sums of rows
  if (!s->direct) c->scratch_bytes += size_t(s->batch * s->m * s->units) * 4;
  return 0;
}

struct ByteProduct {
  const ByteMatMul *s;
  const int32_t *a, *w, *row_sums, *zeros;
  Columns columns;
  void *out;
};
template <int P, class T> static inline void byte_rows(const ByteProduct &g, int64_t row, int64_t panel) {
  const ByteMatMul &s = *g.s;
  vi acc[P][2];
  byte_tile<P, 2>({g.a + row * s.units, g.w + panel * s.units * kBytePanel, 1, s.units, 0, 0, 0, s.units, 1, 1}, acc);
  MNN_UNROLL for (int j = 0; j < 2; ++j) {
    const int64_t column = panel * kBytePanel + j * kLanes, n = s.n - column;
    if (n <= 0) return;
    const vi bias = load(g.columns.bias + column);
    const vf scale = load(g.columns.scale + column), shift = load(g.columns.shift + column);
    MNN_UNROLL for (int i = 0; i < P; ++i) {
      vi total = acc[i][j] + bias;
      if (s.zeros) total -= load(g.zeros + column) * dup(g.row_sums[row + i]);
      put(s.finish, static_cast<T *>(g.out) + (row + i) * s.n + column, total, scale, shift, n);
    }
  }
}
template <int P, class T> static inline void byte_rest(const ByteProduct &g, int64_t row, int64_t rows, int64_t panel) {
  if constexpr (P > 0) {
    if (rows == P) byte_rows<P, T>(g, row, panel);
    else byte_rest<P - 1, T>(g, row, rows, panel);
  }
}

static int byte_matmul_run(const mnn_call *c) {
  const ByteMatMul &s = state<ByteMatMul>(c);
  const mnn_tensor &a = c->in[0], &b = c->in[1];
  char *at = static_cast<char *>(c->scratch);
  const auto take = [&](size_t bytes) { char *p = at; at += bytes; return reinterpret_cast<int32_t *>(p); };
  const Columns columns = columns_at(take(columns_bytes(s.columns * s.batch)), s.columns * s.batch);
  int32_t *zeros = take(size_t(s.columns) * 4);
  int32_t *packed = s.packed, *sums = s.sums;
  const int64_t panels = s.columns / kBytePanel;
  if (!packed) {
    packed = take(size_t(s.batch * s.units * s.columns) * 4), sums = take(size_t(s.batch * s.columns) * 4);
    parallel(c, s.batch * panels, grain_for(s.k * kBytePanel * 4), [&](int64_t begin, int64_t end, int32_t) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / panels, panel = i % panels;
        pack_bytes(b, n * s.k * s.n, s, packed + n * s.units * s.columns, sums + n * s.columns, panel, panel + 1);
      }
    });
  }
  // Zero points of the numbers as they are multiplied: 0..255 on the left, -128..127 on the right.
  const int32_t za = (present(c, 2) ? byte_at(c->in[2], 0) : 0) + to_unsigned(a);
  const int32_t shift_b = to_unsigned(b) - 128;
  const bool each = s.zeros && count(c->in[3]) > 1;
  for (int64_t n = 0; n < s.columns; ++n)
    zeros[n] = n >= s.n ? 0 : (s.zeros ? byte_at(c->in[3], each ? n : 0) : 0) + shift_b;
  for (int64_t i = 0; i < s.batch; ++i)
    for (int64_t n = 0; n < s.n; ++n) {
      const uint32_t away = uint32_t(za) * (uint32_t(sums[i * s.columns + n]) - uint32_t(s.k) * uint32_t(zeros[n]));
      fill_column(c, s.finish, 4, n, columns, i * s.columns + n, int32_t(0u - away));
    }
  const int64_t rows = s.batch * s.m;
  int32_t *row_sums = take(size_t(rows) * 4);
  const int32_t *left = in<int32_t>(c, 0);
  const bool sum_rows = s.zeros || shift_b;
  if (!s.direct || sum_rows) {
    int32_t *copy = s.direct ? nullptr : take(size_t(rows * s.units) * 4);
    parallel(c, rows, grain_for(s.k / 8), [&](int64_t begin, int64_t end, int32_t) {
      for (int64_t i = begin; i < end; ++i) {
        const uint8_t *from = in<uint8_t>(c, 0) + i * s.k;
        if (copy) {
          row_sums[i] = left_row(from, s.k, to_unsigned(a), reinterpret_cast<unit_left *>(copy + i * s.units), s.units * kUnit);
        } else {
          uint32_t sum = 0;
          for (int64_t k = 0; k < s.k; ++k) sum += from[k];
          row_sums[i] = int32_t(sum);
        }
      }
    });
    if (copy) left = copy;
  }
  ByteMatMul with = s;
  with.zeros = sum_rows;
  constexpr int64_t kPiece = kByteRows * 4;
  const int64_t pieces = ceil_div(s.m, kPiece);
  for_type(s.finish.made, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel(c, s.batch * panels * pieces, grain_for(min64(s.m, kPiece) * kBytePanel * s.units / 8), [&](int64_t begin, int64_t end, int32_t) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t piece = i % pieces, panel = i / pieces % panels, n = i / pieces / panels;
        const Columns mine = {columns.bias + n * s.columns, columns.scale + n * s.columns, columns.shift + n * s.columns};
        const ByteProduct g = {&with, left + n * s.m * s.units, packed + n * s.units * s.columns, row_sums + n * s.m, zeros, mine,
                               out<T>(c, 0) + n * s.m * s.n};
        int64_t row = piece * kPiece;
        const int64_t last = min64(s.m, row + kPiece);
        for (; row + kByteRows <= last; row += kByteRows) byte_rows<kByteRows, T>(g, row, panel);
        byte_rest<kByteRows - 1, T>(g, row, last - row, panel);
      }
    });
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

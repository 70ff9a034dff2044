// MatMul: batched, broadcast, with transposes and a bias; a constant right side is packed once.
#pragma once
#include "gemm.h"

namespace mnn {
namespace MNN_ISA {

constexpr int32_t kMaxBatch = 8;

struct MatMul {
  int64_t m, n, k, batch, b_batch;  // b_batch: how many right matrices are packed
  int64_t a_row, a_k, b_k, b_n;
  int32_t rank;
  int64_t size[kMaxBatch], a[kMaxBatch], b[kMaxBatch];  // batch dimensions, and which matrix each operand takes
  float *packed;                                        // NULL: packed in every run
  bool has_bias;
  int64_t a_padded;  // row length of a copy of the left side in scratch; 0: it is read where it lies
};

static int matmul_prepare(mnn_call *c) {
  const mnn_tensor &a = c->in[0], &b = c->in[1];
  if (c->n_in > 3) return c->fail(c, "the quantised form of MatMul has no native kernel");
  const bool ta = attr_int(c, "transposeA") || attr_int(c, "adjX"), tb = attr_int(c, "transposeB") || attr_int(c, "adjY");
  const int64_t a_shape[2] = {1, a.rank == 1 ? a.shape[0] : 0}, b_shape[2] = {b.rank == 1 ? b.shape[0] : 0, 1};
  const int64_t *sa = a.rank == 1 ? a_shape : a.shape + a.rank - 2, *sb = b.rank == 1 ? b_shape : b.shape + b.rank - 2;
  if (a.rank < 1 || b.rank < 1) return c->fail(c, "scalar operands");
  const bool flip_a = ta && a.rank > 1, flip_b = tb && b.rank > 1;
  MatMul *s = new_state<MatMul>(c);
  if (!s) return no_memory(c);
  s->m = sa[flip_a ? 1 : 0], s->k = sa[flip_a ? 0 : 1], s->n = sb[flip_b ? 0 : 1];
  if (sb[flip_b ? 1 : 0] != s->k) return c->fail(c, "inner dimensions differ");
  s->a_row = flip_a ? 1 : s->k, s->a_k = flip_a ? s->m : 1;
  s->b_k = flip_b ? 1 : s->n, s->b_n = flip_b ? s->k : 1;
  const int32_t ra = a.rank > 2 ? a.rank - 2 : 0, rb = b.rank > 2 ? b.rank - 2 : 0;
  s->rank = ra > rb ? ra : rb;
  if (s->rank > kMaxBatch) return c->fail(c, "too many batch dimensions");
  s->batch = 1, s->b_batch = rb ? count(b, 0, rb) : 1;
  int64_t step_a = 1, step_b = 1;
  for (int32_t d = s->rank - 1; d >= 0; --d) {
    const int64_t na = d - (s->rank - ra) >= 0 ? a.shape[d - (s->rank - ra)] : 1;
    const int64_t nb = d - (s->rank - rb) >= 0 ? b.shape[d - (s->rank - rb)] : 1;
    if (na != nb && na != 1 && nb != 1) return c->fail(c, "batch dimensions do not broadcast");
    s->size[d] = na == 1 ? nb : na;
    s->a[d] = na == 1 ? 0 : step_a, s->b[d] = nb == 1 ? 0 : step_b;
    step_a *= na, step_b *= nb, s->batch *= s->size[d];
  }
  // A left batch over one right matrix is one tall product.
  if (s->b_batch == 1 && !flip_a && s->batch > 1 && step_a == s->batch) s->m *= s->batch, s->batch = 1, s->rank = 0;
  // Rows a multiple of a page apart fall into the same few lines of the cache: read from a copy with other distances.
  if (!flip_a && s->k % 1024 == 0 && s->k && s->m >= 4 * kRows && s->n >= 2 * kPanel) s->a_padded = s->k + 16;
  s->has_bias = present(c, 2);
  if (s->has_bias && count(c->in[2]) != s->n) return c->fail(c, "the bias is not one for each column");
  const size_t bytes = size_t(packed_size(s->k, s->n) * s->b_batch) * 4;
  if (b.data && bytes) {
    int fresh = 0;
    s->packed = static_cast<float *>(c->shared(c, 1, flip_b ? "gemm_t" : "gemm", bytes, &fresh));
    if (!s->packed) return no_memory(c);
    if (fresh)
      for (int64_t i = 0; i < s->b_batch; ++i)
        pack_panels(in<float>(c, 1) + i * s->k * s->n, s->b_k, s->b_n, s->k, s->n, s->packed + i * packed_size(s->k, s->n), 0,
                    ceil_div(s->n, kPanel));
  } else {
    c->scratch_bytes = bytes;
  }
  if (s->a_padded) c->scratch_bytes += size_t(count(a) / s->k * s->a_padded) * 4;
  return 0;
}

static int matmul_run(const mnn_call *c) {
  const MatMul &s = state<MatMul>(c);
  const int64_t panels = ceil_div(s.n, kPanel), one = packed_size(s.k, s.n);
  if (!s.m || !s.n || !s.batch) return 0;
  float *scratch = static_cast<float *>(c->scratch);
  const float *packed = s.packed ? s.packed : scratch;
  if (!s.packed && s.k)
    parallel(c, s.b_batch * panels, grain_for(s.k * kPanel), [&](int64_t b, int64_t e, int32_t) {
      for (int64_t i = b; i < e; ++i)
        pack_panels(in<float>(c, 1) + i / panels * s.k * s.n, s.b_k, s.b_n, s.k, s.n, scratch + i / panels * one, i % panels, i % panels + 1);
    });
  const float *a = in<float>(c, 0);
  const int64_t a_row = s.a_padded ? s.a_padded : s.a_row, a_matrix = s.m * (s.a_padded ? s.a_padded : s.k);
  if (s.a_padded) {
    float *copy = scratch + (s.packed ? 0 : one * s.b_batch);
    parallel(c, count(c->in[0]) / s.k, grain_for(s.k), [&](int64_t b, int64_t e, int32_t) {
      for (int64_t i = b; i < e; ++i) memcpy(copy + i * s.a_padded, in<float>(c, 0) + i * s.k, size_t(s.k) * 4);
    });
    a = copy;
  }
  const float *bias = s.has_bias ? in<float>(c, 2) : nullptr;
  const Gemm shape{s.m, s.n, s.k, nullptr, a_row, s.a_k, nullptr, nullptr, s.n, bias, false};
  const int64_t pieces = gemm_pieces(shape);
  parallel(c, s.batch * pieces, gemm_grain(shape), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t batch = i / pieces;
      int64_t ia = 0, ib = 0, rest = batch;
      for (int32_t d = s.rank - 1; d >= 0; --d) {
        ia += rest % s.size[d] * s.a[d], ib += rest % s.size[d] * s.b[d];
        rest /= s.size[d];
      }
      Gemm g = shape;
      g.a = a + ia * a_matrix, g.packed = packed + ib * one, g.c = out<float>(c, 0) + batch * s.m * s.n;
      gemm_piece(g, i % pieces);
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

/* A kernel library for tests: blocks of 4 channels, and NaN in the lanes past the last channel. */
#include <math.h>
#include <string.h>
#include "mnn/kernel.h"

#define BLOCK 4

static int64_t stored(const mnn_tensor *t) {
  int64_t n = 1;
  for (int d = 0; d < t->rank; d++) n *= t->layout == MNN_BLOCKED && d == 1 ? (t->shape[d] + BLOCK - 1) / BLOCK * BLOCK : t->shape[d];
  return n;
}

static int neg(const mnn_call *c) {
  const float *x = c->in[0].data;
  float *y = c->out[0].data;
  for (int64_t i = 0, n = stored(c->out); i < n; i++) y[i] = -x[i];
  return 0;
}

static int add(const mnn_call *c) {
  const float *a = c->in[0].data, *b = c->in[1].data;
  float *y = c->out[0].data;
  for (int64_t i = 0, n = stored(c->out); i < n; i++) y[i] = a[i] + b[i];
  return 0;
}

static int mul(const mnn_call *c) {
  const float *a = c->in[0].data, *b = c->in[1].data;
  float *y = c->out[0].data;
  for (int64_t i = 0, n = stored(c->out); i < n; i++) y[i] = a[i] * b[i];
  return 0;
}

static int same_shapes(mnn_call *c) {
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (c->in[i].rank != c->out->rank) return c->fail(c, "ranks differ");
    for (int d = 0; d < c->out->rank; d++)
      if (c->in[i].shape[d] != c->out->shape[d]) return c->fail(c, "shapes differ");
  }
  return 0;
}

static int convert(const mnn_call *c) {
  const mnn_tensor *from = c->in, *to = c->out;
  int64_t n = from->shape[0], ch = from->shape[1], inner = 1, blocks = (ch + BLOCK - 1) / BLOCK;
  for (int d = 2; d < from->rank; d++) inner *= from->shape[d];
  const float *x = from->data;
  float *y = to->data;
  for (int64_t b = 0; b < n; b++)
    for (int64_t k = 0; k < blocks * BLOCK; k++)
      for (int64_t s = 0; s < inner; s++) {
        int64_t blocked = ((b * blocks + k / BLOCK) * inner + s) * BLOCK + k % BLOCK, plain = (b * ch + k) * inner + s;
        if (to->layout == MNN_BLOCKED) y[blocked] = k < ch ? x[plain] : NAN;
        else if (k < ch) y[plain] = x[blocked];
      }
  return 0;
}

static const mnn_kernel kernels[] = {
  {"mul_b", "test.Mul", "f32,f32->f32", "", "b,b->b", 1, same_shapes, mul},
  {"add_f", "test.Add", "f32,f32->f32", "", "f,f->f", 3, same_shapes, add},
  {"neg_f", "test.Neg", "f32->f32", "", "f->f", 1, NULL, neg},
  {"to_blocks", "ConvertLayout", "f32->f32", "", "p->b", 0, NULL, convert},
  {"from_blocks", "ConvertLayout", "f32->f32", "", "b->p", 0, NULL, convert},
};

static int supports(const char *isa) { return isa[0] == 0; }
static int32_t block(const char *isa) { (void)isa; return BLOCK; }

static const mnn_library library = {MNN_KERNEL_ABI, sizeof(mnn_library), "toy", supports, block,
                                    sizeof kernels / sizeof *kernels, sizeof *kernels, kernels};

const mnn_library *mnn_kernels(void) { return &library; }

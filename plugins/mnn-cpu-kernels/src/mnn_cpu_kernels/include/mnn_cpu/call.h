// Reading a mnn_call: attributes by name, sizes, parallel loops over lambdas.
#pragma once
#include "vec.h"

namespace mnn {
namespace MNN_ISA {

static inline const mnn_attr *attr(const mnn_call *c, const char *name) {
  for (uint32_t i = 0; i < c->n_attr; ++i)
    if (!strcmp(c->attr[i].name, name)) return &c->attr[i];
  return nullptr;
}
static inline int64_t attr_int(const mnn_call *c, const char *name, int64_t otherwise = 0) {
  const mnn_attr *a = attr(c, name);
  return a && a->kind == 'i' ? a->v.i : otherwise;
}
static inline float attr_float(const mnn_call *c, const char *name, float otherwise = 0) {
  const mnn_attr *a = attr(c, name);
  return a ? (a->kind == 'f' ? float(a->v.f) : a->kind == 'i' ? float(a->v.i) : otherwise) : otherwise;
}
static inline const char *attr_text(const mnn_call *c, const char *name) {
  const mnn_attr *a = attr(c, name);
  return a && a->kind == 's' ? a->v.s : "";
}
static inline bool attr_is(const mnn_call *c, const char *name, const char *value) { return !strcmp(attr_text(c, name), value); }

static inline bool present(const mnn_call *c, uint32_t input) { return input < c->n_in && c->in[input].rank >= 0; }

static inline int64_t count(const mnn_tensor &t, int32_t from = 0, int32_t to = -1) {
  int64_t n = 1;
  for (int32_t d = from; d < (to < 0 ? t.rank : to); ++d) n *= t.shape[d];
  return n;
}
// Elements in memory: a blocked tensor has whole blocks.
static inline int64_t stored(const mnn_tensor &t) {
  if (t.layout != MNN_BLOCKED || t.rank < 2) return count(t);
  return t.shape[0] * ((t.shape[1] + t.block - 1) / t.block) * t.block * count(t, 2);
}
static inline bool same_shape(const mnn_tensor &a, const mnn_tensor &b) {
  if (a.rank != b.rank || a.layout != b.layout) return false;
  for (int32_t d = 0; d < a.rank; ++d)
    if (a.shape[d] != b.shape[d]) return false;
  return true;
}
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

template <class T> static inline const T *in(const mnn_call *c, uint32_t i) { return static_cast<const T *>(c->in[i].data); }
template <class T> static inline T *out(const mnn_call *c, uint32_t i) { return static_cast<T *>(c->out[i].data); }

// parallel over a lambda (begin, end, worker).
template <class F> static inline void parallel(const mnn_call *c, int64_t n, int64_t grain, const F &f) {
  c->parallel(c, n, grain, [](void *arg, int64_t b, int64_t e, int32_t w) { (*static_cast<const F *>(arg))(b, e, w); },
              const_cast<F *>(&f));
}
// Items that make a piece of work large enough to be worth a thread, when one item costs `cost` operations.
static inline int64_t grain_for(int64_t cost) { return max64(1, 32768 / max64(1, cost)); }

template <class S> static inline S *new_state(mnn_call *c) {
  S *s = static_cast<S *>(c->alloc(c, sizeof(S)));
  c->state = s;
  return s;
}
template <class S> static inline const S &state(const mnn_call *c) { return *static_cast<const S *>(c->state); }

// A constant with one value for each channel (or one in all), padded to whole blocks; `otherwise` where the input is absent.
static inline float *padded_copy(mnn_call *c, uint32_t input, int64_t channels, float otherwise) {
  float *p = static_cast<float *>(c->alloc(c, size_t(ceil_div(channels, kLanes) * kLanes) * 4));
  if (!p) return nullptr;
  const bool there = present(c, input);
  const int64_t n = there ? count(c->in[input]) : 0;
  for (int64_t i = 0; i < channels; ++i) p[i] = there ? in<float>(c, input)[n == 1 ? 0 : i] : otherwise;
  return p;
}

static inline int no_memory(const mnn_call *c) { return c->fail(c, "out of memory"); }

}  // namespace MNN_ISA
}  // namespace mnn

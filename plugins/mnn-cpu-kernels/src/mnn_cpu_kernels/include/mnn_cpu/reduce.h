// Reduction over any axes of plain tensors.
#pragma once
#include "call.h"
#include "wide.h"

namespace mnn {
namespace MNN_ISA {

constexpr int32_t kReduceRank = 12;

enum class Fold : int32_t { sum, abs_sum, square_sum, max, min, product, any, all };
struct Reduce {
  Fold fold;
  bool mean;
  int32_t outer, inner;  // dimensions that stay and that are folded
  int64_t size[kReduceRank], stride[kReduceRank];    // that stay
  int64_t fsize[kReduceRank], fstride[kReduceRank];  // that are folded
  int64_t n, folded;
};

static int reduce_prepare(mnn_call *c) {
  static const char *const names[] = {"SUM", "ASUM", "SUMSQ", "MAXIMUM", "MINIMUM", "PROD", "ANY", "ALL"};
  Reduce *s = new_state<Reduce>(c);
  if (!s) return no_memory(c);
  const char *name = attr_text(c, "operation");
  s->mean = !strcmp(name, "MEAN");
  int found = s->mean ? 0 : -1;
  for (int i = 0; i < 8; ++i)
    if (!strcmp(names[i], name)) found = i;
  if (found < 0) return c->fail(c, "this reduction has no native kernel");
  if (attr_float(c, "coeff") != 0 && attr_float(c, "coeff") != 1) return c->fail(c, "a coefficient");
  s->fold = Fold(found);
  const mnn_tensor &x = c->in[0];
  if (x.rank > kReduceRank) return c->fail(c, "too many dimensions");
  bool folded[kReduceRank] = {};
  const mnn_attr *dims = attr(c, "dim");
  const auto mark = [&](int64_t d) { if (d < 0) d += x.rank; if (d >= 0 && d < x.rank) folded[d] = true; };
  if (present(c, 1)) {
    if (!c->in[1].data) return c->fail(c, "the axes are not constant");
    for (int64_t i = 0; i < count(c->in[1]); ++i) mark(in<int32_t>(c, 1)[i]);
    if (count(c->in[1]) == 0)
      for (int32_t d = 0; d < x.rank; ++d) folded[d] = true;  // none given: all
  } else if (dims && dims->kind == 'I' && dims->n) {
    for (int32_t i = 0; i < dims->n; ++i) mark(dims->v.ints[i]);
  } else {
    for (int32_t d = 0; d < x.rank; ++d) folded[d] = true;
  }
  s->n = s->folded = 1;
  int64_t step = 1;
  int64_t strides[kReduceRank];
  for (int32_t d = x.rank - 1; d >= 0; --d) strides[d] = step, step *= x.shape[d];
  for (int32_t d = 0; d < x.rank; ++d) {
    if (folded[d]) {
      int32_t &r = s->inner;
      if (r && s->fstride[r - 1] == strides[d] * x.shape[d]) s->fsize[r - 1] *= x.shape[d], s->fstride[r - 1] = strides[d];
      else s->fsize[r] = x.shape[d], s->fstride[r] = strides[d], ++r;
      s->folded *= x.shape[d];
    } else {
      s->size[s->outer] = x.shape[d], s->stride[s->outer] = strides[d], ++s->outer;
      s->n *= x.shape[d];
    }
  }
  if (s->n != count(c->out[0])) return c->fail(c, "an output of another size");
  if (!s->inner) s->inner = 1, s->fsize[0] = 1, s->fstride[0] = 1;
  if (!s->folded && (s->fold == Fold::max || s->fold == Fold::min)) return c->fail(c, "an empty maximum");
  return 0;
}

// Values are folded in double, or int64: long sums stay exact. A fold starts with `start`, and `value` is made of each element first.
template <class W> static inline W fold_start(Fold f, W low, W high) {
  switch (f) {
    case Fold::max: return low;
    case Fold::min: return high;
    case Fold::product: case Fold::all: return 1;
    default: return 0;
  }
}
template <Fold F, class V> static inline V fold_value(V x) {
  if constexpr (F == Fold::abs_sum) return x < 0 ? -x : x;
  else if constexpr (F == Fold::square_sum) return x * x;
  else return x;
}
template <Fold F, class V> static inline V fold_in(V acc, V x) {
  if constexpr (F == Fold::max) return (x > acc) | (x != x) ? x : acc;
  else if constexpr (F == Fold::min) return (x < acc) | (x != x) ? x : acc;
  else if constexpr (F == Fold::product) return acc * x;
  else return acc + x;
}

template <class T> struct Wide { typedef double type; };
template <> struct Wide<int32_t> { typedef int64_t type; };

// n elements, `step` apart.
template <Fold F, class T, class W> static inline W fold_row(const T *x, int64_t n, int64_t step, W acc) {
  if constexpr (F == Fold::any || F == Fold::all) {
    for (int64_t i = 0; i < n; ++i) acc = F == Fold::any ? acc != 0 || x[i * step] != 0 : acc != 0 && x[i * step] != 0;
    return acc;
  } else {
    int64_t i = 0;
    if constexpr (sizeof(T) == sizeof(float) && T(0.5) != T(0)) {
      if (step == 1 && n >= 2 * kLanes) {
        vd sums = widen(load(x));
        sums = fold_value<F>(sums);
        for (i = kLanes; i + kLanes <= n; i += kLanes) sums = fold_in<F>(sums, fold_value<F>(widen(load(x + i))));
        for (int64_t k = 0; k < kLanes; ++k) acc = fold_in<F>(acc, W(sums[k]));
      }
    }
    for (; i < n; ++i) acc = fold_in<F>(acc, fold_value<F>(W(x[i * step])));
    return acc;
  }
}

// Where folded row r, and where result i, begin.
static inline int64_t offset_of(int64_t i, int32_t rank, const int64_t *size, const int64_t *stride) {
  int64_t at = 0;
  for (int32_t d = rank - 1; d >= 0; --d) at += i % size[d] * stride[d], i /= size[d];
  return at;
}

template <Fold F, class T> static void reduce_part(const Reduce &s, const T *x, T *y, int64_t begin, int64_t end) {
  typedef typename Wide<T>::type W;
  constexpr bool real = T(0.5) != T(0);
  const W start = real ? fold_start<W>(F, W(-INFINITY), W(INFINITY)) : fold_start<W>(F, W(INT32_MIN), W(INT32_MAX));
  const int32_t last = s.inner - 1;
  const int64_t rows = s.folded / max64(1, s.fsize[last]);
  const auto result = [&](W acc) { return T(!s.mean ? acc : real ? acc / W(s.folded) : s.folded ? acc / W(s.folded) : W(0)); };
  // Results that lie side by side, as their sources do, are made together.
  const bool columns = real && F != Fold::any && F != Fold::all && s.outer && s.stride[s.outer - 1] == 1 && s.size[s.outer - 1] >= kLanes;
  for (int64_t i = begin; i < end;) {
    const int64_t at = offset_of(i, s.outer, s.size, s.stride);
    if constexpr (real && F != Fold::any && F != Fold::all) {
      if (columns && i + kLanes <= end && i % s.size[s.outer - 1] + kLanes <= s.size[s.outer - 1]) {
        vd acc = vd{} + start;
        for (int64_t r = 0; r < rows; ++r) {
          const T *from = x + at + offset_of(r, last, s.fsize, s.fstride);
          for (int64_t k = 0; k < s.fsize[last]; ++k) acc = fold_in<F>(acc, fold_value<F>(widen(load(from + k * s.fstride[last]))));
        }
        for (int64_t k = 0; k < kLanes; ++k) y[i + k] = result(acc[k]);
        i += kLanes;
        continue;
      }
    }
    W acc = start;
    for (int64_t r = 0; r < rows; ++r)
      acc = fold_row<F>(x + at + offset_of(r, last, s.fsize, s.fstride), s.fsize[last], s.fstride[last], acc);
    y[i++] = result(acc);
  }
}

template <class T> static int reduce_run(const mnn_call *c) {
  const Reduce &s = state<Reduce>(c);
  static constexpr void (*parts[])(const Reduce &, const T *, T *, int64_t, int64_t) = {
      reduce_part<Fold::sum, T>, reduce_part<Fold::abs_sum, T>, reduce_part<Fold::square_sum, T>, reduce_part<Fold::max, T>,
      reduce_part<Fold::min, T>, reduce_part<Fold::product, T>, reduce_part<Fold::any, T>, reduce_part<Fold::all, T>};
  parallel(c, ceil_div(s.n, kLanes), grain_for(s.folded * kLanes), [&](int64_t b, int64_t e, int32_t) {
    parts[int32_t(s.fold)](s, in<T>(c, 0), out<T>(c, 0), b * kLanes, min64(e * kLanes, s.n));
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

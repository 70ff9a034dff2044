// Reduction, Softmax, LayerNorm: loops over an axis, or several, of plain tensors.
#pragma once
#include "call.h"
#include "math.h"

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
  if (!s->inner) s->inner = 1, s->fsize[0] = 1, s->fstride[0] = 1;
  if (!s->folded && (s->fold == Fold::max || s->fold == Fold::min)) return c->fail(c, "an empty maximum");
  return 0;
}

// Vectors of kLanes partial results, then the rest. Sums of floats are kept in double so that long ones stay exact.
template <class T> static inline T fold_start(Fold f) {
  switch (f) {
    case Fold::max: return T(sizeof(T) && T(0.5) == T(0) ? T(INT32_MIN) : T(-INFINITY));
    case Fold::min: return T(T(0.5) == T(0) ? T(INT32_MAX) : T(INFINITY));
    case Fold::product: case Fold::all: return T(1);
    default: return T(0);
  }
}
template <class T> struct Wide { typedef double type; };
template <> struct Wide<int32_t> { typedef int64_t type; };

template <class T> static inline typename Wide<T>::type fold_row(Fold f, const T *x, int64_t n, int64_t step, typename Wide<T>::type acc) {
  typedef typename Wide<T>::type W;
  switch (f) {
    case Fold::sum: for (int64_t i = 0; i < n; ++i) acc += W(x[i * step]); break;
    case Fold::abs_sum: for (int64_t i = 0; i < n; ++i) acc += W(x[i * step] < 0 ? -x[i * step] : x[i * step]); break;
    case Fold::square_sum: for (int64_t i = 0; i < n; ++i) acc += W(x[i * step]) * W(x[i * step]); break;
    case Fold::max: for (int64_t i = 0; i < n; ++i) acc = W(x[i * step]) > acc || x[i * step] != x[i * step] ? W(x[i * step]) : acc; break;
    case Fold::min: for (int64_t i = 0; i < n; ++i) acc = W(x[i * step]) < acc || x[i * step] != x[i * step] ? W(x[i * step]) : acc; break;
    case Fold::product: for (int64_t i = 0; i < n; ++i) acc *= W(x[i * step]); break;
    case Fold::any: for (int64_t i = 0; i < n; ++i) acc = acc != 0 || x[i * step] != 0; break;
    case Fold::all: for (int64_t i = 0; i < n; ++i) acc = acc != 0 && x[i * step] != 0; break;
  }
  return acc;
}

template <class T> static int reduce_run(const mnn_call *c) {
  typedef typename Wide<T>::type W;
  const Reduce &s = state<Reduce>(c);
  T *y = out<T>(c, 0);
  parallel(c, s.n, grain_for(s.folded), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      int64_t at = 0, rest = i;
      for (int32_t d = s.outer - 1; d >= 0; --d) at += rest % s.size[d] * s.stride[d], rest /= s.size[d];
      W acc = s.fold == Fold::max || s.fold == Fold::min ? W(fold_start<T>(s.fold)) : fold_start<W>(s.fold);
      const int32_t last = s.inner - 1;
      const int64_t rows = s.folded / max64(1, s.fsize[last]);
      for (int64_t r = 0; r < rows; ++r) {
        int64_t from = at, left = r;
        for (int32_t d = last - 1; d >= 0; --d) from += left % s.fsize[d] * s.fstride[d], left /= s.fsize[d];
        acc = fold_row<T>(s.fold, in<T>(c, 0) + from, s.fsize[last], s.fstride[last], acc);
      }
      if (s.mean) {
        if constexpr (sizeof(W) == sizeof(int64_t) && W(0.5) == W(0)) acc = s.folded ? acc / s.folded : 0;
        else acc /= double(s.folded);
      }
      y[i] = T(acc);
    }
  });
  return 0;
}

struct Axis {
  int64_t outer, n, inner;
};
static int softmax_prepare(mnn_call *c) {
  Axis *s = new_state<Axis>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0];
  int64_t axis = attr_int(c, "axis");
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return c->fail(c, "the axis is out of range");
  *s = {count(x, 0, int32_t(axis)), x.shape[axis], count(x, int32_t(axis) + 1)};
  return 0;
}
static int softmax_run(const mnn_call *c) {
  const Axis &s = state<Axis>(c);
  const int64_t groups = s.inner == 1 ? 1 : ceil_div(s.inner, kLanes);
  parallel(c, s.n ? s.outer * groups : 0, grain_for(s.n * min64(s.inner, kLanes) * 8), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      if (s.inner == 1) {
        const float *x = in<float>(c, 0) + i * s.n;
        float *y = out<float>(c, 0) + i * s.n;
        vf top = dup(-INFINITY);
        int64_t j = 0;
        for (; j + kLanes <= s.n; j += kLanes) top = max_nan(load(x + j), top);
        float m = -INFINITY;
        for (int64_t k = 0; k < kLanes; ++k) m = top[k] > m || top[k] != top[k] ? top[k] : m;
        for (; j < s.n; ++j) m = x[j] > m || x[j] != x[j] ? x[j] : m;
        vf total{};
        for (j = 0; j + kLanes <= s.n; j += kLanes) {
          const vf v = exp(load(x + j) - dup(m));
          store(y + j, v);
          total += v;
        }
        float t = sum(total);
        if (j < s.n) {
          const vf v = exp(load_tail(x + j, s.n - j) - dup(m));
          store_tail(y + j, v, s.n - j);
          for (int64_t k = 0; k < s.n - j; ++k) t += v[k];
        }
        const vf scale = dup(1.0f / t);
        for (j = 0; j + kLanes <= s.n; j += kLanes) store(y + j, load(y + j) * scale);
        if (j < s.n) store_tail(y + j, load_tail(y + j, s.n - j) * scale, s.n - j);
      } else {  // kLanes columns at once
        const int64_t first = i % groups * kLanes, width = min64(kLanes, s.inner - first);
        const int64_t start = i / groups * s.n * s.inner + first;
        const float *x = in<float>(c, 0) + start;
        float *y = out<float>(c, 0) + start;
        vf top = dup(-INFINITY), total{};
        for (int64_t j = 0; j < s.n; ++j) top = max_nan(load_tail(x + j * s.inner, width), top);
        for (int64_t j = 0; j < s.n; ++j) {
          const vf v = exp(load_tail(x + j * s.inner, width) - top);
          store_tail(y + j * s.inner, v, width);
          total += v;
        }
        const vf scale = dup(1.0f) / total;
        for (int64_t j = 0; j < s.n; ++j) store_tail(y + j * s.inner, load_tail(y + j * s.inner, width) * scale, width);
      }
    }
  });
  return 0;
}

// LayerNorm over trailing axes, with or without mean.
struct Norm {
  int64_t rows, n;
  float epsilon;
  bool rms;
};
static int layer_norm_prepare(mnn_call *c) {
  Norm *s = new_state<Norm>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0];
  const mnn_attr *axes = attr(c, "axis");
  if (c->n_out != 1 || attr_int(c, "group", 1) > 1) return c->fail(c, "this form of LayerNorm is not native");
  const int32_t n = axes && axes->kind == 'I' && axes->n ? axes->n : 1;
  for (int32_t i = 0; i < (axes && axes->kind == 'I' ? axes->n : 0); ++i) {
    int64_t a = axes->v.ints[i];
    if (a < 0) a += x.rank;
    if (a < x.rank - n) return c->fail(c, "the axes are not the last ones");
  }
  if (x.rank < n) return c->fail(c, "fewer dimensions than axes");
  *s = {count(x, 0, x.rank - n), count(x, x.rank - n), attr_float(c, "epsilon"), attr_int(c, "useRMSNorm") != 0};
  for (uint32_t i = 1; i < 3; ++i)
    if (present(c, i) && count(c->in[i]) != s->n) return c->fail(c, "scale or bias of another size");
  return 0;
}
static int layer_norm_run(const mnn_call *c) {
  const Norm &s = state<Norm>(c);
  const float *gamma = present(c, 1) ? in<float>(c, 1) : nullptr, *beta = present(c, 2) ? in<float>(c, 2) : nullptr;
  parallel(c, s.n ? s.rows : 0, grain_for(s.n * 4), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const float *x = in<float>(c, 0) + i * s.n;
      float *y = out<float>(c, 0) + i * s.n;
      double mean = 0, square = 0;
      if (!s.rms) {
        for (int64_t j = 0; j < s.n; ++j) mean += double(x[j]);
        mean /= double(s.n);
      }
      for (int64_t j = 0; j < s.n; ++j) square += (double(x[j]) - mean) * (double(x[j]) - mean);
      const float m = float(mean), scale = float(1.0 / __builtin_sqrt(square / double(s.n) + double(s.epsilon)));
      for (int64_t j = 0; j < s.n; ++j) y[j] = (x[j] - m) * scale;
      if (gamma) for (int64_t j = 0; j < s.n; ++j) y[j] *= gamma[j];
      if (beta) for (int64_t j = 0; j < s.n; ++j) y[j] += beta[j];
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

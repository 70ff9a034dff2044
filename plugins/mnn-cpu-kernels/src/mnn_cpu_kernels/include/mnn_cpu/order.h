// ArgMax, ArgMin, TopKV2, CumSum, CumProd: what depends on the order along an axis.
#pragma once
#include "call.h"

namespace mnn {
namespace MNN_ISA {

struct Along {
  int64_t outer, n, inner, k;
  bool largest, exclusive, reverse;
};

template <class T> static inline bool is_nan(T x) { return x != x; }

// Whether a comes before b among the largest (smallest); NaN counts as the largest of all.
template <class T> static inline bool before(T a, T b, bool largest) {
  if (is_nan(a) || is_nan(b)) return largest ? is_nan(a) && !is_nan(b) : !is_nan(a) && is_nan(b);
  return largest ? a > b : a < b;
}

static int along_prepare(mnn_call *c, int64_t axis, bool largest) {
  Along *s = new_state<Along>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0];
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return c->fail(c, "the axis is out of range");
  *s = {count(x, 0, int32_t(axis)), x.shape[axis], count(x, int32_t(axis) + 1), 0, largest, false, false};
  return 0;
}

static int arg_prepare(mnn_call *c, bool largest) {
  if (attr_int(c, "outMaxVal") || attr_int(c, "topK") > 1 || attr_int(c, "axis") == 10000) return c->fail(c, "Caffe's form is not native");
  return along_prepare(c, attr_int(c, "axis"), largest);
}
static int arg_max_prepare(mnn_call *c) { return arg_prepare(c, true); }
static int arg_min_prepare(mnn_call *c) { return arg_prepare(c, false); }

// The first of the best; the first NaN, if there is one, for both.
template <class T> static int arg_run(const mnn_call *c) {
  const Along &s = state<Along>(c);
  const int64_t groups = ceil_div(s.inner, kLanes);
  parallel(c, s.n ? s.outer * groups : 0, grain_for(s.n * min64(kLanes, s.inner)), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t first = i % groups * kLanes, width = min64(kLanes, s.inner - first);
      const T *x = in<T>(c, 0) + i / groups * s.n * s.inner + first;
      T best[kLanes];
      int32_t at[kLanes] = {};
      memcpy(best, x, size_t(width) * sizeof(T));
      const auto take = [&](bool better, int64_t k, int64_t j, T v) {
        best[k] = better ? v : best[k];
        at[k] = better ? int32_t(j) : at[k];
      };
      for (int64_t j = 1; j < s.n; ++j)
        for (int64_t k = 0; k < width; ++k) {
          const T v = x[j * s.inner + k];
          take(!is_nan(best[k]) && (is_nan(v) || (s.largest ? v > best[k] : v < best[k])), k, j, v);
        }
      memcpy(out<int32_t>(c, 0) + i / groups * s.inner + first, at, size_t(width) * 4);
    }
  });
  return 0;
}

static int top_k_prepare(mnn_call *c) {
  int64_t axis = -1;
  if (present(c, 2)) {
    if (!c->in[2].data || count(c->in[2]) != 1) return c->fail(c, "the axis is not constant");
    axis = *in<int32_t>(c, 2);
  }
  if (const int failed = along_prepare(c, axis, attr_int(c, "largest", 1) != 0)) return failed;
  Along &s = *static_cast<Along *>(c->state);
  s.k = c->out[0].shape[axis < 0 ? axis + c->in[0].rank : axis];
  if (s.k > s.n) return c->fail(c, "asks for more than there are");
  c->scratch_bytes = size_t(c->threads) * size_t(s.k) * 4;
  return 0;
}

// A heap of the best k so far, the worst of them on top; then it is emptied from the end.
template <class T> static int top_k_run(const mnn_call *c) {
  const Along &s = state<Along>(c);
  parallel(c, s.k ? s.outer * s.inner : 0, grain_for(s.n * 4), [&](int64_t b, int64_t e, int32_t worker) {
    int32_t *heap = static_cast<int32_t *>(c->scratch) + worker * s.k;
    for (int64_t i = b; i < e; ++i) {
      const T *x = in<T>(c, 0) + i / s.inner * s.n * s.inner + i % s.inner;
      const auto first = [&](int32_t p, int32_t q) {  // of two elements, does p come first in the result?
        const T a = x[p * s.inner], d = x[q * s.inner];
        return before(a, d, s.largest) || (!before(d, a, s.largest) && p < q);
      };
      const auto sink = [&](int64_t at, int64_t size, int32_t item) {  // puts an item where it belongs below `at`
        for (int64_t child; (child = 2 * at + 1) < size; at = child) {
          if (child + 1 < size && first(heap[child], heap[child + 1])) ++child;
          if (!first(item, heap[child])) break;
          heap[at] = heap[child];
        }
        heap[at] = item;
      };
      for (int64_t j = 0; j < s.k; ++j) heap[j] = int32_t(j);
      for (int64_t j = s.k / 2 - 1; j >= 0; --j) sink(j, s.k, heap[j]);
      for (int64_t j = s.k; j < s.n; ++j)
        if (first(int32_t(j), heap[0])) sink(0, s.k, int32_t(j));
      for (int64_t size = s.k - 1; size > 0; --size) {
        const int32_t worst = heap[0];
        sink(0, size, heap[size]);
        heap[size] = worst;
      }
      const int64_t to = i / s.inner * s.k * s.inner + i % s.inner;
      for (int64_t j = 0; j < s.k; ++j) {
        out<T>(c, 0)[to + j * s.inner] = x[heap[j] * s.inner];
        if (c->n_out > 1) out<int32_t>(c, 1)[to + j * s.inner] = heap[j];
      }
    }
  });
  return 0;
}

static int cumulative_prepare(mnn_call *c, int64_t axis) {
  if (const int failed = along_prepare(c, axis, false)) return failed;
  Along &s = *static_cast<Along *>(c->state);
  s.exclusive = attr_int(c, "exclusive") != 0, s.reverse = attr_int(c, "reverse") != 0;
  return 0;
}
static int cum_sum_prepare(mnn_call *c) {
  if (!present(c, 1) || !c->in[1].data || count(c->in[1]) != 1) return c->fail(c, "the axis is not constant");
  return cumulative_prepare(c, *in<int32_t>(c, 1));
}
static int cum_prod_prepare(mnn_call *c) { return cumulative_prepare(c, attr_int(c, "axis")); }

// T: elements; W: what runs along, double or int64.
template <class T, class W, bool Add> static int cumulative_run(const mnn_call *c) {
  const Along &s = state<Along>(c);
  const int64_t groups = ceil_div(s.inner, kLanes);
  parallel(c, s.outer * groups, grain_for(s.n * min64(kLanes, s.inner)), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t first = i % groups * kLanes, width = min64(kLanes, s.inner - first), start = i / groups * s.n * s.inner + first;
      W sum[kLanes];
      for (W &v : sum) v = Add ? 0 : 1;
      for (int64_t j = 0; j < s.n; ++j) {
        const int64_t row = start + (s.reverse ? s.n - 1 - j : j) * s.inner;
        for (int64_t k = 0; k < width; ++k) {
          const W old = sum[k], v = W(in<T>(c, 0)[row + k]);
          sum[k] = Add ? old + v : old * v;
          out<T>(c, 0)[row + k] = T(s.exclusive ? old : sum[k]);
        }
      }
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

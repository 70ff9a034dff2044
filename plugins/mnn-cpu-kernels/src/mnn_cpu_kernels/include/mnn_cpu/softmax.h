// Softmax along any axis of plain tensors.
#pragma once
#include "call.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

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

}  // namespace MNN_ISA
}  // namespace mnn

// ConvertLayout: plain to channel-blocked and back.
#pragma once
#include "call.h"

namespace mnn {
namespace MNN_ISA {

template <class T> static int to_blocked_run(const mnn_call *c) {
  const mnn_tensor &t = c->in[0];
  const int64_t channels = t.shape[1], inner = count(t, 2), blocks = ceil_div(channels, kLanes);
  parallel(c, t.shape[0] * blocks, grain_for(inner * kLanes), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t first = i % blocks * kLanes, n = min64(kLanes, channels - first);
      const T *x = in<T>(c, 0) + (i / blocks * channels + first) * inner;
      T *y = out<T>(c, 0) + i * inner * kLanes;
      for (int64_t p0 = 0; p0 < inner; p0 += 16)  // by short runs, so that both sides stay in cache
        for (int64_t k = 0; k < n; ++k)
          for (int64_t p = p0; p < min64(p0 + 16, inner); ++p) y[p * kLanes + k] = x[k * inner + p];
    }
  });
  return 0;
}

template <class T> static int to_plain_run(const mnn_call *c) {
  const mnn_tensor &t = c->in[0];
  const int64_t channels = t.shape[1], inner = count(t, 2), blocks = ceil_div(channels, kLanes);
  parallel(c, t.shape[0] * blocks, grain_for(inner * kLanes), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t first = i % blocks * kLanes, n = min64(kLanes, channels - first);
      const T *x = in<T>(c, 0) + i * inner * kLanes;
      T *y = out<T>(c, 0) + (i / blocks * channels + first) * inner;
      for (int64_t p0 = 0; p0 < inner; p0 += 16)
        for (int64_t k = 0; k < n; ++k)
          for (int64_t p = p0; p < min64(p0 + 16, inner); ++p) y[k * inner + p] = x[p * kLanes + k];
    }
  });
  return 0;
}
static int layout_prepare(mnn_call *c) { return c->in[0].rank < 2 ? c->fail(c, "fewer than 2 dimensions") : 0; }

}  // namespace MNN_ISA
}  // namespace mnn

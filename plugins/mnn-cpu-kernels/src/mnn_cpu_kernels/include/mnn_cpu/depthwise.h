// Depthwise convolution on the channel-blocked layout: one vector is one pixel of kLanes channels.
#pragma once
#include "conv_shape.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

struct Depthwise {
  Window g;
  float *weight, *bias;  // [blocks][kh][kw][kLanes], [blocks][kLanes]
  Clamp clamp;
};

static int depthwise_prepare(mnn_call *c) {
  Depthwise *s = new_state<Depthwise>(c);
  if (!s) return no_memory(c);
  if (!conv_window(c, s->g)) return c->fail(c, "not a 2-D convolution");
  const Window &g = s->g;
  if (!present(c, 1) || !c->in[1].data || (present(c, 2) && !c->in[2].data)) return c->fail(c, "the weights are not constant");
  const int64_t area = g.kh * g.kw, blocks = ceil_div(g.c, kLanes);
  if (g.oc != g.c || count(c->in[1]) != g.c * area) return c->fail(c, "a channel multiplier");
  s->clamp = conv_clamp(c);
  int fresh = 0;
  s->weight = static_cast<float *>(c->shared(c, 1, "depthwise", size_t(blocks * area * kLanes) * 4, &fresh));
  s->bias = static_cast<float *>(c->alloc(c, size_t(blocks * kLanes) * 4));
  if (!s->weight || !s->bias) return no_memory(c);
  if (fresh)
    for (int64_t i = 0; i < g.c; ++i)
      for (int64_t k = 0; k < area; ++k) s->weight[(i / kLanes * area + k) * kLanes + i % kLanes] = in<float>(c, 1)[i * area + k];
  if (present(c, 2)) memcpy(s->bias, in<float>(c, 2), size_t(g.c) * 4);
  return 0;
}

// P neighbouring pixels whose windows lie inside of the image in x; rows ky0..ky1-1 of the kernel are inside in y.
template <int P>
static inline void depthwise_pixels(const Window &g, const float *x, const float *w, float *y, int64_t ky0, int64_t ky1, vf bias, vf low, vf high) {
  vf acc[P];
  MNN_UNROLL for (int i = 0; i < P; ++i) acc[i] = bias;
  for (int64_t ky = ky0; ky < ky1; ++ky)
    for (int64_t kx = 0; kx < g.kw; ++kx) {
      const vf k = load(w + (ky * g.kw + kx) * kLanes);
      const float *from = x + (ky * g.dh * g.w + kx * g.dw) * kLanes;
      MNN_UNROLL for (int i = 0; i < P; ++i) acc[i] = fma(load(from + i * g.sw * kLanes), k, acc[i]);
    }
  MNN_UNROLL for (int i = 0; i < P; ++i) store(y + i * kLanes, clamp(acc[i], low, high));
}

static int depthwise_run(const mnn_call *c) {
  const Depthwise &s = state<Depthwise>(c);
  const Window &g = s.g;
  const int64_t blocks = ceil_div(g.c, kLanes), area = g.kh * g.kw;
  const vf low = dup(s.clamp.low), high = dup(s.clamp.high);
  constexpr int P = 8;
  // Output columns whose whole window is inside.
  const int64_t inside0 = min64(g.ow, ceil_div(g.left, g.sw));
  const int64_t reach = g.w - 1 - (g.kw - 1) * g.dw + g.left;
  const int64_t inside1 = max64(inside0, min64(g.ow, reach < 0 ? 0 : reach / g.sw + 1));
  parallel(c, g.n * blocks * g.oh, grain_for(g.ow * area * kLanes), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t row = i % g.oh, block = i / g.oh % blocks;
      const int64_t y0 = row * g.sh - g.top;
      const float *x = in<float>(c, 0) + (i / g.oh * g.h + y0) * g.w * kLanes, *w = s.weight + block * area * kLanes;
      float *y = out<float>(c, 0) + i * g.ow * kLanes;
      const vf bias = load(s.bias + block * kLanes);
      const int64_t ky0 = y0 < 0 ? min64(g.kh, ceil_div(-y0, g.dh)) : 0;
      const int64_t ky1 = max64(ky0, min64(g.kh, y0 >= g.h ? 0 : (g.h - 1 - y0) / g.dh + 1));
      const auto edge = [&](int64_t ox) {
        const int64_t x0 = ox * g.sw - g.left;
        vf acc = bias;
        for (int64_t ky = ky0; ky < ky1; ++ky)
          for (int64_t kx = 0; kx < g.kw; ++kx) {
            const int64_t ix = x0 + kx * g.dw;
            if (ix < 0 || ix >= g.w) continue;
            acc = fma(load(x + (ky * g.dh * g.w + ix) * kLanes), load(w + (ky * g.kw + kx) * kLanes), acc);
          }
        store(y + ox * kLanes, clamp(acc, low, high));
      };
      int64_t ox = 0;
      for (; ox < inside0; ++ox) edge(ox);
      for (; ox + P <= inside1; ox += P) depthwise_pixels<P>(g, x + (ox * g.sw - g.left) * kLanes, w, y + ox * kLanes, ky0, ky1, bias, low, high);
      for (; ox < inside1; ++ox) depthwise_pixels<1>(g, x + (ox * g.sw - g.left) * kLanes, w, y + ox * kLanes, ky0, ky1, bias, low, high);
      for (; ox < g.ow; ++ox) edge(ox);
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

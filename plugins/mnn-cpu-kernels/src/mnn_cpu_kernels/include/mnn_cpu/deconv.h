// Transposed convolution: one product gives the contribution of every input pixel to each kernel position; they are then added where they fall.
#pragma once
#include "conv_shape.h"
#include "gemm.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

struct Deconv {
  Window g;  // kernel, stride and padding of the convolution that this is the transpose of; c: input channels, oc: output channels
  int64_t group, ic, oc;
  Clamp clamp;
};

static int deconv_groups_prepare(mnn_call *c, bool depthwise) {
  Deconv *s = new_state<Deconv>(c);
  if (!s) return no_memory(c);
  if (!conv_window(c, s->g)) return c->fail(c, "not a 2-D convolution");
  Window &g = s->g;
  s->group = depthwise ? g.c : max64(1, attr_int(c, "group", 1));
  if (c->in[1].rank != 4 || g.c % s->group || g.oc % s->group || c->in[1].shape[0] != g.c || c->in[1].shape[1] != g.oc / s->group)
    return c->fail(c, "channels do not fit the groups");
  if (attr_is(c, "padMode", "SAME")) {  // the output is input * stride: padding is what is too much
    g.top = max64(0, (g.h - 1) * g.sh + (g.kh - 1) * g.dh + 1 - g.oh) / 2;
    g.left = max64(0, (g.w - 1) * g.sw + (g.kw - 1) * g.dw + 1 - g.ow) / 2;
  }
  s->ic = g.c / s->group, s->oc = g.oc / s->group;
  s->clamp = conv_clamp(c);
  c->scratch_bytes = size_t(s->oc * g.kh * g.kw * g.h * g.w + packed_size(s->ic, g.h * g.w)) * 4;
  return 0;
}

static int deconv_prepare(mnn_call *c) { return deconv_groups_prepare(c, false); }
static int deconv_depthwise_prepare(mnn_call *c) { return deconv_groups_prepare(c, true); }

static int deconv_run(const mnn_call *c) {
  const Deconv &s = state<Deconv>(c);
  const Window &g = s.g;
  const int64_t area = g.kh * g.kw, pixels = g.h * g.w, taps = s.oc * area;
  float *columns = static_cast<float *>(c->scratch), *packed = columns + taps * pixels;
  for (int64_t n = 0; n < g.n; ++n)
    for (int64_t group = 0; group < s.group; ++group) {
      const float *x = in<float>(c, 0) + (n * g.c + group * s.ic) * pixels;
      parallel(c, ceil_div(pixels, kPanel), grain_for(s.ic * kPanel),
               [&](int64_t b, int64_t e, int32_t) { pack_panels(x, pixels, 1, s.ic, pixels, packed, b, e); });
      // Weight (ic, oc * area), read as its transpose.
      const Gemm m{taps, pixels, s.ic, in<float>(c, 1) + group * s.ic * taps, 1, taps, packed, columns, pixels, nullptr, false};
      parallel(c, gemm_pieces(m), gemm_grain(m),
               [&](int64_t b, int64_t e, int32_t) { for (int64_t i = b; i < e; ++i) gemm_piece(m, i); });
      parallel(c, s.oc, grain_for(area * pixels), [&](int64_t b, int64_t e, int32_t) {
        for (int64_t o = b; o < e; ++o) {
          float *y = out<float>(c, 0) + (n * g.oc + group * s.oc + o) * g.oh * g.ow;
          const float bias = present(c, 2) ? in<float>(c, 2)[group * s.oc + o] : 0;
          for (int64_t i = 0; i < g.oh * g.ow; ++i) y[i] = bias;
          for (int64_t k = 0; k < area; ++k)
            for (int64_t iy = 0; iy < g.h; ++iy) {
              const int64_t oy = iy * g.sh - g.top + k / g.kw * g.dh;
              if (oy < 0 || oy >= g.oh) continue;
              const float *from = columns + (o * area + k) * pixels + iy * g.w;
              for (int64_t ix = 0; ix < g.w; ++ix) {
                const int64_t ox = ix * g.sw - g.left + k % g.kw * g.dw;
                if (ox >= 0 && ox < g.ow) y[oy * g.ow + ox] += from[ix];
              }
            }
          for (int64_t i = 0; i < g.oh * g.ow; ++i) y[i] = y[i] < s.clamp.low ? s.clamp.low : y[i] > s.clamp.high ? s.clamp.high : y[i];
        }
      });
    }
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

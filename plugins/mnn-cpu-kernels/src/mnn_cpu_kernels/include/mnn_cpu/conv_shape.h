// The geometry of 2-D convolutions and pooling windows, from attributes and shapes.
#pragma once
#include "call.h"

namespace mnn {
namespace MNN_ISA {

struct Window {
  int64_t n, c, h, w;     // input
  int64_t oc, oh, ow;     // output
  int64_t kh, kw, sh, sw, dh, dw;
  int64_t top, left;      // padding before; what follows from the output size is padded after
};

// Padding before, by MNN's rules. SAME pads more at the end; kernels work out the end from the output's size.
static inline void window_pads(const mnn_call *c, Window &g, const char *mode) {
  const mnn_attr *pads = attr(c, "pads");
  g.top = attr_int(c, "padY"), g.left = attr_int(c, "padX");
  if (pads && pads->kind == 'I' && pads->n >= 2) g.top = pads->v.ints[0], g.left = pads->v.ints[1];
  if (!strcmp(mode, "VALID")) g.top = g.left = 0;
  if (!strcmp(mode, "SAME")) {
    g.top = max64(0, (g.oh - 1) * g.sh + (g.kh - 1) * g.dh + 1 - g.h) / 2;
    g.left = max64(0, (g.ow - 1) * g.sw + (g.kw - 1) * g.dw + 1 - g.w) / 2;
  }
}

static inline bool conv_window(const mnn_call *c, Window &g) {
  const mnn_tensor &x = c->in[0], &y = c->out[0];
  if (x.rank != y.rank || (x.rank != 4 && x.rank != 3)) return false;  // 3: one column
  g = {x.shape[0], x.shape[1], x.shape[2], x.rank == 4 ? x.shape[3] : 1, y.shape[1], y.shape[2], x.rank == 4 ? y.shape[3] : 1,
       attr_int(c, "kernelY", 1), attr_int(c, "kernelX", 1), attr_int(c, "strideY", 1), attr_int(c, "strideX", 1),
       attr_int(c, "dilateY", 1), attr_int(c, "dilateX", 1), 0, 0};
  window_pads(c, g, attr_text(c, "padMode"));
  return true;
}

struct Clamp {
  float low, high;
};
static inline Clamp conv_clamp(const mnn_call *c) {
  if (attr_int(c, "relu6")) return {0, 6};
  return {attr_int(c, "relu") ? 0.0f : -INFINITY, INFINITY};
}
// NaN passes.
static inline vf clamp(vf v, vf low, vf high) { return min_nan(max_nan(v, low), high); }

}  // namespace MNN_ISA
}  // namespace mnn

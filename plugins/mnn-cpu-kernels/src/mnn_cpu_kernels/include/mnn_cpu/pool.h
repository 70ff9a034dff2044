// Pooling on the channel-blocked layout.
#pragma once
#include "conv_shape.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

struct Pool {
  Window g;
  bool average, include;  // include: padding counts in the average
  int64_t bottom, right;  // padding after, where it is stated; for counting
};

static int pool_prepare(mnn_call *c) {
  Pool *s = new_state<Pool>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0], &y = c->out[0];
  if (c->n_out > 1) return c->fail(c, "indices are not native");
  if (x.rank != 4 || y.rank != 4) return c->fail(c, "not a 2-D image");
  Window &g = s->g;
  g = {x.shape[0], x.shape[1], x.shape[2], x.shape[3], y.shape[1], y.shape[2], y.shape[3], attr_int(c, "kernelY"),
       attr_int(c, "kernelX"), attr_int(c, "strideY"), attr_int(c, "strideX"), 1, 1, 0, 0};
  s->average = attr_is(c, "type", "AVEPOOL");
  if (attr_int(c, "isGlobal")) {
    g.kh = g.h, g.kw = g.w, g.sh = g.sw = 1;
    return 0;
  }
  if (attr(c, "kernels")) return c->fail(c, "3-D windows are not native");
  const mnn_attr *dy = attr(c, "dilateY"), *dx = attr(c, "dilateX");
  if ((dy && dy->kind == 'i' && dy->v.i > 1) || (dx && dx->kind == 'i' && dx->v.i > 1)) return c->fail(c, "dilated windows are not native");
  if (g.kh < 1 || g.kw < 1 || g.sh < 1 || g.sw < 1) return c->fail(c, "an empty window");
  window_pads(c, g, attr_text(c, "padType"));
  const mnn_attr *pads = attr(c, "pads");
  const bool caffe = attr_is(c, "padType", "CAFFE");
  s->bottom = g.top, s->right = g.left;
  if (caffe && pads && pads->kind == 'I' && pads->n >= 4) s->bottom = pads->v.ints[2], s->right = pads->v.ints[3];
  if (!caffe) s->bottom = max64(0, (g.oh - 1) * g.sh + g.kh - g.h - g.top), s->right = max64(0, (g.ow - 1) * g.sw + g.kw - g.w - g.left);
  // Caffe's form, padding given as padX and padY, counts it.
  const bool stated = pads && pads->kind == 'I' && pads->n > 0;
  s->include = attr_is(c, "countType", "INCLUDE_PADDING") || (caffe && !stated && !attr_is(c, "countType", "EXCLUDE_PADDING"));
  return 0;
}

static int pool_run(const mnn_call *c) {
  const Pool &s = state<Pool>(c);
  const Window &g = s.g;
  const int64_t blocks = ceil_div(g.c, kLanes);
  parallel(c, g.n * blocks * g.oh, grain_for(g.ow * g.kh * g.kw * kLanes), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t row = i % g.oh, y0 = row * g.sh - g.top;
      const float *x = in<float>(c, 0) + i / g.oh * g.h * g.w * kLanes;
      float *y = out<float>(c, 0) + i * g.ow * kLanes;
      const int64_t top = max64(y0, 0), bottom = min64(y0 + g.kh, g.h);
      for (int64_t ox = 0; ox < g.ow; ++ox, y += kLanes) {
        const int64_t x0 = ox * g.sw - g.left, left = max64(x0, 0), right = min64(x0 + g.kw, g.w);
        if (s.average) {
          vf acc{};
          for (int64_t iy = top; iy < bottom; ++iy)
            for (int64_t ix = left; ix < right; ++ix) acc += load(x + (iy * g.w + ix) * kLanes);
          // Cells outside of input and padding never count.
          const int64_t n = s.include ? (min64(y0 + g.kh, g.h + s.bottom) - y0) * (min64(x0 + g.kw, g.w + s.right) - x0)
                                      : (bottom - top) * (right - left);
          store(y, acc / dup(float(n)));
        } else {
          vf acc = dup(-INFINITY);
          for (int64_t iy = top; iy < bottom; ++iy)
            for (int64_t ix = left; ix < right; ++ix) acc = max_nan(load(x + (iy * g.w + ix) * kLanes), acc);
          store(y, acc);
        }
      }
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

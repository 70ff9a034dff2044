// Interp on the channel-blocked layout: nearest (floor) and bilinear. Where each output row and column reads is worked out once.
#pragma once
#include "call.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

struct Interp {
  int64_t n, blocks, h, w, oh, ow;
  bool linear;
  int32_t *y0, *y1, *x0, *x1;  // rows and columns that are read
  float *fy, *fx;              // weight of the second
};

// Source coordinate of output position i.
static inline float source_of(const char *mode, int64_t i, int64_t in, int64_t out) {
  const float scale = float(in) / float(out);
  if (!strcmp(mode, "AlignCorners")) return out > 1 ? float(i) * float(in - 1) / float(out - 1) : 0.0f;
  if (!strcmp(mode, "HalfPixels") || (!strcmp(mode, "PytorchHalfPixels") && out > 1)) return (float(i) + 0.5f) * scale - 0.5f;
  if (!strcmp(mode, "PytorchHalfPixels")) return 0.0f;
  return float(i) * scale;
}

static bool fill_axis(mnn_call *c, const char *mode, bool linear, int64_t in, int64_t out, int32_t *&first, int32_t *&second, float *&weight) {
  first = static_cast<int32_t *>(c->alloc(c, size_t(out) * 4 + 4));
  second = static_cast<int32_t *>(c->alloc(c, size_t(out) * 4 + 4));
  weight = static_cast<float *>(c->alloc(c, size_t(out) * 4 + 4));
  if (!first || !second || !weight) return false;
  for (int64_t i = 0; i < out; ++i) {
    const float at = source_of(mode, i, in, out), low = floorf(at);
    first[i] = int32_t(min64(max64(int64_t(low), 0), in - 1));
    second[i] = linear ? int32_t(min64(max64(int64_t(low) + 1, 0), in - 1)) : first[i];
    weight[i] = linear ? at - low : 0;
  }
  return true;
}

static int interp_prepare(mnn_call *c) {
  Interp *s = new_state<Interp>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0], &y = c->out[0];
  const int64_t type = attr_int(c, "resizeType");
  if (x.rank != 4) return c->fail(c, "not a 2-D image");
  if (type != 1 && type != 2) return c->fail(c, "this kind of resizing is not native");
  *s = {x.shape[0], ceil_div(x.shape[1], kLanes), x.shape[2], x.shape[3], y.shape[2], y.shape[3], type == 2,
        nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  const char *mode = attr_text(c, "ctm");
  if (!strcmp(mode, "NotSet") || !*mode)
    mode = attr_int(c, "halfPixelCenters") && type == 2 ? "HalfPixels" : attr_int(c, "alignCorners") ? "AlignCorners" : "Asymmetric";
  if (strcmp(mode, "AlignCorners") && strcmp(mode, "Asymmetric") && strcmp(mode, "HalfPixels") && strcmp(mode, "PytorchHalfPixels"))
    return c->fail(c, "this coordinate transformation is not native");
  if (type == 1 && strcmp(mode, "Asymmetric")) return c->fail(c, "this coordinate transformation is not native for nearest");
  if (x.shape[0] != y.shape[0] || x.shape[1] != y.shape[1] || !s->h || !s->w) return c->fail(c, "batch or channels change");
  if (!fill_axis(c, mode, s->linear, s->h, s->oh, s->y0, s->y1, s->fy) || !fill_axis(c, mode, s->linear, s->w, s->ow, s->x0, s->x1, s->fx))
    return no_memory(c);
  return 0;
}

static int interp_run(const mnn_call *c) {
  const Interp &s = state<Interp>(c);
  parallel(c, s.n * s.blocks * s.oh, grain_for(s.ow * kLanes * 4), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t row = i % s.oh;
      const float *plane = in<float>(c, 0) + i / s.oh * s.h * s.w * kLanes;
      const float *top = plane + s.y0[row] * s.w * kLanes, *bottom = plane + s.y1[row] * s.w * kLanes;
      float *y = out<float>(c, 0) + i * s.ow * kLanes;
      if (!s.linear) {
        for (int64_t x = 0; x < s.ow; ++x) store(y + x * kLanes, load(top + s.x0[x] * kLanes));
        continue;
      }
      const vf fy = dup(s.fy[row]);
      for (int64_t x = 0; x < s.ow; ++x) {
        const vf fx = dup(s.fx[x]);
        const vf a = load(top + s.x0[x] * kLanes), b0 = load(bottom + s.x0[x] * kLanes);
        const vf upper = fma(load(top + s.x1[x] * kLanes) - a, fx, a), lower = fma(load(bottom + s.x1[x] * kLanes) - b0, fx, b0);
        store(y + x * kLanes, fma(lower - upper, fy, upper));
      }
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

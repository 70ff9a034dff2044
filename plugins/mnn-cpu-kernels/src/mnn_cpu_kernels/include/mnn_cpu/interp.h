// Interp on the channel-blocked layout: nearest, linear, cubic. Which rows and columns make an output element, and with what weights,
// is worked out once.
#pragma once
#include "call.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

enum : int64_t { kNearestFloor = 1, kLinear = 2, kCubic = 3, kNearest = 4 };  // resizeType

struct Taps {
  int32_t *at;    // [out][taps]: elements that are read
  float *weight;  // [out][taps]
};
struct Interp {
  int64_t n, blocks, h, w, oh, ow, taps;
  Taps y, x;
};

// Where output element i lies in the input, in single precision as ONNX runtimes calculate it; NaN for an unknown mode.
static inline float source_of(const char *mode, int64_t i, int64_t in, int64_t out, float scale) {
  const float at = float(i), centre = (at + 0.5f) / scale;
  if (!strcmp(mode, "AlignCorners") || !strcmp(mode, "TensorflowCropAndResize"))
    return out > 1 ? at * (float(in) - 1.0f) / (float(out) - 1.0f) : 0.0f;
  if (!strcmp(mode, "Asymmetric")) return at / scale;
  if (!strcmp(mode, "TensorflowHalfPixels")) return centre;
  if (!strcmp(mode, "PytorchHalfPixels") && out == 1) return 0.0f;
  if (!strcmp(mode, "HalfPixels") || !strcmp(mode, "PytorchHalfPixels")) return centre - 0.5f;
  return NAN;
}

static bool fill_taps(mnn_call *c, const char *mode, int64_t type, int64_t taps, int64_t in, int64_t out, float scale, Taps &to) {
  to.at = static_cast<int32_t *>(c->alloc(c, size_t(out * taps) * 4 + 4));
  to.weight = static_cast<float *>(c->alloc(c, size_t(out * taps) * 4 + 4));
  if (!to.at || !to.weight) return false;
  const double a = double(attr_float(c, "cubicCoeffA", -0.75f));
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  for (int64_t i = 0; i < out; ++i) {
    float at = source_of(mode, i, in, out, scale);
    if (type == kLinear) at = at < 0 ? 0 : at > float(in - 1) ? float(in - 1) : at;
    const float low = type == kNearest ? ceilf(at - 0.5f) : floorf(at);
    const double f = double(at) - double(low);
    const double weights[4] = {taps == 4 ? far(1 + f) : taps == 2 ? 1 - f : 1, taps == 4 ? near(f) : f, near(1 - f), far(2 - f)};
    for (int64_t k = 0; k < taps; ++k) {
      to.at[i * taps + k] = int32_t(min64(max64(int64_t(low) + k - (taps == 4), 0), in - 1));
      to.weight[i * taps + k] = float(weights[k]);
    }
  }
  return true;
}

static int interp_prepare(mnn_call *c) {
  Interp *s = new_state<Interp>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0], &y = c->out[0];
  const int64_t type = attr_int(c, "resizeType");
  if (x.rank != 4) return c->fail(c, "not a 2-D image");
  if (type < kNearestFloor || type > kNearest) return c->fail(c, "this kind of resizing is not native");
  if (x.shape[0] != y.shape[0] || x.shape[1] != y.shape[1] || !x.shape[2] || !x.shape[3]) return c->fail(c, "batch or channels change");
  *s = {x.shape[0], ceil_div(x.shape[1], kLanes), x.shape[2], x.shape[3], y.shape[2], y.shape[3], type == kCubic ? 4 : type == kLinear ? 2 : 1,
        {}, {}};
  const char *mode = attr_text(c, "ctm");
  if (!strcmp(mode, "NotSet") || !*mode)
    mode = attr_int(c, "halfPixelCenters") && type != kNearestFloor ? "HalfPixels" : attr_int(c, "alignCorners") ? "AlignCorners" : "Asymmetric";
  if (__builtin_isnan(source_of(mode, 0, 1, 1, 1))) return c->fail(c, "this coordinate transformation is not native");
  float sy = float(s->oh) / float(s->h), sx = float(s->ow) / float(s->w);
  // Scales that are given are exact.
  if (!present(c, 1)) {
    if (!attr_int(c, "outputHeight")) sy = attr_float(c, "heightScale", sy);
    if (!attr_int(c, "outputWidth")) sx = attr_float(c, "widthScale", sx);
  } else if (c->in[1].dtype.code == MNN_FLOAT) {
    const int64_t n = count(c->in[1]);
    if (!c->in[1].data || c->in[1].dtype.bits != 32 || n < 2) return c->fail(c, "the scales are not constant");
    sy = in<float>(c, 1)[n - 2], sx = in<float>(c, 1)[n - 1];
  }
  if (!fill_taps(c, mode, type, s->taps, s->h, s->oh, sy, s->y) || !fill_taps(c, mode, type, s->taps, s->w, s->ow, sx, s->x)) return no_memory(c);
  return 0;
}

template <int T> static inline void interp_row(const Interp &s, const float *plane, int64_t row, float *y) {
  const float *from[T];
  vf wy[T];
  MNN_UNROLL for (int k = 0; k < T; ++k) from[k] = plane + s.y.at[row * T + k] * s.w * kLanes, wy[k] = dup(s.y.weight[row * T + k]);
  for (int64_t x = 0; x < s.ow; ++x) {
    vf sum{};
    MNN_UNROLL for (int j = 0; j < T; ++j) {
      vf column = load(from[0] + s.x.at[x * T + j] * kLanes) * wy[0];
      MNN_UNROLL for (int k = 1; k < T; ++k) column = fma(load(from[k] + s.x.at[x * T + j] * kLanes), wy[k], column);
      sum = j ? fma(column, dup(s.x.weight[x * T + j]), sum) : column * dup(s.x.weight[x * T]);
    }
    store(y + x * kLanes, sum);
  }
}

static int interp_run(const mnn_call *c) {
  const Interp &s = state<Interp>(c);
  parallel(c, s.n * s.blocks * s.oh, grain_for(s.ow * kLanes * s.taps * s.taps), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t row = i % s.oh;
      const float *plane = in<float>(c, 0) + i / s.oh * s.h * s.w * kLanes;
      float *y = out<float>(c, 0) + i * s.ow * kLanes;
      if (s.taps == 4) interp_row<4>(s, plane, row, y);
      else if (s.taps == 2) interp_row<2>(s, plane, row, y);
      else
        for (int64_t x = 0; x < s.ow; ++x) store(y + x * kLanes, load(plane + (s.y.at[row] * s.w + s.x.at[x]) * kLanes));
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

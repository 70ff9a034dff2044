// Elementwise kernels of quantised numbers: to bytes and back, tables, sums and products, and the greatest of windows.
#pragma once
#include "int8_tile.h"
#include "pool.h"

namespace mnn {
namespace MNN_ISA {

// Scale and zero point: one of each, or one for each place along an axis of a plain tensor.
struct ByteScale {
  int64_t axis, inner;  // length of the axis (0: one scale), elements behind a place
};
static int byte_scale_prepare(mnn_call *c) {
  ByteScale *s = new_state<ByteScale>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0];
  for (uint32_t i = 1; i < 3; ++i)
    if (present(c, i) && count(c->in[i]) > 1) s->axis = count(c->in[i]);
  if (c->in[1].dtype.code != MNN_FLOAT || c->in[1].dtype.bits != 32) return c->fail(c, "scales of another type");
  if (present(c, 2) && !is_byte(c->in[2])) return c->fail(c, "zero points of another type");
  if (!s->axis) return 0;
  if (x.layout == MNN_BLOCKED) return c->fail(c, "scales along an axis of a blocked tensor");
  int64_t axis = attr_int(c, "axis", 1);
  if (axis < 0) axis += x.rank;
  s->inner = count(x, int32_t(axis) + 1);
  return 0;
}
// Calls row(first, n, scale, zero) for runs of elements of one scale.
template <class F> static inline void by_scale(const mnn_call *c, const F &row) {
  const ByteScale &s = state<ByteScale>(c);
  const auto one = [&](int64_t place, int64_t first, int64_t n) {
    const float zero = present(c, 2) ? float(byte_at(c->in[2], count(c->in[2]) == 1 ? 0 : place)) : 0;
    row(first, n, in<float>(c, 1)[count(c->in[1]) == 1 ? 0 : place], zero);
  };
  const int64_t n = stored(c->in[0]);
  if (!s.axis) return parallel(c, n, 16384, [&](int64_t b, int64_t e, int32_t) { one(0, b, e - b); });
  if (n == 0) return;
  parallel(c, n / s.inner, grain_for(s.inner), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) one(i % s.axis, i * s.inner, s.inner);
  });
}

template <class T> static inline void quantize_row(const float *x, T *y, int64_t n, float scale, float zero) {
  const vf step = dup(scale), point = dup(zero), low = dup(float(T(-1) < 0 ? -128 : 0)), high = dup(float(T(-1) < 0 ? 127 : 255));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_narrow(y + i, to_byte(load(x + i) / step, point, low, high));
  if (i == n) return;
  T tail[kLanes];
  store_narrow(tail, to_byte(load_tail(x + i, n - i) / step, point, low, high));
  memcpy(y + i, tail, size_t(n - i));
}
template <class T> static int quantize_run(const mnn_call *c) {
  by_scale(c, [&](int64_t first, int64_t n, float scale, float zero) { quantize_row(in<float>(c, 0) + first, out<T>(c, 0) + first, n, scale, zero); });
  return 0;
}
template <class T> static int dequantize_run(const mnn_call *c) {
  by_scale(c, [&](int64_t first, int64_t n, float scale, float zero) {
    const T *q = in<T>(c, 0) + first;
    float *y = out<float>(c, 0) + first;
    const vf step = dup(scale), point = dup(zero);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(y + i, (to_float(load_wide(q + i)) - point) * step);
    for (; i < n; ++i) y[i] = (float(q[i]) - zero) * scale;
  });
  return 0;
}

static int dynamic_quantize_prepare(mnn_call *c) {
  c->scratch_bytes = size_t(c->threads) * 2 * sizeof(vf);
  return c->n_out == 3 ? 0 : c->fail(c, "three outputs are expected");
}
static int dynamic_quantize_run(const mnn_call *c) {
  const float *x = in<float>(c, 0);
  const int64_t n = count(c->in[0]);
  vf *found = static_cast<vf *>(c->scratch);  // least and greatest seen by each thread
  for (int32_t t = 0; t < 2 * c->threads; ++t) found[t] = vf{};
  parallel(c, n, 16384, [&](int64_t b, int64_t e, int32_t worker) {
    vf low = found[2 * worker], high = found[2 * worker + 1];
    int64_t i = b;
    for (; i + kLanes <= e; i += kLanes) low = min_nan(load(x + i), low), high = max_nan(load(x + i), high);
    if (i < e) low = min_nan(load_tail(x + i, e - i), low), high = max_nan(load_tail(x + i, e - i), high);
    found[2 * worker] = low, found[2 * worker + 1] = high;
  });
  vf lows = found[0], highs = found[1];
  for (int32_t t = 1; t < c->threads; ++t) lows = min_nan(found[2 * t], lows), highs = max_nan(found[2 * t + 1], highs);
  float low = lows[0], high = highs[0];
  for (int64_t i = 1; i < kLanes; ++i) {
    low = !(low <= lows[i]) && low == low ? lows[i] : low;
    high = !(high >= highs[i]) && high == high ? highs[i] : high;
  }
  float scale = (high - low) / 255.0f;
  if (scale == 0) scale = 1;
  const vi point = to_byte(dup(-low / scale), vf{}, vf{}, dup(255.0f));
  *out<float>(c, 1) = scale, *out<uint8_t>(c, 2) = uint8_t(point[0]);
  const float zero = float(point[0]);
  parallel(c, n, 16384, [&](int64_t b, int64_t e, int32_t) { quantize_row(x + b, out<uint8_t>(c, 0) + b, e - b, scale, zero); });
  return 0;
}

static int byte_table_prepare(mnn_call *c) {
  return is_byte(c->in[0]) && is_byte(c->in[1]) && count(c->in[1]) == 256 ? 0 : c->fail(c, "not a table of bytes");
}
static int byte_table_run(const mnn_call *c) {
  const uint8_t *q = in<uint8_t>(c, 0), flip = uint8_t(to_unsigned(c->in[0])), *table = in<uint8_t>(c, 1);
  uint8_t *y = out<uint8_t>(c, 0);
  parallel(c, stored(c->in[0]), 16384, [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) y[i] = table[uint8_t(q[i] ^ flip)];
  });
  return 0;
}

struct ByteBinary {
  float scale_a, scale_b, zero_a, zero_b;
  bool product;
  Finish finish;
};
static int byte_binary_prepare(mnn_call *c) {
  ByteBinary *s = new_state<ByteBinary>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &a = c->in[0], &b = c->in[1];
  if (!is_byte(a) || !is_byte(b) || !is_byte(c->out[0]) || !same_shape(a, b)) return c->fail(c, "not two tensors of bytes of one shape");
  if (const char *why = finish_of(c, c->n_in, s->finish)) return c->fail(c, why);
  s->scale_a = attr_float(c, "scaleA", 1), s->scale_b = attr_float(c, "scaleB", 1);
  s->zero_a = float(attr_int(c, "zeroA")), s->zero_b = float(attr_int(c, "zeroB"));
  s->product = attr_is(c, "opType", "MUL");
  return 0;
}
template <class A, class B, class T> static void byte_binary_all(const mnn_call *c) {
  const ByteBinary &s = state<ByteBinary>(c);
  const A *a = in<A>(c, 0);
  const B *b = in<B>(c, 1);
  T *y = out<T>(c, 0);
  const vf sa = dup(s.scale_a), sb = dup(s.scale_b), za = dup(s.zero_a), zb = dup(s.zero_b);
  const vf zero = dup(s.finish.zero), low = dup(s.finish.low), high = dup(s.finish.high);
  const auto join = [&](const A *p, const B *q) {
    const vf left = settled((to_float(load_wide(p)) - za) * sa), right = settled((to_float(load_wide(q)) - zb) * sb);
    return to_byte(s.product ? left * right : left + right, zero, low, high);
  };
  parallel(c, stored(c->out[0]), 8192, [&](int64_t begin, int64_t end, int32_t) {
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) store_narrow(y + i, join(a + i, b + i));
    if (i == end) return;
    A p[kLanes] = {};
    B q[kLanes] = {};
    T tail[kLanes];
    memcpy(p, a + i, size_t(end - i)), memcpy(q, b + i, size_t(end - i));
    store_narrow(tail, join(p, q));
    memcpy(y + i, tail, size_t(end - i));
  });
}
template <class A, class B> static void byte_binary_made(const mnn_call *c) {
  if (state<ByteBinary>(c).finish.made == Made::kInt8) byte_binary_all<A, B, int8_t>(c);
  else byte_binary_all<A, B, uint8_t>(c);
}
static int byte_binary_run(const mnn_call *c) {
  const bool a = c->in[0].dtype.code == MNN_INT, b = c->in[1].dtype.code == MNN_INT;
  if (a && b) byte_binary_made<int8_t, int8_t>(c);
  else if (a) byte_binary_made<int8_t, uint8_t>(c);
  else if (b) byte_binary_made<uint8_t, int8_t>(c);
  else byte_binary_made<uint8_t, uint8_t>(c);
  return 0;
}

static int byte_pool_prepare(mnn_call *c) {
  if (!attr_is(c, "type", "MAXPOOL")) return c->fail(c, "a mean of bytes");
  return pool_prepare(c);
}
template <class T, class V> static int byte_pool_run(const mnn_call *c) {
  const Window &g = state<Pool>(c).g;
  const int64_t blocks = ceil_div(g.c, kLanes);
  V least{};
  for (int64_t k = 0; k < kLanes; ++k) least[k] = T(-1) < 0 ? T(-128) : T(0);
  parallel(c, g.n * blocks * g.oh, grain_for(g.ow * g.kh * g.kw * 4), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t y0 = i % g.oh * g.sh - g.top, top = max64(y0, 0), bottom = min64(y0 + g.kh, g.h);
      const T *x = in<T>(c, 0) + i / g.oh * g.h * g.w * kLanes;
      T *y = out<T>(c, 0) + i * g.ow * kLanes;
      for (int64_t ox = 0; ox < g.ow; ++ox, y += kLanes) {
        const int64_t x0 = ox * g.sw - g.left, left = max64(x0, 0), right = min64(x0 + g.kw, g.w);
        V acc = least;
        for (int64_t iy = top; iy < bottom; ++iy)
          for (int64_t ix = left; ix < right; ++ix) {
            V v;
            memcpy(&v, x + (iy * g.w + ix) * kLanes, sizeof v);
            acc = v > acc ? v : acc;
          }
        memcpy(y, &acc, sizeof acc);
      }
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

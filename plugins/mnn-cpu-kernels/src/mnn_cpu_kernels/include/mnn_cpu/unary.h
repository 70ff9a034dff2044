// Elementwise kernels of one input: UnaryOp and the activations. They run over memory as it lies, in any layout.
#pragma once
#include "call.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

struct Unary {
  void (*loop)(const float *x, float *y, int64_t n, const Unary &);
  float a, b;
};

template <class F> static inline void map(const float *x, float *y, int64_t n, const F &f) {
  for (; n >= kLanes; n -= kLanes, x += kLanes, y += kLanes) store(y, f(load(x)));
  if (n) store_tail(y, f(load_tail(x, n)), n);
}

#define MNN_UNARY(name, expression) \
  static void unary_##name(const float *px, float *py, int64_t n, const Unary &u) { \
    const vf a = dup(u.a), b = dup(u.b), one = dup(1.0f), zero{}; \
    (void)a, (void)b, (void)one, (void)zero; \
    map(px, py, n, [=](vf x) -> vf { return expression; }); \
  }

static inline vf absolute(vf x) { return as_float(as_int(x) & dup(int32_t(0x7fffffff))); }
static inline vf sign_of(vf x) { return x > vf{} ? dup(1.0f) : x < vf{} ? dup(-1.0f) : x; }
static inline vf floor_of(vf x) { const vf r = round_even(x); return r > x ? r - dup(1.0f) : r; }
static inline vf hard_sigmoid6(vf x) { return min_nan(max_nan(x + dup(3.0f), vf{}), dup(6.0f)); }

MNN_UNARY(ABS, absolute(x))
MNN_UNARY(NEG, -x)
MNN_UNARY(FLOOR, each<floorf>(x))
MNN_UNARY(CEIL, each<ceilf>(x))
MNN_UNARY(SQUARE, x * x)
MNN_UNARY(SQRT, sqrt(x))
MNN_UNARY(RSQRT, one / sqrt(x))
MNN_UNARY(EXP, exp(x))
MNN_UNARY(LOG, log(x))
MNN_UNARY(SIN, each<sinf>(x))
MNN_UNARY(COS, each<cosf>(x))
MNN_UNARY(TAN, each<tanf>(x))
MNN_UNARY(ASIN, each<asinf>(x))
MNN_UNARY(ACOS, each<acosf>(x))
MNN_UNARY(ATAN, each<atanf>(x))
MNN_UNARY(RECIPROCAL, one / x)
MNN_UNARY(LOG1P, each<log1pf>(x))
MNN_UNARY(ACOSH, each<acoshf>(x))
MNN_UNARY(SINH, each<sinhf>(x))
MNN_UNARY(ASINH, each<asinhf>(x))
MNN_UNARY(ATANH, each<atanhf>(x))
MNN_UNARY(SIGN, sign_of(x))
MNN_UNARY(ROUND, each<nearbyintf>(x))
MNN_UNARY(COSH, each<coshf>(x))
MNN_UNARY(BNLL, softplus(x))
MNN_UNARY(ERF, erf(x))
MNN_UNARY(ERFC, each<erfcf>(x))
MNN_UNARY(EXPM1, each<expm1f>(x))
MNN_UNARY(SIGMOID, sigmoid(x))
MNN_UNARY(TANH, tanh(x))
MNN_UNARY(HARDSWISH, x * (hard_sigmoid6(x) * dup(1.0f / 6.0f)))
MNN_UNARY(GELU, dup(0.5f) * x * (one + tanh(dup(0.79788456f) * fma(dup(0.044715f) * x * x, x, x))))
MNN_UNARY(GELU_STANDARD, dup(0.5f) * x * (one + erf(x * dup(0.70710678f))))
MNN_UNARY(SILU, x * sigmoid(x))
MNN_UNARY(relu, max_nan(x, zero))
MNN_UNARY(leaky_relu, x > zero ? x : x * a)
MNN_UNARY(relu6, min_nan(max_nan(x, a), b))
MNN_UNARY(elu, x > zero ? x : a * each<expm1f>(x))
MNN_UNARY(selu, x > zero ? x * a : a * b * each<expm1f>(x))
#undef MNN_UNARY

struct NamedUnary {
  const char *name;
  void (*loop)(const float *, float *, int64_t, const Unary &);
};
#define MNN_NAMED(name) {#name, unary_##name}
static const NamedUnary kUnary[] = {
    MNN_NAMED(ABS), MNN_NAMED(NEG), MNN_NAMED(FLOOR), MNN_NAMED(CEIL), MNN_NAMED(SQUARE), MNN_NAMED(SQRT), MNN_NAMED(RSQRT),
    MNN_NAMED(EXP), MNN_NAMED(LOG), MNN_NAMED(SIN), MNN_NAMED(COS), MNN_NAMED(TAN), MNN_NAMED(ASIN), MNN_NAMED(ACOS),
    MNN_NAMED(ATAN), MNN_NAMED(RECIPROCAL), MNN_NAMED(LOG1P), MNN_NAMED(ACOSH), MNN_NAMED(SINH), MNN_NAMED(ASINH),
    MNN_NAMED(ATANH), MNN_NAMED(SIGN), MNN_NAMED(ROUND), MNN_NAMED(COSH), MNN_NAMED(ERF), MNN_NAMED(ERFC), MNN_NAMED(EXPM1), MNN_NAMED(BNLL),
    MNN_NAMED(SIGMOID), MNN_NAMED(TANH), MNN_NAMED(HARDSWISH), MNN_NAMED(GELU), MNN_NAMED(GELU_STANDARD), MNN_NAMED(SILU)};
#undef MNN_NAMED

static int unary_run(const mnn_call *c) {
  const Unary &u = state<Unary>(c);
  const float *x = in<float>(c, 0);
  float *y = out<float>(c, 0);
  parallel(c, ceil_div(stored(c->out[0]), 4096), 4,
           [&, n = stored(c->out[0])](int64_t b, int64_t e, int32_t) { u.loop(x + b * 4096, y + b * 4096, min64(e * 4096, n) - b * 4096, u); });
  return 0;
}

static int unary_start(mnn_call *c, void (*loop)(const float *, float *, int64_t, const Unary &), float a = 0, float b = 0) {
  Unary *u = new_state<Unary>(c);
  if (!u) return no_memory(c);
  *u = {loop, a, b};
  return 0;
}
static int unary_prepare(mnn_call *c) {
  const char *name = attr_text(c, "opType");
  for (const NamedUnary &u : kUnary)
    if (!strcmp(u.name, name)) return unary_start(c, u.loop);
  return c->fail(c, "this UnaryOp code has no native kernel");
}
static int relu_prepare(mnn_call *c) {
  const float slope = attr_float(c, "slope");
  return unary_start(c, slope != 0 ? unary_leaky_relu : unary_relu, slope);  // 0 * -inf would be NaN
}
static int relu6_prepare(mnn_call *c) { return unary_start(c, unary_relu6, attr_float(c, "minValue"), attr_float(c, "maxValue", 6)); }
static int elu_prepare(mnn_call *c) { return unary_start(c, unary_elu, attr_float(c, "alpha", 1)); }
static int selu_prepare(mnn_call *c) { return unary_start(c, unary_selu, attr_float(c, "scale"), attr_float(c, "alpha")); }
static int sigmoid_prepare(mnn_call *c) { return unary_start(c, unary_SIGMOID); }
static int tanh_prepare(mnn_call *c) { return unary_start(c, unary_TANH); }

// The functions that integers have: ABS, NEG, SQUARE, SIGN; rounding leaves them as they are. They wrap around.
static int unary_i32_prepare(mnn_call *c) {
  static const char *const names[] = {"ABS", "NEG", "SQUARE", "SIGN", "FLOOR", "CEIL", "ROUND"};
  int32_t *code = new_state<int32_t>(c);
  if (!code) return no_memory(c);
  for (*code = 0; *code < 7; ++*code)
    if (attr_is(c, "opType", names[*code])) return 0;
  return c->fail(c, "this UnaryOp code has no native kernel for integers");
}
static int unary_i32_run(const mnn_call *c) {
  const int32_t code = state<int32_t>(c);
  const uint32_t *x = in<uint32_t>(c, 0);
  uint32_t *y = out<uint32_t>(c, 0);
  parallel(c, stored(c->out[0]), 16384, [&](int64_t b, int64_t e, int32_t) {
    switch (code) {
      case 0: for (int64_t i = b; i < e; ++i) y[i] = int32_t(x[i]) < 0 ? 0u - x[i] : x[i]; break;
      case 1: for (int64_t i = b; i < e; ++i) y[i] = 0u - x[i]; break;
      case 2: for (int64_t i = b; i < e; ++i) y[i] = x[i] * x[i]; break;
      case 3: for (int64_t i = b; i < e; ++i) y[i] = uint32_t((int32_t(x[i]) > 0) - (int32_t(x[i]) < 0)); break;
      default: if (x != y) memcpy(y + b, x + b, size_t(e - b) * 4);
    }
  });
  return 0;
}

// Scale and PReLU: a factor and an offset (or a slope) for each channel.
struct PerChannel {
  float *a, *b;  // padded to whole blocks
};
static int per_channel_prepare(mnn_call *c) {
  const mnn_tensor &x = c->in[0];
  if (x.rank < 2) return c->fail(c, "fewer than 2 dimensions");
  for (uint32_t i = 1; i < c->n_in; ++i) {
    if (!present(c, i)) continue;
    if (!c->in[i].data) return c->fail(c, "the factors are not constant");
    if (count(c->in[i]) != 1 && count(c->in[i]) != x.shape[1]) return c->fail(c, "the factors are not one for each channel");
    if (c->in[i].rank > 1 && c->in[i].shape[c->in[i].rank - 1] == count(c->in[i]) && x.rank != c->in[i].rank - 1 && count(c->in[i]) > 1)
      return c->fail(c, "the factors do not lie along dimension 1");
  }
  PerChannel *s = new_state<PerChannel>(c);
  if (!s) return no_memory(c);
  s->a = padded_copy(c, 1, x.shape[1], 1);
  s->b = padded_copy(c, 2, x.shape[1], 0);
  return s->a && s->b ? 0 : no_memory(c);
}
template <class F> static inline void per_channel(const mnn_call *c, const F &f) {
  const mnn_tensor &t = c->in[0];
  const int64_t inner = count(t, 2), blocks = ceil_div(t.shape[1], kLanes);
  parallel(c, t.shape[0] * blocks, grain_for(inner * kLanes), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const float *x = in<float>(c, 0) + i * inner * kLanes;
      float *y = out<float>(c, 0) + i * inner * kLanes;
      f(x, y, inner, i % blocks * kLanes);
    }
  });
}
static int scale_run(const mnn_call *c) {
  const PerChannel &s = state<PerChannel>(c);
  per_channel(c, [&](const float *x, float *y, int64_t n, int64_t channel) {
    const vf a = load(s.a + channel), b = load(s.b + channel);
    for (int64_t i = 0; i < n; ++i) store(y + i * kLanes, fma(load(x + i * kLanes), a, b));
  });
  return 0;
}
static int prelu_run(const mnn_call *c) {
  const PerChannel &s = state<PerChannel>(c);
  per_channel(c, [&](const float *x, float *y, int64_t n, int64_t channel) {
    const vf a = load(s.a + channel);
    for (int64_t i = 0; i < n; ++i) {
      const vf v = load(x + i * kLanes);
      store(y + i * kLanes, v > vf{} ? v : v * a);
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

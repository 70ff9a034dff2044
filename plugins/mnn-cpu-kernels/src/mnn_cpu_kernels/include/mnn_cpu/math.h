// Elementary functions of float vectors. Errors are against the exact value, seen over the whole range.
#pragma once
#include <math.h>

#include "vec.h"

namespace mnn {
namespace MNN_ISA {

// Rounds to the nearest integer, halves to even; exact for |x| < 2^22, larger ones pass through.
static inline vf round_even(vf x) {
  const vf magic = dup(12582912.0f);  // 1.5 * 2^23
  const vf r = (x + magic) - magic;
  const vf a = as_float(as_int(x) & dup(int32_t(0x7fffffff)));
  return a < dup(4194304.0f) ? as_float(as_int(r) | (as_int(x) & dup(int32_t(0x80000000)))) : x;
}

// e^x; 2 ulp. Cody-Waite reduction, then a polynomial of degree 6 (Cephes). Gradual underflow is flushed.
static inline vf exp(vf x) {
  const vf hi = dup(88.7228391f), lo = dup(-87.3365479f);
  const vf in = min(max(x, lo), hi);
  const vf n = round_even(in * dup(1.44269504088896341f));
  vf r = fma(n, dup(-0.693359375f), in);
  r = fma(n, dup(2.12194440e-4f), r);
  vf p = dup(1.9875691500e-4f);
  p = fma(p, r, dup(1.3981999507e-3f));
  p = fma(p, r, dup(8.3334519073e-3f));
  p = fma(p, r, dup(4.1665795894e-2f));
  p = fma(p, r, dup(1.6666665459e-1f));
  p = fma(p, r, dup(5.0000001201e-1f));
  p = fma(p, r * r, r) + dup(1.0f);
  // 2^n in two steps: n = 128 has no float of its own.
  const vi k = to_int(n), half = k >> 1;
  vf y = p * as_float((half + dup(int32_t(127))) << 23) * as_float((k - half + dup(int32_t(127))) << 23);
  y = x > hi ? dup(INFINITY) : y;
  y = x < lo ? vf{} : y;
  return x != x ? x : y;
}

// Natural logarithm; 2 ulp (Cephes). -inf at 0, NaN below.
static inline vf log(vf x) {
  const vf tiny = dup(1.17549435e-38f);
  const vi small = as_int(x < tiny ? dup(1.0f) : vf{});  // subnormal: scale up by 2^23
  vf v = small != 0 ? x * dup(8388608.0f) : x;
  const vi bits = as_int(v);
  vi e = ((bits >> 23) & dup(int32_t(0xff))) - dup(int32_t(126));
  e = small != 0 ? e - dup(int32_t(23)) : e;
  vf m = as_float((bits & dup(int32_t(0x007fffff))) | dup(int32_t(0x3f000000)));  // 0.5 <= m < 1
  const vi low = m < dup(0.707106781186547524f);
  e += low;  // -1 where low
  m = low ? m + m : m;
  m -= dup(1.0f);
  const vf ef = to_float(e), z = m * m;
  vf p = dup(7.0376836292e-2f);
  p = fma(p, m, dup(-1.1514610310e-1f));
  p = fma(p, m, dup(1.1676998740e-1f));
  p = fma(p, m, dup(-1.2420140846e-1f));
  p = fma(p, m, dup(1.4249322787e-1f));
  p = fma(p, m, dup(-1.6668057665e-1f));
  p = fma(p, m, dup(2.0000714765e-1f));
  p = fma(p, m, dup(-2.4999993993e-1f));
  p = fma(p, m, dup(3.3333331174e-1f));
  vf y = p * m * z;
  y = fma(ef, dup(-2.12194440e-4f), y);
  y = fma(z, dup(-0.5f), y);
  y = m + y;
  y = fma(ef, dup(0.693359375f), y);
  y = x == dup(INFINITY) ? x : y;
  y = x == vf{} ? dup(-INFINITY) : y;
  y = x < vf{} ? dup(NAN) : y;
  return x != x ? x : y;
}

// log(1 + e^x), without overflow; 4 ulp. log(1 + e) is corrected for the rounding of the sum (Goldberg 1991, theorem 4).
static inline vf softplus(vf x) {
  const vf e = exp(-as_float(as_int(x) & dup(int32_t(0x7fffffff)))), u = dup(1.0f) + e;
  const vf small = u == dup(1.0f) ? e : log(u) * e / (u - dup(1.0f));
  return (x > vf{} ? x : vf{}) + small;
}

// 1 / (1 + e^-x); 4 ulp.
static inline vf sigmoid(vf x) { return dup(1.0f) / (dup(1.0f) + exp(-x)); }

// tanh; 3 ulp: an odd polynomial where exp would cancel (Cephes), 1 - 2/(e^2x + 1) elsewhere.
static inline vf tanh(vf x) {
  const vf a = as_float(as_int(x) & dup(int32_t(0x7fffffff)));
  const vf s = x * x;
  vf p = dup(-5.70498872745e-3f);
  p = fma(p, s, dup(2.06390887954e-2f));
  p = fma(p, s, dup(-5.37397155531e-2f));
  p = fma(p, s, dup(1.33314422036e-1f));
  p = fma(p, s, dup(-3.33332819422e-1f));
  const vf near = fma(p * s, x, x);
  const vf far = dup(1.0f) - dup(2.0f) / (exp(a + a) + dup(1.0f));
  const vf y = as_float(as_int(a < dup(0.625f) ? near : far) | (as_int(x) & dup(int32_t(0x80000000))));
  return x != x ? x : y;
}

// erf; 3 ulp: x + x p(x^2) near 0, 1 - e^-q(|x| - 2) elsewhere, both fitted by least squares at Chebyshev nodes.
static inline vf erf(vf x) {
  const vf a = as_float(as_int(x) & dup(int32_t(0x7fffffff)));
  const vf s = x * x, t = min(a, dup(4.0f)) - dup(2.0f);
  vf p = dup(8.40484956e-05f);
  p = fma(p, s, dup(-0.000815134056f));
  p = fma(p, s, dup(0.00520183767f));
  p = fma(p, s, dup(-0.0268597448f));
  p = fma(p, s, dup(0.112837022f));
  p = fma(p, s, dup(-0.376126342f));
  p = fma(p, s, dup(0.128379167f));
  vf q = dup(2.11796905e-05f);
  q = fma(q, t, dup(-0.000138750496f));
  q = fma(q, t, dup(0.000730030404f));
  q = fma(q, t, dup(-0.00356974885f));
  q = fma(q, t, dup(0.0164662623f));
  q = fma(q, t, dup(0.923750965f));
  q = fma(q, t, dup(4.41816074f));
  q = fma(q, t, dup(5.36494126f));
  vf far = dup(1.0f) - exp(-q);
  far = as_float(as_int(far) | (as_int(x) & dup(int32_t(0x80000000))));
  const vf y = a < dup(0.92f) ? fma(p, x, x) : far;
  return x != x ? x : y;
}

static inline vf sqrt(vf x) {
  vf y;
  MNN_UNROLL for (int64_t i = 0; i < kLanes; ++i) y[i] = __builtin_sqrtf(x[i]);
  return y;
}
// A function of the C library, lane by lane, for functions that no network is slow by.
template <float (*F)(float)> static inline vf each(vf x) {
  vf y{};
  for (int64_t i = 0; i < kLanes; ++i) y[i] = F(x[i]);
  return y;
}

}  // namespace MNN_ISA
}  // namespace mnn

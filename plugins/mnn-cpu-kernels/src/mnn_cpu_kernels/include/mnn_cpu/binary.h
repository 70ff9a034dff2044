// BinaryOp and Select: numpy broadcasting, for float and int32.
#pragma once
#include "call.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

constexpr int32_t kMaxRank = 12;

// Loops of one operation: both vectors, the right (left) operand a scalar.
template <class X, class Y> struct BinaryLoops {
  const char *name;
  void (*vv)(const X *, const X *, Y *, int64_t);
  void (*vs)(const X *, X, Y *, int64_t);
  void (*sv)(X, const X *, Y *, int64_t);
};

template <class X> struct Vector;
template <> struct Vector<float> { typedef vf type; };
template <> struct Vector<int32_t> { typedef vi type; };

template <class F, class X, class Y> struct Loops {
  typedef typename Vector<X>::type V;
  static void vv(const X *a, const X *b, Y *y, int64_t n) {
    for (; n >= kLanes; n -= kLanes, a += kLanes, b += kLanes, y += kLanes) store(y, F::f(load(a), load(b)));
    if (n) store_tail(y, F::f(load_tail(a, n), load_tail(b, n)), n);
  }
  static void vs(const X *a, X b, Y *y, int64_t n) {
    const V s = dup(b);
    for (; n >= kLanes; n -= kLanes, a += kLanes, y += kLanes) store(y, F::f(load(a), s));
    if (n) store_tail(y, F::f(load_tail(a, n), s), n);
  }
  static void sv(X a, const X *b, Y *y, int64_t n) {
    const V s = dup(a);
    for (; n >= kLanes; n -= kLanes, b += kLanes, y += kLanes) store(y, F::f(s, load(b)));
    if (n) store_tail(y, F::f(s, load_tail(b, n)), n);
  }
};

static inline vi truth(vi mask) { return mask & dup(int32_t(1)); }
// Lane by lane, for what vectors lack.
template <class V, class F> static inline V lanes(V a, V b, const F &f) {
  V y{};
  for (int64_t i = 0; i < kLanes; ++i) y[i] = f(a[i], b[i]);
  return y;
}
static inline float floor_mod(float a, float b) { const float m = fmodf(a, b); return m != 0 && (m < 0) != (b < 0) ? m + b : m; }
static inline int32_t int_div(int32_t a, int32_t b) { return b == 0 ? 0 : b == -1 ? int32_t(0u - uint32_t(a)) : a / b; }
static inline int32_t int_rem(int32_t a, int32_t b) { return b == 0 || b == -1 ? 0 : a % b; }
static inline int32_t int_mod(int32_t a, int32_t b) { const int32_t m = int_rem(a, b); return m != 0 && (m < 0) != (b < 0) ? m + b : m; }
static inline int32_t int_floor_div(int32_t a, int32_t b) { return b == 0 ? 0 : int_div(a, b) - (int_rem(a, b) != 0 && (a < 0) != (b < 0)); }
// Shifts by more than there are bits, or by less than 0, leave nothing but the sign.
static inline int32_t int_left(int32_t a, int32_t b) { return uint32_t(b) < 32 ? int32_t(uint32_t(a) << b) : 0; }
static inline int32_t int_right(int32_t a, int32_t b) { return a >> (uint32_t(b) < 32 ? b : 31); }
// Wraps around; negative powers are truncated towards zero.
static inline int32_t int_pow(int32_t a, int32_t b) {
  if (b < 0) return a == 1 || (a == -1 && b % 2 == 0) ? 1 : a == -1 ? -1 : 0;
  uint32_t power = 1;
  for (uint32_t x = uint32_t(a); b; b >>= 1, x *= x)
    if (b & 1) power *= x;
  return int32_t(power);
}

#define MNN_F(name, V, R, expression) struct name { static inline R f(V a, V b) { return expression; } };
MNN_F(AddF, vf, vf, a + b)
MNN_F(SubF, vf, vf, a - b)
MNN_F(MulF, vf, vf, a * b)
MNN_F(DivF, vf, vf, a / b)
MNN_F(MaxF, vf, vf, b != b ? b : max_nan(a, b))
MNN_F(MinF, vf, vf, b != b ? b : min_nan(a, b))
MNN_F(PowF, vf, vf, lanes(a, b, powf))
MNN_F(ModF, vf, vf, lanes(a, b, fmodf))
MNN_F(FloorModF, vf, vf, lanes(a, b, floor_mod))
MNN_F(FloorDivF, vf, vf, each<floorf>(a / b))
MNN_F(SquaredF, vf, vf, (a - b) * (a - b))
MNN_F(Atan2F, vf, vf, lanes(a, b, atan2f))
MNN_F(MulSiluF, vf, vf, a * b * sigmoid(b))
MNN_F(GreaterF, vf, vi, truth(a > b))
MNN_F(GreaterEqualF, vf, vi, truth(a >= b))
MNN_F(LessF, vf, vi, truth(a < b))
MNN_F(LessEqualF, vf, vi, truth(a <= b))
MNN_F(EqualF, vf, vi, truth(a == b))
MNN_F(NotEqualF, vf, vi, truth(a != b))
MNN_F(LogicalOrF, vf, vi, truth((a != 0) | (b != 0)))
MNN_F(LogicalXorF, vf, vi, truth((a != 0) ^ (b != 0)))
MNN_F(AddI, vi, vi, a + b)
MNN_F(SubI, vi, vi, a - b)
MNN_F(MulI, vi, vi, a *b)
MNN_F(DivI, vi, vi, lanes(a, b, int_div))
MNN_F(FloorDivI, vi, vi, lanes(a, b, int_floor_div))
MNN_F(ModI, vi, vi, lanes(a, b, int_mod))
MNN_F(MaxI, vi, vi, a > b ? a : b)
MNN_F(MinI, vi, vi, a < b ? a : b)
MNN_F(SquaredI, vi, vi, (a - b) * (a - b))
MNN_F(AndI, vi, vi, a &b)
MNN_F(OrI, vi, vi, a | b)
MNN_F(XorI, vi, vi, a ^ b)
MNN_F(LogicalOrI, vi, vi, truth((a != 0) | (b != 0)))
MNN_F(LogicalXorI, vi, vi, truth((a != 0) ^ (b != 0)))
MNN_F(LeftI, vi, vi, lanes(a, b, int_left))
MNN_F(RightI, vi, vi, lanes(a, b, int_right))
MNN_F(PowI, vi, vi, lanes(a, b, int_pow))
MNN_F(GreaterI, vi, vi, truth(a > b))
MNN_F(GreaterEqualI, vi, vi, truth(a >= b))
MNN_F(LessI, vi, vi, truth(a < b))
MNN_F(LessEqualI, vi, vi, truth(a <= b))
MNN_F(EqualI, vi, vi, truth(a == b))
MNN_F(NotEqualI, vi, vi, truth(a != b))
#undef MNN_F

#define MNN_ROW(name, F, X, Y) {#name, Loops<F, X, Y>::vv, Loops<F, X, Y>::vs, Loops<F, X, Y>::sv}
static const BinaryLoops<float, float> kBinaryF[] = {
    MNN_ROW(ADD, AddF, float, float), MNN_ROW(SUB, SubF, float, float), MNN_ROW(MUL, MulF, float, float),
    MNN_ROW(DIV, DivF, float, float), MNN_ROW(REALDIV, DivF, float, float), MNN_ROW(MAX_TEMP, MaxF, float, float),
    MNN_ROW(MIN_TEMP, MinF, float, float), MNN_ROW(MAXIMUM, MaxF, float, float), MNN_ROW(MINIMUM, MinF, float, float),
    MNN_ROW(POW, PowF, float, float), MNN_ROW(MOD, ModF, float, float), MNN_ROW(FLOORMOD, FloorModF, float, float),
    MNN_ROW(FLOORDIV, FloorDivF, float, float), MNN_ROW(SquaredDifference, SquaredF, float, float),
    MNN_ROW(ATAN2, Atan2F, float, float), MNN_ROW(MUL_SILU, MulSiluF, float, float)};
static const BinaryLoops<float, int32_t> kBinaryFI[] = {
    MNN_ROW(GREATER, GreaterF, float, int32_t), MNN_ROW(GREATER_EQUAL, GreaterEqualF, float, int32_t),
    MNN_ROW(LESS, LessF, float, int32_t), MNN_ROW(LESS_EQUAL, LessEqualF, float, int32_t),
    MNN_ROW(EQUAL, EqualF, float, int32_t), MNN_ROW(NOTEQUAL, NotEqualF, float, int32_t),
    MNN_ROW(LOGICALOR, LogicalOrF, float, int32_t), MNN_ROW(LOGICALXOR, LogicalXorF, float, int32_t)};
static const BinaryLoops<int32_t, int32_t> kBinaryI[] = {
    MNN_ROW(ADD, AddI, int32_t, int32_t), MNN_ROW(SUB, SubI, int32_t, int32_t), MNN_ROW(MUL, MulI, int32_t, int32_t),
    MNN_ROW(DIV, DivI, int32_t, int32_t), MNN_ROW(REALDIV, DivI, int32_t, int32_t), MNN_ROW(FLOORDIV, FloorDivI, int32_t, int32_t),
    MNN_ROW(MOD, ModI, int32_t, int32_t), MNN_ROW(FLOORMOD, ModI, int32_t, int32_t), MNN_ROW(MAX_TEMP, MaxI, int32_t, int32_t),
    MNN_ROW(MIN_TEMP, MinI, int32_t, int32_t), MNN_ROW(MAXIMUM, MaxI, int32_t, int32_t), MNN_ROW(MINIMUM, MinI, int32_t, int32_t),
    MNN_ROW(SquaredDifference, SquaredI, int32_t, int32_t), MNN_ROW(BITWISE_AND, AndI, int32_t, int32_t),
    MNN_ROW(BITWISE_OR, OrI, int32_t, int32_t), MNN_ROW(BITWISE_XOR, XorI, int32_t, int32_t),
    MNN_ROW(LOGICALOR, LogicalOrI, int32_t, int32_t), MNN_ROW(LOGICALXOR, LogicalXorI, int32_t, int32_t),
    MNN_ROW(LEFTSHIFT, LeftI, int32_t, int32_t), MNN_ROW(RIGHTSHIFT, RightI, int32_t, int32_t), MNN_ROW(POW, PowI, int32_t, int32_t),
    MNN_ROW(GREATER, GreaterI, int32_t, int32_t), MNN_ROW(GREATER_EQUAL, GreaterEqualI, int32_t, int32_t),
    MNN_ROW(LESS, LessI, int32_t, int32_t), MNN_ROW(LESS_EQUAL, LessEqualI, int32_t, int32_t),
    MNN_ROW(EQUAL, EqualI, int32_t, int32_t), MNN_ROW(NOTEQUAL, NotEqualI, int32_t, int32_t)};
#undef MNN_ROW

static inline const BinaryLoops<float, float> *binary_table(float, float, size_t &n) { n = sizeof kBinaryF / sizeof *kBinaryF; return kBinaryF; }
static inline const BinaryLoops<float, int32_t> *binary_table(float, int32_t, size_t &n) { n = sizeof kBinaryFI / sizeof *kBinaryFI; return kBinaryFI; }
static inline const BinaryLoops<int32_t, int32_t> *binary_table(int32_t, int32_t, size_t &n) { n = sizeof kBinaryI / sizeof *kBinaryI; return kBinaryI; }

// How operands are walked: dimensions merged, element strides of each operand (0: broadcast).
template <class X, class Y> struct Binary {
  const BinaryLoops<X, Y> *loops;
  bool relu;
  int32_t rank;
  int64_t size[kMaxRank], a[kMaxRank], b[kMaxRank];
};

// Strides of a plain operand, as broadcast to the output's dimensions.
static inline bool broadcast_strides(const mnn_tensor &t, const mnn_tensor &to, int64_t *strides) {
  int64_t step = 1;
  for (int32_t d = to.rank - 1; d >= 0; --d) {
    const int32_t own = d - (to.rank - t.rank);
    const int64_t size = own >= 0 ? t.shape[own] : 1;
    if (size != 1 && size != to.shape[d]) return false;
    strides[d] = size == 1 ? 0 : step;
    step *= size;
  }
  return t.rank <= to.rank;
}

template <class X, class Y> static int binary_prepare(mnn_call *c) {
  size_t n;
  const BinaryLoops<X, Y> *table = binary_table(X(), Y(), n), *found = nullptr;
  const char *name = attr_text(c, "opType");
  for (size_t i = 0; i < n; ++i)
    if (!strcmp(table[i].name, name)) found = &table[i];
  if (!found) return c->fail(c, "this BinaryOp code has no native kernel for these types");
  Binary<X, Y> *s = new_state<Binary<X, Y>>(c);
  if (!s) return no_memory(c);
  s->loops = found;
  s->relu = attr_int(c, "activationType") == 1;
  const mnn_tensor &y = c->out[0];
  if (same_shape(c->in[0], y) && same_shape(c->in[1], y)) {  // any layout: one long row
    s->rank = 1, s->size[0] = stored(y), s->a[0] = s->b[0] = 1;
    return 0;
  }
  if (y.layout != MNN_PLAIN || c->in[0].layout != MNN_PLAIN || c->in[1].layout != MNN_PLAIN)
    return c->fail(c, "broadcasting needs plain tensors");
  if (y.rank > kMaxRank) return c->fail(c, "too many dimensions");
  int64_t a[kMaxRank], b[kMaxRank];
  if (!broadcast_strides(c->in[0], y, a) || !broadcast_strides(c->in[1], y, b)) return c->fail(c, "shapes do not broadcast");
  for (int32_t d = 0; d < y.rank; ++d) {
    if (y.shape[d] == 1) continue;
    int32_t &r = s->rank;
    const bool merge = r && s->a[r - 1] == a[d] * y.shape[d] && s->b[r - 1] == b[d] * y.shape[d];
    if (merge) --r;
    s->size[r] = (merge ? s->size[r] : 1) * y.shape[d];
    s->a[r] = a[d], s->b[r] = b[d];
    ++r;
  }
  if (!s->rank) s->rank = 1, s->size[0] = count(y), s->a[0] = s->b[0] = 1;
  return 0;
}

template <class Y> static inline void relu_row(Y *y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = y[i] > 0 || y[i] != y[i] ? y[i] : Y(0); }

template <class X, class Y> static int binary_run(const mnn_call *c) {
  const Binary<X, Y> &s = state<Binary<X, Y>>(c);
  const int32_t last = s.rank - 1;
  int64_t rows = 1, n = s.size[last], piece = n;
  for (int32_t d = 0; d < last; ++d) rows *= s.size[d];
  if (rows == 0 || n == 0) return 0;
  int64_t pieces = 1;
  if (rows == 1) piece = 8192, pieces = ceil_div(n, piece);
  const X *pa = in<X>(c, 0), *pb = in<X>(c, 1);
  Y *py = out<Y>(c, 0);
  parallel(c, rows * pieces, grain_for(piece), [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = pieces > 1 ? 0 : i, start = pieces > 1 ? i * piece : 0, length = min64(piece, n - start);
      int64_t oa = 0, ob = 0, rest = row;
      for (int32_t d = last - 1; d >= 0; --d) {
        const int64_t at = rest % s.size[d];
        rest /= s.size[d];
        oa += at * s.a[d], ob += at * s.b[d];
      }
      const X *a = pa + oa + start * s.a[last], *b = pb + ob + start * s.b[last];
      Y *y = py + row * n + start;
      if (s.a[last] && s.b[last]) s.loops->vv(a, b, y, length);
      else if (s.a[last]) s.loops->vs(a, *b, y, length);
      else if (s.b[last]) s.loops->sv(*a, b, y, length);
      else { Y v; s.loops->vs(a, *b, &v, 1); for (int64_t j = 0; j < length; ++j) y[j] = v; }
      if (s.relu) relu_row(y, length);
    }
  });
  return 0;
}

// Blocked images with an operand that has one value for each channel ([N or 1, C, 1...]), or one in all.
struct BinaryBlocked {
  const BinaryLoops<float, float> *loops;
  bool relu, swapped;  // swapped: the small operand is in[0]
  int32_t kind;        // 0: one value, 1: per channel, blocked; 2: per channel, plain constant in `constant`
  bool batched;        // the small operand has N of its own
  float *constant;
};
static int binary_blocked_prepare(mnn_call *c) {
  const char *name = attr_text(c, "opType");
  const BinaryLoops<float, float> *found = nullptr;
  for (const auto &row : kBinaryF)
    if (!strcmp(row.name, name)) found = &row;
  if (!found) return c->fail(c, "this BinaryOp code has no native kernel for these types");
  BinaryBlocked *s = new_state<BinaryBlocked>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &y = c->out[0];
  s->loops = found, s->relu = attr_int(c, "activationType") == 1;
  s->swapped = !same_shape(c->in[0], y);
  const mnn_tensor &big = c->in[s->swapped ? 1 : 0], &small = c->in[s->swapped ? 0 : 1];
  if (!same_shape(big, y) || y.rank < 3) return c->fail(c, "neither operand has the output's shape");
  if (count(small) == 1) {
    if (small.layout == MNN_BLOCKED && small.rank > 1 && small.shape[1] != 1) return c->fail(c, "unexpected operand");
    s->kind = 0;
    return 0;
  }
  if (small.rank != y.rank && small.rank != y.rank - 1) return c->fail(c, "the small operand is not one value for each channel");
  const int32_t shift = y.rank - small.rank;
  if (shift && small.layout == MNN_BLOCKED) return c->fail(c, "the small operand is blocked along another dimension");
  for (int32_t d = 2; d < y.rank; ++d)
    if (small.shape[d - shift] != 1) return c->fail(c, "the small operand is not one value for each channel");
  if (small.shape[1 - shift] != y.shape[1]) return c->fail(c, "the small operand is not one value for each channel");
  const int64_t batch = shift ? 1 : small.shape[0];
  s->batched = batch != 1;
  if (small.layout == MNN_BLOCKED) {
    s->kind = 1;
    return 0;
  }
  if (!small.data || s->batched) return c->fail(c, "a plain operand must be constant, and the same for all images");
  s->kind = 2;
  s->constant = padded_copy(c, s->swapped ? 0 : 1, y.shape[1], 0);
  return s->constant ? 0 : no_memory(c);
}
static int binary_blocked_run(const mnn_call *c) {
  const BinaryBlocked &s = state<BinaryBlocked>(c);
  const mnn_tensor &y = c->out[0];
  const int64_t inner = count(y, 2), blocks = ceil_div(y.shape[1], kLanes);
  const float *big = in<float>(c, s.swapped ? 1 : 0), *small = s.kind == 2 ? s.constant : in<float>(c, s.swapped ? 0 : 1);
  parallel(c, y.shape[0] * blocks, grain_for(inner * kLanes), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const float *x = big + i * inner * kLanes;
      float *to = out<float>(c, 0) + i * inner * kLanes;
      if (s.kind == 0) {
        if (s.swapped) s.loops->sv(*small, x, to, inner * kLanes);
        else s.loops->vs(x, *small, to, inner * kLanes);
      } else {
        const float *v = small + (s.batched ? i : i % blocks) * kLanes;
        // A row of repeated channel values, so that one long loop runs instead of one call for each pixel.
        float row[16 * kLanes];
        for (int64_t j = 0; j < 16; ++j) memcpy(row + j * kLanes, v, sizeof(vf));
        for (int64_t j = 0; j < inner; j += 16) {
          const int64_t n = min64(16, inner - j) * kLanes;
          if (s.swapped) s.loops->vv(row, x + j * kLanes, to + j * kLanes, n);
          else s.loops->vv(x + j * kLanes, row, to + j * kLanes, n);
        }
      }
      if (s.relu) relu_row(to, inner * kLanes);
    }
  });
  return 0;
}

// Select: cond (int32, > 0 or not 0), broadcast.
struct Select {
  int32_t rank;
  int64_t size[kMaxRank], stride[3][kMaxRank];
};
static int select_prepare(mnn_call *c) {
  const mnn_tensor &y = c->out[0];
  if (y.rank > kMaxRank) return c->fail(c, "too many dimensions");
  Select *s = new_state<Select>(c);
  if (!s) return no_memory(c);
  s->rank = y.rank;
  for (int32_t d = 0; d < y.rank; ++d) s->size[d] = y.shape[d];
  for (int i = 0; i < 3; ++i)
    if (!broadcast_strides(c->in[i], y, s->stride[i])) return c->fail(c, "shapes do not broadcast");
  return 0;
}
static int select_run(const mnn_call *c) {
  const Select &s = state<Select>(c);
  const int64_t n = s.rank ? s.size[s.rank - 1] : 1, rows = count(c->out[0]) / max64(n, 1);
  const int32_t *cond = in<int32_t>(c, 0), *yes = in<int32_t>(c, 1), *no = in<int32_t>(c, 2);
  int32_t *y = out<int32_t>(c, 0);
  const int32_t last = s.rank - 1;
  const int64_t step[3] = {s.rank ? s.stride[0][last] : 0, s.rank ? s.stride[1][last] : 0, s.rank ? s.stride[2][last] : 0};
  parallel(c, count(c->out[0]) ? rows : 0, grain_for(n), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t row = b; row < e; ++row) {
      int64_t at[3] = {0, 0, 0}, rest = row;
      for (int32_t d = last - 1; d >= 0; --d) {
        const int64_t i = rest % s.size[d];
        rest /= s.size[d];
        for (int k = 0; k < 3; ++k) at[k] += i * s.stride[k][d];
      }
      for (int64_t i = 0; i < n; ++i)
        y[row * n + i] = cond[at[0] + i * step[0]] ? yes[at[1] + i * step[1]] : no[at[2] + i * step[2]];
    }
  });
  return 0;
}

// Cast between float and int32 (truncating; what int32 cannot hold becomes INT32_MIN), 8-bit types, and to truth values.
template <class X, class Y> static inline Y cast_one(X x) { return Y(x); }
template <> inline int32_t cast_one<float, int32_t>(float x) { return x >= -2147483648.0f && x < 2147483648.0f ? int32_t(x) : INT32_MIN; }
template <> inline int8_t cast_one<float, int8_t>(float x) { return int8_t(cast_one<float, int32_t>(x)); }
template <> inline uint8_t cast_one<float, uint8_t>(float x) { return uint8_t(cast_one<float, int32_t>(x)); }

static int cast_prepare(mnn_call *c) {
  const char *to = attr_text(c, "dstT");
  bool *truth_value = new_state<bool>(c);
  if (!truth_value) return no_memory(c);
  *truth_value = !strcmp(to, "DT_BOOL");
  if (!strcmp(to, "DT_INT16") || !strcmp(to, "DT_UINT16")) return c->fail(c, "casts to 16 bits are not native");
  return 0;
}
template <class X, class Y> static int cast_run(const mnn_call *c) {
  const bool truth_value = state<bool>(c);
  const X *x = in<X>(c, 0);
  Y *y = out<Y>(c, 0);
  parallel(c, stored(c->out[0]), 16384, [&](int64_t b, int64_t e, int32_t) {
    if (truth_value) for (int64_t i = b; i < e; ++i) y[i] = Y(x[i] != 0);
    else for (int64_t i = b; i < e; ++i) y[i] = cast_one<X, Y>(x[i]);
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

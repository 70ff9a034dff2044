// The product of bytes that int8 convolutions and matrix products share: register tiles of rows times two vectors of columns, and
// what becomes of the sums.
#pragma once
#include <type_traits>

#include "call.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

constexpr int kByteRows = MNN_VLEN == 16 ? 14 : 6;  // rows of a tile: kByteRows * 2 accumulators fill the registers
constexpr int64_t kBytePanel = 2 * kLanes;          // columns of a packed panel

static inline bool is_byte(const mnn_tensor &t) { return t.dtype.bits == 8 && (t.dtype.code == MNN_INT || t.dtype.code == MNN_UINT); }
// What is added to the numbers of a tensor to make them 0..255.
static inline int32_t to_unsigned(const mnn_tensor &t) { return t.dtype.code == MNN_INT ? 128 : 0; }
static inline int32_t byte_at(const mnn_tensor &t, int64_t i) {
  return t.dtype.code == MNN_INT ? static_cast<const int8_t *>(t.data)[i] : static_cast<const uint8_t *>(t.data)[i];
}

// Bytes 0..255 as the left side's numbers, n of them and zeros up to `padded`; returns their sum.
static inline int32_t left_row(const uint8_t *from, int64_t n, int32_t add, unit_left *to, int64_t padded) {
  const uint8_t flip = uint8_t(add);
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t v = from[i] ^ flip;
    to[i] = unit_left(v), sum += v;
  }
  for (int64_t i = n; i < padded; ++i) to[i] = 0;
  return int32_t(sum);
}

// Rows times columns over a block of units at a time, each block for each place of a kernel. Steps count units.
struct ByteTile {
  const int32_t *a, *w;
  int64_t blocks, units;                         // blocks of the left side, units in one
  int64_t block_step, row_step, dx, pixel_step;  // next block, kernel row, kernel column, row of the tile
  int64_t kh, kw;
};

template <int P, int B> static inline void byte_tile(const ByteTile &t, vi acc[P][B]) {
  const int32_t *w = t.w;
  MNN_UNROLL for (int i = 0; i < P; ++i) MNN_UNROLL for (int j = 0; j < B; ++j) acc[i][j] = vi{};
  for (int64_t ib = 0; ib < t.blocks; ++ib)
    for (int64_t y = 0; y < t.kh; ++y)
      for (int64_t x = 0; x < t.kw; ++x) {
        const int32_t *from = t.a + ib * t.block_step + y * t.row_step + x * t.dx;
        for (int64_t u = 0; u < t.units; ++u, ++from, w += kBytePanel) {
          vi b[B];
          MNN_UNROLL for (int j = 0; j < B; ++j) b[j] = load(w + j * kLanes);
          MNN_UNROLL for (int i = 0; i < P; ++i) {
            const vi v = dup(from[i * t.pixel_step]);
            MNN_UNROLL for (int j = 0; j < B; ++j) acc[i][j] = dot(acc[i][j], v, b[j]);
          }
        }
      }
}

// What becomes of the sums: see ops/int8.py, `finished`. Vectors of a column each lie in scratch, filled in each run.
enum class Made { kInt32, kFloat, kUint8, kInt8 };
struct Finish {
  Made made;
  float zero, low, high;
};
// Reads the attributes; inputs `scale` and `scale + 1` are scale and bias.
static inline const char *finish_of(const mnn_call *c, uint32_t scale, Finish &f) {
  const mnn_dtype d = c->out[0].dtype;
  if (d.code == MNN_FLOAT && d.bits == 32) f.made = Made::kFloat;
  else if (d.code == MNN_INT && d.bits == 32) f.made = Made::kInt32;
  else if (is_byte(c->out[0])) f.made = d.code == MNN_INT ? Made::kInt8 : Made::kUint8;
  else return "another type of result";
  const int64_t least = f.made == Made::kInt8 ? -128 : 0, most = f.made == Made::kInt8 ? 127 : 255;
  f.zero = float(attr_int(c, "zero"));
  f.low = float(max64(least, attr_int(c, "low"))), f.high = float(min64(most, attr_int(c, "high")));
  const auto is = [&](uint32_t i, int code) { return !present(c, i) || (c->in[i].dtype.code == code && c->in[i].dtype.bits == 32); };
  if (!is(scale, MNN_FLOAT) || !is(scale + 1, f.made == Made::kFloat ? MNN_FLOAT : MNN_INT)) return "other types of scale or bias";
  return nullptr;
}
// Scale and bias of each column, and what the zero point of the left side takes away from its sum.
struct Columns {
  int32_t *bias;
  float *scale, *shift;
};
static inline size_t columns_bytes(int64_t n) { return size_t(n) * 12; }
static inline Columns columns_at(void *p, int64_t n) {
  int32_t *bias = static_cast<int32_t *>(p);
  return {bias, reinterpret_cast<float *>(bias + n), reinterpret_cast<float *>(bias + 2 * n)};
}
static inline void fill_column(const mnn_call *c, const Finish &f, uint32_t scale, int64_t from, const Columns &to, int64_t at, int32_t fixed) {
  const auto place = [&](uint32_t i) { return count(c->in[i]) == 1 ? 0 : from; };
  const bool biased = present(c, scale + 1);
  to.scale[at] = present(c, scale) ? in<float>(c, scale)[place(scale)] : 1.0f;
  to.shift[at] = biased && f.made == Made::kFloat ? in<float>(c, scale + 1)[place(scale + 1)] : 0.0f;
  const uint32_t bias = biased && f.made != Made::kFloat ? uint32_t(in<int32_t>(c, scale + 1)[place(scale + 1)]) : 0u;
  to.bias[at] = int32_t(bias + uint32_t(fixed));
}

// round(v) + zero within the limits; NaN is 0.
static inline vi to_byte(vf v, vf zero, vf low, vf high) {
  const vf x = min(max(round_even(settled(v)) + zero, low), high);
  return v != v ? vi{} : to_int(x);
}

// Sums of one vector of columns, n of them, as what they become.
template <class T> static inline void put(const Finish &f, T *p, vi total, vf scale, vf shift, int64_t n);
template <> inline void put(const Finish &, int32_t *p, vi total, vf, vf, int64_t n) {
  if (n >= kLanes) store(p, total);
  else store_tail(p, total, n);
}
template <> inline void put(const Finish &, float *p, vi total, vf scale, vf shift, int64_t n) {
  const vf v = settled(to_float(total) * scale) + shift;
  if (n >= kLanes) store(p, v);
  else store_tail(p, v, n);
}
template <class T> static inline void put_byte(const Finish &f, T *p, vi total, vf scale, int64_t n) {
  const vi v = to_byte(to_float(total) * scale, dup(f.zero), dup(f.low), dup(f.high));
  if (n >= kLanes) return store_narrow(p, v);
  T tail[kLanes];
  store_narrow(tail, v);
  memcpy(p, tail, size_t(n));
}
template <> inline void put(const Finish &f, uint8_t *p, vi total, vf scale, vf, int64_t n) { put_byte(f, p, total, scale, n); }
template <> inline void put(const Finish &f, int8_t *p, vi total, vf scale, vf, int64_t n) { put_byte(f, p, total, scale, n); }

// Calls f with a null pointer of the result's type.
template <class F> static inline void for_type(Made made, const F &f) {
  switch (made) {
    case Made::kInt32: return f(static_cast<int32_t *>(nullptr));
    case Made::kFloat: return f(static_cast<float *>(nullptr));
    case Made::kUint8: return f(static_cast<uint8_t *>(nullptr));
    case Made::kInt8: return f(static_cast<int8_t *>(nullptr));
  }
}

}  // namespace MNN_ISA
}  // namespace mnn

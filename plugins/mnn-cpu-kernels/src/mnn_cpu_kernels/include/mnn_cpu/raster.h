// Raster: strided copies. Attribute "regions": for each source, src offset, dst offset, n, n sizes, n src and n dst strides.
#pragma once
#include "call.h"

namespace mnn {
namespace MNN_ISA {

constexpr int32_t kMaxDims = 12;

struct Copy {
  int64_t source, from, to, rank, rows;  // rows: product of all sizes but the last
  int64_t size[kMaxDims], src[kMaxDims], dst[kMaxDims];
};
struct Raster {
  int64_t n, item;
  bool fill;
  uint64_t value;  // of elements that no region covers
  Copy *copies;
};

static int raster_prepare(mnn_call *c) {
  const mnn_attr *regions = attr(c, "regions");
  if (!regions || regions->kind != 'I') return c->fail(c, "no regions");
  Raster *s = new_state<Raster>(c);
  if (!s) return no_memory(c);
  s->item = c->out[0].dtype.bits / 8;
  for (int64_t at = 0; at < regions->n; at += 4 + 3 * regions->v.ints[at + 3]) ++s->n;
  s->copies = static_cast<Copy *>(c->alloc(c, size_t(s->n) * sizeof(Copy)));
  if (!s->copies) return no_memory(c);
  const int64_t *p = regions->v.ints;
  for (int64_t i = 0; i < s->n; ++i) {
    Copy &r = s->copies[i];
    r.source = p[0], r.from = p[1], r.to = p[2], r.rank = p[3], r.rows = 1;
    if (r.rank > kMaxDims) return c->fail(c, "too many dimensions");
    for (int64_t d = 0; d < r.rank; ++d) r.size[d] = p[4 + d], r.src[d] = p[4 + r.rank + d], r.dst[d] = p[4 + 2 * r.rank + d];
    if (!r.rank) r.rank = 1, r.size[0] = 1, r.src[0] = r.dst[0] = 1, p += 4;
    else p += 4 + 3 * r.rank;
    for (int64_t d = 0; d + 1 < r.rank; ++d) r.rows *= r.size[d];
  }
  const mnn_attr *fill = attr(c, "fill");
  s->fill = fill && (fill->kind == 'i' || fill->kind == 'f');
  if (s->fill) {
    const mnn_dtype t = c->out[0].dtype;
    const double v = fill->kind == 'f' ? fill->v.f : double(fill->v.i);
    const float f = float(v);
    const int64_t integer = fill->kind == 'i' ? fill->v.i : int64_t(v);
    if (t.code == MNN_FLOAT && t.bits == 32) memcpy(&s->value, &f, 4);
    else if (t.code == MNN_FLOAT && t.bits == 64) memcpy(&s->value, &v, 8);
    else if (t.code == MNN_FLOAT && v != 0) return c->fail(c, "16-bit fill values are not native");
    else s->value = uint64_t(integer);
  }
  return 0;
}

template <class T> static void copy_row(const T *x, T *y, int64_t n, int64_t src, int64_t dst) {
  if (src == 1 && dst == 1) memcpy(y, x, size_t(n) * sizeof(T));
  else if (src == 0) for (int64_t i = 0; i < n; ++i) y[i * dst] = *x;
  else for (int64_t i = 0; i < n; ++i) y[i * dst] = x[i * src];
}

// The last two dimensions, in small squares where one side is not along memory: a transpose.
template <class T> static void copy_plane(const T *x, T *y, const Copy &r, int64_t first, int64_t last) {
  const int64_t d = r.rank - 1, n = r.size[d], sx = r.src[d], sy = r.dst[d];
  constexpr int64_t kTile = 32;
  if ((sx == 1 && sy == 1) || r.rank < 2) {
    for (int64_t i = first; i < last; ++i) copy_row(x + i * (d ? r.src[d - 1] : 0), y + i * (d ? r.dst[d - 1] : 0), n, sx, sy);
    return;
  }
  const int64_t rx = r.src[d - 1], ry = r.dst[d - 1];
  for (int64_t j0 = 0; j0 < n; j0 += kTile)
    for (int64_t i = first; i < last; ++i)
      for (int64_t j = j0; j < min64(j0 + kTile, n); ++j) y[i * ry + j * sy] = x[i * rx + j * sx];
}

template <class T> static int raster_typed(const mnn_call *c, const Raster &s) {
  T *y = out<T>(c, 0);
  if (s.fill) {
    T v;
    memcpy(&v, &s.value, sizeof v);
    parallel(c, count(c->out[0]), 16384, [&](int64_t b, int64_t e, int32_t) { for (int64_t i = b; i < e; ++i) y[i] = v; });
  }
  for (int64_t k = 0; k < s.n; ++k) {
    const Copy &r = s.copies[k];
    const T *x = in<T>(c, uint32_t(r.source)) + r.from;
    const int64_t planes = r.rank > 1 ? r.rows / max64(1, r.size[r.rank - 2]) : 1, rows = r.rank > 1 ? r.size[r.rank - 2] : 1;
    if (!r.rows || !rows || !r.size[r.rank - 1]) continue;
    if (planes == 1 && r.rank == 1) {
      copy_row(x, y + r.to, r.size[0], r.src[0], r.dst[0]);
      continue;
    }
    constexpr int64_t kBand = 32;
    const int64_t bands = ceil_div(rows, kBand);
    parallel(c, planes * bands, grain_for(min64(kBand, rows) * r.size[r.rank - 1]), [&](int64_t b, int64_t e, int32_t) {
      for (int64_t i = b; i < e; ++i) {
        int64_t from = 0, to = r.to, rest = i / bands;
        for (int64_t d = r.rank - 3; d >= 0; --d) {
          from += rest % r.size[d] * r.src[d], to += rest % r.size[d] * r.dst[d];
          rest /= r.size[d];
        }
        const int64_t first = i % bands * kBand;
        copy_plane(x + from, y + to, r, first, min64(rows, first + kBand));
      }
    });
  }
  return 0;
}

static int raster_run(const mnn_call *c) {
  const Raster &s = state<Raster>(c);
  switch (s.item) {
    case 1: return raster_typed<uint8_t>(c, s);
    case 2: return raster_typed<uint16_t>(c, s);
    case 4: return raster_typed<uint32_t>(c, s);
    case 8: return raster_typed<uint64_t>(c, s);
  }
  return c->fail(c, "elements of an unknown size");
}

}  // namespace MNN_ISA
}  // namespace mnn

// GatherND, GatherElements, ScatterNd, ScatterElements: elements and slices at computed coordinates.
#pragma once
#include "call.h"

namespace mnn {
namespace MNN_ISA {

constexpr int32_t kIndexRank = 12;

// One coordinate, counted from the end if it is negative; false if it is out of range.
static inline bool wrap(int64_t &i, int64_t n) {
  if (i < 0) i += n;
  return i >= 0 && i < n;
}

// Slices at coordinates: the last axis of the indices holds `depth` of them.
struct Slices {
  int64_t rows, batch_rows, batch_step, depth, inner;  // inner: elements of a slice
  int64_t size[kIndexRank], step[kIndexRank];          // of each coordinate, in slices
};

// data: what is indexed; batch: leading axes that data and indices share.
static bool slices(const mnn_tensor &data, const mnn_tensor &indices, int32_t batch, Slices &s) {
  if (indices.rank < 1 || batch < 0 || batch >= indices.rank) return false;
  s.depth = indices.shape[indices.rank - 1];
  if (s.depth > kIndexRank || s.depth + batch > data.rank) return false;
  const int32_t depth = int32_t(s.depth);
  s.rows = count(indices, 0, indices.rank - 1);
  s.batch_rows = count(indices, batch, indices.rank - 1);
  s.inner = count(data, batch + depth);
  int64_t step = 1;
  for (int32_t d = depth - 1; d >= 0; --d) s.size[d] = data.shape[batch + d], s.step[d] = step, step *= s.size[d];
  s.batch_step = step;
  return true;
}
// The slice that row i of the indices stands for; -1 if it is out of range.
static inline int64_t slice_of(const Slices &s, const int32_t *indices, int64_t row) {
  int64_t at = row / max64(s.batch_rows, 1) * s.batch_step;
  for (int64_t d = 0; d < s.depth; ++d) {
    int64_t i = indices[row * s.depth + d];
    if (!wrap(i, s.size[d])) return -1;
    at += i * s.step[d];
  }
  return at;
}

static int gather_nd_prepare(mnn_call *c) {
  Slices *s = new_state<Slices>(c);
  if (!s) return no_memory(c);
  if (!slices(c->in[0], c->in[1], int32_t(attr_int(c, "axis")), *s)) return c->fail(c, "indices that do not fit the data");
  s->inner *= c->in[0].dtype.bits / 8;  // bytes
  return 0;
}
static int gather_nd_run(const mnn_call *c) {
  const Slices &s = state<Slices>(c);
  const int32_t *indices = in<int32_t>(c, 1);
  if (!s.inner) return 0;
  for (int64_t i = 0; i < s.rows; ++i)
    if (slice_of(s, indices, i) < 0) return c->fail(c, "an index is out of range");
  parallel(c, s.rows, grain_for(s.inner), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i)
      memcpy(out<char>(c, 0) + i * s.inner, in<char>(c, 0) + slice_of(s, indices, i) * s.inner, size_t(s.inner));
  });
  return 0;
}

// Elements by index along one axis; the indices may be shorter than the data along the others.
struct Elements {
  int32_t rank, axis;
  int64_t n, step, count;                          // of the axis; count: indices
  int64_t size[kIndexRank], stride[kIndexRank];    // of the indices; of the data, 0 along the axis
};
static int elements_prepare(mnn_call *c, uint32_t axis_input) {
  Elements *s = new_state<Elements>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0], &indices = c->in[1];
  int64_t axis = attr_int(c, "axis");
  if (present(c, axis_input)) {
    if (!c->in[axis_input].data || count(c->in[axis_input]) != 1) return c->fail(c, "the axis is not constant");
    axis = *in<int32_t>(c, axis_input);
  }
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank || x.rank != indices.rank || x.rank > kIndexRank) return c->fail(c, "indices that do not fit the data");
  s->rank = x.rank, s->axis = int32_t(axis), s->n = x.shape[axis], s->count = count(indices);
  int64_t step = 1;
  for (int32_t d = x.rank - 1; d >= 0; --d) {
    s->size[d] = indices.shape[d];
    s->stride[d] = d == axis ? 0 : step;
    if (d == axis) s->step = step;
    step *= x.shape[d];
  }
  return 0;
}
static int gather_elements_prepare(mnn_call *c) { return elements_prepare(c, 2); }

// Where index i reads or writes in the data; the index itself is in range.
static inline int64_t element_of(const Elements &s, const int32_t *indices, int64_t i) {
  int64_t at = 0, rest = i, k = indices[i];
  for (int32_t d = s.rank - 1; d >= 0; --d) at += rest % s.size[d] * s.stride[d], rest /= s.size[d];
  wrap(k, s.n);
  return at + k * s.step;
}
static inline bool in_range(const Elements &s, const int32_t *indices) {
  bool good = true;
  for (int64_t i = 0; i < s.count; ++i) good &= indices[i] >= -s.n && indices[i] < s.n;
  return good;
}

template <class T> static int gather_elements_typed(const mnn_call *c) {
  const Elements &s = state<Elements>(c);
  const int32_t *indices = in<int32_t>(c, 1);
  if (!in_range(s, indices)) return c->fail(c, "an index is out of range");
  parallel(c, s.count, 4096, [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) out<T>(c, 0)[i] = in<T>(c, 0)[element_of(s, indices, i)];
  });
  return 0;
}
static int gather_elements_run(const mnn_call *c) {
  switch (c->in[0].dtype.bits) {
    case 8: return gather_elements_typed<uint8_t>(c);
    case 16: return gather_elements_typed<uint16_t>(c);
    case 32: return gather_elements_typed<uint32_t>(c);
    case 64: return gather_elements_typed<uint64_t>(c);
  }
  return c->fail(c, "elements of an unknown size");
}

// Updates. They are applied in their order by one thread: where several meet, the last one stays.
enum class Meet : int32_t { replace, add, subtract, multiply, max, min };
template <class T> static inline void meet(Meet how, T *to, const T *from, int64_t n) {
  switch (how) {
    case Meet::replace: memcpy(to, from, size_t(n) * sizeof(T)); break;
    case Meet::add: for (int64_t i = 0; i < n; ++i) to[i] += from[i]; break;
    case Meet::subtract: for (int64_t i = 0; i < n; ++i) to[i] -= from[i]; break;
    case Meet::multiply: for (int64_t i = 0; i < n; ++i) to[i] *= from[i]; break;
    case Meet::max: for (int64_t i = 0; i < n; ++i) to[i] = to[i] > from[i] || to[i] != to[i] ? to[i] : from[i]; break;
    case Meet::min: for (int64_t i = 0; i < n; ++i) to[i] = to[i] < from[i] || to[i] != to[i] ? to[i] : from[i]; break;
  }
}
static bool meeting(const mnn_call *c, Meet otherwise, Meet &how) {
  static const struct { const char *name; Meet how; } names[] = {
      {"ADD", Meet::add}, {"SUB", Meet::subtract}, {"MUL", Meet::multiply}, {"MAXIMUM", Meet::max}, {"MAX_TEMP", Meet::max},
      {"MINIMUM", Meet::min}, {"MIN_TEMP", Meet::min}};
  const mnn_attr *a = attr(c, "opType");
  how = otherwise;
  if (!a) return true;
  if (a->kind == 'i') return how = Meet::replace, a->v.i == -1;
  for (const auto &row : names)
    if (a->kind == 's' && !strcmp(a->v.s, row.name)) return how = row.how, true;
  return false;
}

struct ScatterNd {
  Slices slices;
  Meet how;
};
static int scatter_nd_prepare(mnn_call *c) {
  ScatterNd *s = new_state<ScatterNd>(c);
  if (!s) return no_memory(c);
  if (!meeting(c, present(c, 3) ? Meet::replace : Meet::add, s->how)) return c->fail(c, "this reduction has no native kernel");
  if (!slices(c->out[0], c->in[0], 0, s->slices)) return c->fail(c, "indices that do not fit the output");
  return 0;
}
template <class T> static int scatter_nd_run(const mnn_call *c) {
  const ScatterNd &s = state<ScatterNd>(c);
  const size_t bytes = size_t(count(c->out[0])) * sizeof(T);
  if (present(c, 3)) memcpy(out<T>(c, 0), in<T>(c, 3), bytes);
  else memset(out<T>(c, 0), 0, bytes);
  if (!s.slices.inner) return 0;
  for (int64_t i = 0; i < s.slices.rows; ++i) {
    const int64_t at = slice_of(s.slices, in<int32_t>(c, 0), i);
    if (at < 0) return c->fail(c, "an index is out of range");
    meet(s.how, out<T>(c, 0) + at * s.slices.inner, in<T>(c, 1) + i * s.slices.inner, s.slices.inner);
  }
  return 0;
}

struct ScatterElements {
  Elements elements;
  Meet how;
};
static int scatter_elements_prepare(mnn_call *c) {
  if (const int failed = elements_prepare(c, 3)) return failed;
  const Elements elements = *static_cast<Elements *>(c->state);
  ScatterElements *s = new_state<ScatterElements>(c);
  if (!s) return no_memory(c);
  s->elements = elements;
  return meeting(c, Meet::replace, s->how) ? 0 : c->fail(c, "this reduction has no native kernel");
}
template <class T> static int scatter_elements_run(const mnn_call *c) {
  const ScatterElements &s = state<ScatterElements>(c);
  const int32_t *indices = in<int32_t>(c, 1);
  if (!in_range(s.elements, indices)) return c->fail(c, "an index is out of range");
  memcpy(out<T>(c, 0), in<T>(c, 0), size_t(count(c->out[0])) * sizeof(T));
  for (int64_t i = 0; i < s.elements.count; ++i) meet(s.how, out<T>(c, 0) + element_of(s.elements, indices, i), in<T>(c, 2) + i, 1);
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

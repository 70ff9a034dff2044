// Gather and GatherV2 with indices known at run time only: whole rows are copied.
#pragma once
#include "call.h"

namespace mnn {
namespace MNN_ISA {

struct Gather {
  int64_t outer, n, inner, picks;  // inner: bytes of a row
};
static int gather_prepare(mnn_call *c) {
  Gather *s = new_state<Gather>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0];
  int64_t axis = attr_int(c, "axis");
  if (present(c, 2)) {
    if (!c->in[2].data) return c->fail(c, "the axis is not constant");
    axis = *in<int32_t>(c, 2);
  }
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return c->fail(c, "the axis is out of range");
  *s = {count(x, 0, int32_t(axis)), x.shape[axis], count(x, int32_t(axis) + 1) * x.dtype.bits / 8, count(c->in[1])};
  return 0;
}
static int gather_run(const mnn_call *c) {
  const Gather &s = state<Gather>(c);
  const int32_t *index = in<int32_t>(c, 1);
  for (int64_t i = 0; i < s.picks; ++i)
    if (index[i] < -s.n || index[i] >= s.n) return c->fail(c, "an index is out of range");
  parallel(c, s.outer * s.picks, grain_for(s.inner), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t k = index[i % s.picks];
      memcpy(out<char>(c, 0) + i * s.inner, in<char>(c, 0) + (i / s.picks * s.n + (k < 0 ? k + s.n : k)) * s.inner, size_t(s.inner));
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn

// Doubles, as many as floats in a vector: for sums that have to stay exact.
#pragma once
#include "vec.h"

namespace mnn {
namespace MNN_ISA {

typedef double vd __attribute__((vector_size(8 * MNN_VLEN)));
typedef int64_t vl __attribute__((vector_size(8 * MNN_VLEN)));

static inline vd widen(vf x) { return __builtin_convertvector(x, vd); }
static inline double sum(vd v) { double s = 0; for (int64_t i = 0; i < kLanes; ++i) s += v[i]; return s; }

}  // namespace MNN_ISA
}  // namespace mnn

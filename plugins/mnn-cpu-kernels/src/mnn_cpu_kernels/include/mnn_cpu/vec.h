// One vector type for every instruction set: GCC and Clang vector extensions give + - * / < ?: & for free, so only what the language
// lacks is written here. A per-ISA file defines MNN_ISA (namespace) and MNN_VLEN (floats in a register) first.
//
// Traps: broadcast as x - zero, never zero + x (signed zero blocks the folding); unroll loops over register arrays by pragma, or
// -O2 spills them; all is static inside the ISA's namespace, or the linker may keep one AVX-512 copy for every CPU.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <mnn/kernel.h>

#ifndef MNN_ISA
#error "include from a per-ISA file that defines MNN_ISA and MNN_VLEN"
#endif
#define MNN_UNROLL _Pragma("GCC unroll 32")

namespace mnn {
namespace MNN_ISA {

constexpr int64_t kLanes = MNN_VLEN;
typedef float vf __attribute__((vector_size(4 * MNN_VLEN)));
typedef int32_t vi __attribute__((vector_size(4 * MNN_VLEN)));

static inline vf load(const float *p) { vf v; memcpy(&v, p, sizeof v); return v; }
static inline void store(float *p, vf v) { memcpy(p, &v, sizeof v); }
static inline vi load(const int32_t *p) { vi v; memcpy(&v, p, sizeof v); return v; }
static inline void store(int32_t *p, vi v) { memcpy(p, &v, sizeof v); }
static inline vf load_tail(const float *p, int64_t n) { vf v{}; memcpy(&v, p, size_t(n) * 4); return v; }
static inline void store_tail(float *p, vf v, int64_t n) { memcpy(p, &v, size_t(n) * 4); }
static inline vi load_tail(const int32_t *p, int64_t n) { vi v{}; memcpy(&v, p, size_t(n) * 4); return v; }
static inline void store_tail(int32_t *p, vi v, int64_t n) { memcpy(p, &v, size_t(n) * 4); }
static inline vf dup(float x) { return x - vf{}; }
static inline vi dup(int32_t x) { return x - vi{}; }
static inline vf fma(vf a, vf b, vf c) { return a * b + c; }  // fused by -ffp-contract=fast
static inline vf max(vf a, vf b) { return a > b ? a : b; }    // b where a is NaN
static inline vf min(vf a, vf b) { return a < b ? a : b; }
static inline vf as_float(vi x) { vf v; memcpy(&v, &x, sizeof v); return v; }
static inline vi as_int(vf x) { vi v; memcpy(&v, &x, sizeof v); return v; }
static inline vf to_float(vi x) { return __builtin_convertvector(x, vf); }
static inline vi to_int(vf x) { return __builtin_convertvector(x, vi); }  // truncates
static inline float sum(vf v) { float s = 0; for (int64_t i = 0; i < kLanes; ++i) s += v[i]; return s; }

// a > b ? a : b that gives NaN if either is NaN, as NumPy does.
static inline vf max_nan(vf a, vf b) { return (a > b) | (a != a) ? a : b; }
static inline vf min_nan(vf a, vf b) { return (a < b) | (a != a) ? a : b; }

}  // namespace MNN_ISA
}  // namespace mnn

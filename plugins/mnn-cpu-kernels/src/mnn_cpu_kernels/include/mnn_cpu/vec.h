// One vector type for every instruction set: GCC and Clang vector extensions give + - * / < ?: & for free, so only what the language
// lacks is written here. A per-ISA file defines MNN_ISA (namespace) and MNN_VLEN (floats in a register) first.
//
// Traps: broadcast as x - zero, never zero + x (signed zero blocks the folding); unroll loops over register arrays by pragma, or
// -O2 spills them; all is static inside the ISA's namespace, or the linker may keep one AVX-512 copy for every CPU.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

// As many bytes as lanes, to 32-bit lanes and back; what is stored must be in the bytes' range. GCC 12 takes such conversions apart.
typedef uint8_t vub __attribute__((vector_size(MNN_VLEN)));
typedef int8_t vsb __attribute__((vector_size(MNN_VLEN)));
#if defined(__AVX512BW__) && MNN_VLEN == 16
static inline __m128i load_bytes(const void *p) { return _mm_loadu_si128(static_cast<const __m128i *>(p)); }
static inline vi load_wide(const uint8_t *p) { return vi(_mm512_cvtepu8_epi32(load_bytes(p))); }
static inline vi load_wide(const int8_t *p) { return vi(_mm512_cvtepi8_epi32(load_bytes(p))); }
static inline void store_narrow(void *p, vi v) { _mm_storeu_si128(static_cast<__m128i *>(p), _mm512_cvtepi32_epi8(__m512i(v))); }
static inline void store_narrow(uint8_t *p, vi v) { store_narrow(static_cast<void *>(p), v); }
static inline void store_narrow(int8_t *p, vi v) { store_narrow(static_cast<void *>(p), v); }
#elif defined(__AVX2__) && MNN_VLEN == 8
static inline __m128i load_bytes(const void *p) { return _mm_loadl_epi64(static_cast<const __m128i *>(p)); }
static inline vi load_wide(const uint8_t *p) { return vi(_mm256_cvtepu8_epi32(load_bytes(p))); }
static inline vi load_wide(const int8_t *p) { return vi(_mm256_cvtepi8_epi32(load_bytes(p))); }
static inline __m128i pack_half(vi v) { return _mm_packs_epi32(_mm256_castsi256_si128(__m256i(v)), _mm256_extracti128_si256(__m256i(v), 1)); }
static inline void store_narrow(uint8_t *p, vi v) { const __m128i h = pack_half(v); _mm_storel_epi64(reinterpret_cast<__m128i *>(p), _mm_packus_epi16(h, h)); }
static inline void store_narrow(int8_t *p, vi v) { const __m128i h = pack_half(v); _mm_storel_epi64(reinterpret_cast<__m128i *>(p), _mm_packs_epi16(h, h)); }
#elif defined(__SSE4_1__) && MNN_VLEN == 4
static inline __m128i load_bytes(const void *p) { int32_t v; memcpy(&v, p, 4); return _mm_cvtsi32_si128(v); }
static inline vi load_wide(const uint8_t *p) { return vi(_mm_cvtepu8_epi32(load_bytes(p))); }
static inline vi load_wide(const int8_t *p) { return vi(_mm_cvtepi8_epi32(load_bytes(p))); }
static inline void store_narrow(void *p, __m128i v) { const int32_t bits = _mm_cvtsi128_si32(v); memcpy(p, &bits, 4); }
static inline void store_narrow(uint8_t *p, vi v) { const __m128i h = _mm_packs_epi32(__m128i(v), __m128i(v)); store_narrow(p, _mm_packus_epi16(h, h)); }
static inline void store_narrow(int8_t *p, vi v) { const __m128i h = _mm_packs_epi32(__m128i(v), __m128i(v)); store_narrow(p, _mm_packs_epi16(h, h)); }
#else
static inline vi load_wide(const uint8_t *p) { vub v; memcpy(&v, p, sizeof v); return __builtin_convertvector(v, vi); }
static inline vi load_wide(const int8_t *p) { vsb v; memcpy(&v, p, sizeof v); return __builtin_convertvector(v, vi); }
static inline void store_narrow(uint8_t *p, vi v) { const vub b = __builtin_convertvector(v, vub); memcpy(p, &b, sizeof b); }
static inline void store_narrow(int8_t *p, vi v) { const vsb b = __builtin_convertvector(v, vsb); memcpy(p, &b, sizeof b); }
#endif

// x as it is in a register: no operation behind it is fused with the one that made it, which therefore rounds.
static inline vf settled(vf x) {
#if defined(__x86_64__)
  asm("" : "+v"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}

// Exact products of bytes. A unit is 32 bits that hold kUnit neighbours: on the left 0..255, on the right -128..127.
// dot(acc, a, b) adds the products of each lane's units to the lane.
#if defined(__AVX512VNNI__) && MNN_VLEN == 16
typedef uint8_t unit_left;
typedef int8_t unit_right;
static inline vi dot(vi acc, vi a, vi b) { return vi(_mm512_dpbusd_epi32(__m512i(acc), __m512i(a), __m512i(b))); }
#else
typedef int16_t unit_left, unit_right;
#if defined(__AVX512BW__) && MNN_VLEN == 16
static inline vi dot(vi acc, vi a, vi b) { return acc + vi(_mm512_madd_epi16(__m512i(a), __m512i(b))); }
#elif defined(__AVX2__) && MNN_VLEN == 8
static inline vi dot(vi acc, vi a, vi b) { return acc + vi(_mm256_madd_epi16(__m256i(a), __m256i(b))); }
#elif defined(__SSE4_1__) && MNN_VLEN == 4
static inline vi dot(vi acc, vi a, vi b) { return acc + vi(_mm_madd_epi16(__m128i(a), __m128i(b))); }
#else
static inline vi dot(vi acc, vi a, vi b) { return acc + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16); }
#endif
#endif
constexpr int64_t kUnit = 4 / sizeof(unit_left);

}  // namespace MNN_ISA
}  // namespace mnn

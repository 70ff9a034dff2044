// Chooses by machine, at load. Compiled without -m flags: nothing here may need the CPU that it asks about.
#include <mnn/kernel.h>
#include <string.h>

#define ISA(name) namespace mnn { namespace name { extern const mnn_kernel kTable[]; extern const size_t kTableSize; } }
ISA(avx512vnni)
ISA(avx512)
ISA(avx2)
ISA(sse41)
#undef ISA

namespace {

constexpr size_t kMost = 1024;
mnn_kernel all[kMost];

int supports(const char *isa) {
  __builtin_cpu_init();
  if (!strcmp(isa, "avx512"))
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  if (!strcmp(isa, "avx512vnni")) return supports("avx512") && __builtin_cpu_supports("avx512vnni");
  if (!strcmp(isa, "avx2")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!strcmp(isa, "sse41")) return __builtin_cpu_supports("sse4.1");
  return isa[0] == 0;
}

int32_t block(const char *isa) { return !strncmp(isa, "avx512", 6) ? 16 : !strcmp(isa, "avx2") ? 8 : !strcmp(isa, "sse41") ? 4 : 0; }

size_t gather() {
  size_t n = 0;
  const struct { const mnn_kernel *table; size_t size; } parts[] = {
      {mnn::avx512vnni::kTable, mnn::avx512vnni::kTableSize}, {mnn::avx512::kTable, mnn::avx512::kTableSize}, {mnn::avx2::kTable, mnn::avx2::kTableSize},
      {mnn::sse41::kTable, mnn::sse41::kTableSize}};
  for (const auto &part : parts)
    for (size_t i = 0; i < part.size && n < kMost; ++i) all[n++] = part.table[i];
  return n;
}

}  // namespace

extern "C" const mnn_library *mnn_kernels(void) {
  static const mnn_library library = {MNN_KERNEL_ABI, sizeof(mnn_library), "cpu-x86", supports, block, gather(), sizeof(mnn_kernel), all};
  return &library;
}

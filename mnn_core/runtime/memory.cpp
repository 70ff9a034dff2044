#include "memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(_WIN32)
#include <malloc.h>
#elif defined(__linux__)
#include <sys/mman.h>
#endif

namespace mnn {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kHuge = size_t(2) << 20;

}  // namespace

void *aligned_new(size_t bytes, bool zeroed) {
  const size_t align = bytes >= 2 * kHuge ? kHuge : kAlign;
  if (bytes > SIZE_MAX - align) return nullptr;
  const size_t rounded = (bytes + align - 1) / align * align + (bytes == 0 ? align : 0);
#if defined(_WIN32)
  void *p = _aligned_malloc(rounded, align);
#else
  void *p = nullptr;
  if (posix_memalign(&p, align, rounded)) p = nullptr;
#endif
#if defined(__linux__)
  if (p && align == kHuge) madvise(p, rounded, MADV_HUGEPAGE);
#endif
  if (p && zeroed) std::memset(p, 0, rounded);
  return p;
}

void *aligned_renew(void *p, size_t bytes) {
#if defined(_WIN32)
  return _aligned_realloc(p, bytes, kAlign);
#else
  return std::realloc(p, bytes);
#endif
}

void aligned_delete(void *p) {
#if defined(_WIN32)
  _aligned_free(p);
#else
  std::free(p);
#endif
}

}  // namespace mnn

// Aligned memory.
#pragma once
#include <cstddef>
#include <memory>

namespace mnn {

// 64-byte aligned memory; NULL when there is none. Large pieces ask for huge pages.
void *aligned_new(size_t bytes, bool zeroed);
// The same with another size, as realloc; its alignment may be lost.
void *aligned_renew(void *, size_t bytes);
void aligned_delete(void *);

struct AlignedDelete {
  void operator()(void *p) const { aligned_delete(p); }
};
using Memory = std::unique_ptr<void, AlignedDelete>;

}  // namespace mnn

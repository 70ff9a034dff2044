// The one thread pool of the process.
#pragma once
#include <atomic>
#include <cstdint>

#include "mnn/kernel.h"

namespace mnn {

// Runs body over 0..n-1 on up to `threads` threads, the calling one included, in chunks of at least `grain` items whose
// borders depend on n, grain and threads only. Returns when all are done. If the pool is busy with another
// caller's loop (or this is a loop inside a loop), the caller does all chunks alone: never more threads than asked
// for, never a deadlock. Chunks that have not begun are left out once *cancelled is set (may be NULL).
void parallel(int32_t threads, int64_t n, int64_t grain, mnn_body body, void *arg, const std::atomic<int> *cancelled);

}  // namespace mnn

#include "thread_pool.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace mnn {
namespace {

constexpr int kChunksPerThread = 4;  // enough to even out unequal chunks, few enough to cost nothing
constexpr auto kSpin = std::chrono::microseconds(30);  // about the cost of falling asleep and being woken

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Ready>
bool spin_until(const Ready &ready) {
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < until);
  return ready();
}

// Number of this thread in the loop that it works for: loops inside of its body run as the same worker.
thread_local int32_t self = 0;

struct Job {
  mnn_body body;
  void *arg;
  int64_t n, chunk;
  const std::atomic<int> *cancelled;
  int32_t seats;  // helpers that may still join
  std::atomic<int64_t> next{0};
  std::atomic<int32_t> helpers{0};  // that joined and are not done
  int32_t joined = 0;

  void work(int32_t worker) {
    for (;;) {
      const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= n || (cancelled && cancelled->load(std::memory_order_relaxed))) return;
      body(arg, begin, std::min(begin + chunk, n), worker);
    }
  }
};

class Pool {
 public:
  // False: busy, nothing was done.
  bool run(Job &job) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    int32_t wake;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      while (size_ < job.seats && start_worker()) {
      }
      job_ = &job;
      epoch_.fetch_add(1, std::memory_order_release);
      wake = std::min(asleep_, job.seats);
    }
    while (wake-- > 0) more_.notify_one();
    job.work(0);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = nullptr;  // nobody joins from here on
    }
    const auto done = [&job] { return job.helpers.load(std::memory_order_acquire) == 0; };
    if (!spin_until(done)) {
      std::unique_lock<std::mutex> lock(mutex_);
      done_.wait(lock, done);
    }
    busy_.store(false, std::memory_order_release);
    return true;
  }

 private:
  bool start_worker() {
    try {
      std::thread(&Pool::serve, this).detach();
    } catch (...) {
      return false;  // the system gives no more threads: go on with those that there are
    }
    ++size_;
    return true;
  }

  void serve() {
    uint64_t seen = 0;
    for (;;) {
      const auto posted = [this, &seen] { return epoch_.load(std::memory_order_acquire) != seen; };
      spin_until(posted);
      Job *job = nullptr;
      int32_t worker = 0;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        if (!posted()) {
          ++asleep_;
          more_.wait(lock, posted);
          --asleep_;
        }
        seen = epoch_.load(std::memory_order_relaxed);
        if (job_ && job_->joined < job_->seats) {
          job = job_;
          worker = ++job->joined;
          job->helpers.fetch_add(1, std::memory_order_relaxed);
        }
      }
      if (!job) continue;
      self = worker;
      job->work(worker);
      std::lock_guard<std::mutex> lock(mutex_);  // held while the last one leaves: the job lies on the caller's stack
      if (job->helpers.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable more_, done_;
  std::atomic<bool> busy_{false};
  std::atomic<uint64_t> epoch_{0};
  Job *job_ = nullptr;
  int32_t size_ = 0, asleep_ = 0;
};

// Never destroyed: workers may outlive static destructors. A forked child has no workers, so it gets a pool of its own.
std::atomic<Pool *> current{nullptr};

Pool &pool() {
  Pool *found = current.load(std::memory_order_acquire);
  if (found) return *found;
  static const bool registered = [] {
#if !defined(_WIN32)
    pthread_atfork(nullptr, nullptr, [] { current.store(nullptr); });
#endif
    return true;
  }();
  (void)registered;
  Pool *made = new Pool;
  if (current.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

}  // namespace

void parallel(int32_t threads, int64_t n, int64_t grain, mnn_body body, void *arg, const std::atomic<int> *cancelled) {
  if (n <= 0) return;
  grain = std::clamp<int64_t>(grain, 1, n);
  const int64_t pieces = std::min<int64_t>(std::max(threads, 1), n / grain + (n % grain != 0));
  const int64_t chunks = pieces * kChunksPerThread;
  Job job{body, arg, n, std::max(grain, n / chunks + (n % chunks != 0)), cancelled, static_cast<int32_t>(pieces - 1)};
  if (pieces == 1 || !pool().run(job)) job.work(self);
}

}  // namespace mnn

#include "executor.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "thread_pool.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mnn {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kHuge = size_t(2) << 20;
constexpr size_t kIdleContexts = 4;  // kept per program for the next runs

struct Preparing {
  Prepared *result;
  SharedStore *store;
  std::vector<SharedStore::Key> made;
  std::vector<uint32_t> *uses;
  char error[1024];
};

int fail_prepare(const mnn_call *call, const char *why) {
  auto *p = static_cast<Preparing *>(call->core);
  std::snprintf(p->error, sizeof p->error, "%s", why ? why : "");
  return 1;
}

void *alloc_prepare(const mnn_call *call, size_t bytes) {
  auto *p = static_cast<Preparing *>(call->core);
  Memory memory(aligned_new(bytes, true));
  void *found = memory.get();
  if (found) p->result->memory.push_back(std::move(memory));
  return found;
}

void *shared_prepare(const mnn_call *call, uint32_t index, const char *key, size_t bytes, int *fresh) {
  auto *p = static_cast<Preparing *>(call->core);
  *fresh = 0;
  if (index >= call->n_in || !call->in[index].data) return nullptr;
  const SharedStore::Key full{call->in[index].data, key};
  p->uses->push_back(index);
  if (void *found = p->store->find(full)) return found;
  void *found = p->store->add(full, bytes);
  if (found) {
    *fresh = 1;
    p->made.push_back(full);
  }
  return found;
}

void parallel_prepare(const mnn_call *call, int64_t n, int64_t grain, mnn_body body, void *arg) {
  parallel(call->threads, n, grain, body, arg, nullptr);
}

int fail_run(const mnn_call *call, const char *why) {
  auto *context = static_cast<Context *>(call->core);
  std::snprintf(context->error, sizeof context->error, "%s", why ? why : "");
  return 1;
}

void parallel_run(const mnn_call *call, int64_t n, int64_t grain, mnn_body body, void *arg) {
  parallel(call->threads, n, grain, body, arg, static_cast<const Context *>(call->core)->cancelled);
}

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

void aligned_delete(void *p) {
#if defined(_WIN32)
  _aligned_free(p);
#else
  std::free(p);
#endif
}

void *SharedStore::find(const Key &key) const {
  const auto it = blocks_.find(key);
  return it == blocks_.end() ? nullptr : it->second.first.get();
}

void *SharedStore::add(const Key &key, size_t bytes) {
  Memory memory(aligned_new(bytes, true));
  void *found = memory.get();
  if (found) {
    blocks_[key] = {std::move(memory), bytes};
    bytes_ += bytes;
  }
  return found;
}

void SharedStore::remove(const Key &key) {
  const auto it = blocks_.find(key);
  if (it == blocks_.end()) return;
  bytes_ -= it->second.second;
  blocks_.erase(it);
}

bool prepare(const mnn_kernel *kernel, const std::vector<mnn_tensor> &in, const std::vector<mnn_tensor> &out,
             const std::vector<mnn_attr> &attributes, int32_t threads, SharedStore &store, Prepared &result, std::string &why,
             std::vector<uint32_t> &uses_shared) {
  Preparing preparing{&result, &store, {}, &uses_shared, ""};
  mnn_call call{};
  call.size = sizeof call;
  call.n_in = static_cast<uint32_t>(in.size());
  call.n_out = static_cast<uint32_t>(out.size());
  call.n_attr = static_cast<uint32_t>(attributes.size());
  call.in = in.data();
  call.out = out.data();
  call.attr = attributes.data();
  call.threads = threads;
  call.core = &preparing;
  call.parallel = parallel_prepare;
  call.fail = fail_prepare;
  call.alloc = alloc_prepare;
  call.shared = shared_prepare;
  result.kernel = kernel;
  result.threads = threads;
  if (kernel->prepare && kernel->prepare(&call)) {
    for (const auto &key : preparing.made) store.remove(key);  // perhaps not filled
    why = preparing.error[0] ? preparing.error : "its prepare gave no reason";
    return false;
  }
  result.state = call.state;
  result.scratch_bytes = call.scratch_bytes;
  return true;
}

void Program::add_tensor(const mnn_tensor &like, const std::vector<int64_t> &shape, Place place, int64_t where, int64_t offset,
                         void *data) {
  tensors_.push_back({like, shape, place, where, offset, data});
}

void Program::finish(size_t arena_bytes) {
  arena_bytes_ = arena_bytes;
  for (auto &t : tensors_) t.like.shape = t.shape.data();  // tensors_ grows no more: these pointers stay valid
  for (const auto &step : steps_) {
    if (!step.kernel) continue;
    scratch_bytes_ = step.kernel->scratch_bytes > scratch_bytes_ ? step.kernel->scratch_bytes : scratch_bytes_;
    for (const auto *list : {&step.in, &step.out}) {
      for (const int32_t index : *list) {
        mnn_tensor slot{};
        slot.rank = -1;
        if (index >= 0) {
          slot = tensors_[index].like;
          moving_.push_back({slots_.size(), index});
        }
        slots_.push_back(slot);
      }
    }
  }
}

Context *Program::acquire() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      Context *context = idle_.back();
      idle_.pop_back();
      return context;
    }
  }
  auto context = std::make_unique<Context>();
  context->arena.reset(aligned_new(arena_bytes_, false));
  context->scratch.reset(aligned_new(scratch_bytes_, false));
  if (!context->arena || !context->scratch) return nullptr;
  context->slots = slots_;
  size_t at = 0;
  for (const auto &step : steps_) {
    mnn_call call{};
    if (step.kernel) {
      call.size = sizeof call;
      call.n_in = static_cast<uint32_t>(step.in.size());
      call.n_out = static_cast<uint32_t>(step.out.size());
      call.in = context->slots.data() + at;
      call.out = call.in + step.in.size();
      at += step.in.size() + step.out.size();
      call.state = step.kernel->state;
      call.scratch = context->scratch.get();
      call.scratch_bytes = step.kernel->scratch_bytes;
      call.threads = step.kernel->threads;
      call.core = context.get();
      call.parallel = parallel_run;
      call.fail = fail_run;
    }
    context->calls.push_back(call);
  }
  return context.release();
}

void Program::release(Context *context) {
  context->inputs = context->outputs = nullptr;
  context->cancelled = nullptr;
  context->error[0] = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.size() < kIdleContexts) {
      idle_.push_back(context);
      return;
    }
  }
  delete context;
}

Program::~Program() {
  for (Context *context : idle_) delete context;
}

void *Program::data(const Context &context, int32_t index) const {
  const Tensor &t = tensors_[index];
  switch (t.place) {
    case Place::arena: return static_cast<char *>(context.arena.get()) + t.where;
    case Place::input: return context.inputs[t.where];
    case Place::output: return context.outputs[t.where];
    case Place::constant: return t.data;
    case Place::alias: return static_cast<char *>(data(context, static_cast<int32_t>(t.where))) + t.offset;
  }
  return nullptr;
}

void Program::bind(Context &context, void *const *inputs, void *const *outputs, const std::atomic<int> *cancelled) const {
  context.inputs = inputs;
  context.outputs = outputs;
  context.cancelled = cancelled;
  for (const Slot &slot : moving_) context.slots[slot.index].data = data(context, slot.tensor);
}

size_t Program::run(Context &context, size_t begin, size_t end, double *seconds) const {
  for (size_t i = begin; i < end; ++i) {
    if (context.is_cancelled()) return i;
    if (!seconds) {
      if (steps_[i].kernel->kernel->run(&context.calls[i])) return i;
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    if (steps_[i].kernel->kernel->run(&context.calls[i])) return i;
    seconds[i - begin] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return context.is_cancelled() ? end - 1 : end;
}

}  // namespace mnn

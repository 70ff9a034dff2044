#include "executor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "thread_pool.hpp"

namespace mnn {
namespace {

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
  const mnn_tensor &constant = call->in[index];
  SharedStore::Key full{constant.data, std::string(key) + '/' + std::to_string(bytes)};
  for (int32_t d = 0; d < constant.rank; ++d) full.second += (d ? 'x' : '/') + std::to_string(constant.shape[d]);
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
  if (!context->failed.exchange(true)) std::snprintf(context->error, sizeof context->error, "%s", why ? why : "");
  return 1;
}

void parallel_run(const mnn_call *call, int64_t n, int64_t grain, mnn_body body, void *arg) {
  parallel(call->threads, n, grain, body, arg, static_cast<const Context *>(call->core)->cancelled);
}

// Bytes of a tensor in its layout; throws if that is no number.
int64_t stored_bytes(const mnn_tensor &t) {
  int64_t bytes = t.dtype.bits / 8;
  for (int32_t d = 0; d < t.rank; ++d) {
    int64_t size = t.shape[d];
    if (t.layout == MNN_BLOCKED && d == 1) size = (size + t.block - 1) / t.block * t.block;
    if (size < 0 || (size && bytes > std::numeric_limits<int64_t>::max() / size))
      throw std::invalid_argument("a tensor's size is negative or too great for memory");
    bytes *= size;
  }
  return bytes;
}

}  // namespace

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

void Program::check(int64_t index, int64_t n_inputs, int64_t n_outputs) const {
  const Tensor &t = tensors_[index];
  const auto refuse = [index](const std::string &what) {
    throw std::invalid_argument("tensor " + std::to_string(index) + " of the program " + what);
  };
  if (t.like.layout == MNN_BLOCKED && (t.like.block <= 0 || t.like.rank < 2)) refuse("is blocked, but has no block or no channels");
  int64_t there = std::numeric_limits<int64_t>::max(), from = 0;
  if (t.place == Place::arena) there = static_cast<int64_t>(arena_bytes_), from = t.where;
  if (t.place == Place::alias) {
    size_t hops = 0;
    for (int64_t at = index; tensors_[at].place == Place::alias; at = tensors_[at].where)
      if (tensors_[at].where < 0 || tensors_[at].where >= static_cast<int64_t>(tensors_.size()) || ++hops > tensors_.size())
        refuse("is a view of nothing");
    there = stored_bytes(tensors_[t.where].like), from = t.offset;
  }
  const int64_t bytes = stored_bytes(t.like);
  if (from < 0 || bytes > there || from > there - bytes)
    refuse("has " + std::to_string(bytes) + " bytes at " + std::to_string(from) + " of " + std::to_string(there));
  const int64_t numbers = t.place == Place::input ? n_inputs : t.place == Place::output ? n_outputs : 0;
  if ((t.place == Place::input || t.place == Place::output) && (t.where < 0 || t.where >= numbers))
    refuse("is input or output " + std::to_string(t.where) + " of " + std::to_string(numbers));
}

void Program::finish(size_t arena_bytes, int64_t n_inputs, int64_t n_outputs) {
  arena_bytes_ = arena_bytes;
  const auto n = static_cast<int64_t>(tensors_.size());
  for (auto &t : tensors_) t.like.shape = t.shape.data();  // tensors_ grows no more: these pointers stay valid
  for (int64_t i = 0; i < n; ++i) check(i, n_inputs, n_outputs);
  for (const auto &step : steps_) {
    for (const int32_t index : step.in)
      if (index < -1 || index >= n) throw std::invalid_argument("a step reads tensor " + std::to_string(index));
    for (const int32_t index : step.out)
      if (index < 0 || index >= n) throw std::invalid_argument("a step writes tensor " + std::to_string(index));
    if (!step.kernel) continue;
    scratch_bytes_ = std::max(scratch_bytes_, step.kernel->scratch_bytes);
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
  context->failed = false;
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

// Programs: tensors, steps and memory of a compiled plan, and the loop that runs them.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "mnn/kernel.h"

namespace mnn {

// What kernels of one model share: packed weights, by the constant they were made of and the kernel's key with the constant's
// shape: the same memory seen with another shape is another constant.
class SharedStore {
 public:
  using Key = std::pair<const void *, std::string>;
  void *find(const Key &key) const;
  void *add(const Key &key, size_t bytes);
  void remove(const Key &key);
  size_t bytes() const { return bytes_; }

 private:
  std::map<Key, std::pair<Memory, size_t>> blocks_;
  size_t bytes_ = 0;
};

// A kernel that was prepared: memory it asked for, and what it left for its runs.
struct Prepared {
  const mnn_kernel *kernel = nullptr;
  void *state = nullptr;
  size_t scratch_bytes = 0;
  int32_t threads = 1;
  std::vector<Memory> memory;
};

// Calls a kernel's prepare. Returns true, or false and why it declined. uses_shared gets the indices of the inputs whose
// data the shared blocks were made of. Not thread-safe for one store: the caller holds the GIL.
bool prepare(const mnn_kernel *kernel, const std::vector<mnn_tensor> &in, const std::vector<mnn_tensor> &out,
             const std::vector<mnn_attr> &attributes, int32_t threads, SharedStore &store, Prepared &result, std::string &why,
             std::vector<uint32_t> &uses_shared);

enum class Place : int32_t { arena, input, output, constant, alias };

// One step's place in a program; kernel NULL: a Python kernel.
struct Step {
  const Prepared *kernel = nullptr;
  std::vector<int32_t> in, out;  // tensor indices; -1: absent
};

struct Context;

class Program {
 public:
  // Tensors and steps are added in order, then finish() is called once. It throws
  // std::invalid_argument for a tensor outside of its memory or an index of nothing: such a program would overwrite memory.
  void add_tensor(const mnn_tensor &like, const std::vector<int64_t> &shape, Place place, int64_t where, int64_t offset,
                  void *data);
  void add_step(Step step) { steps_.push_back(std::move(step)); }
  void finish(size_t arena_bytes, int64_t n_inputs, int64_t n_outputs);

  // A context for one run; NULL when there is no memory. Give it back with release().
  Context *acquire();
  void release(Context *);
  ~Program();

  // Points the context at the arrays of this run.
  void bind(Context &, void *const *inputs, void *const *outputs, const std::atomic<int> *cancelled) const;
  // Runs native steps begin..end-1; returns end, or the step that failed (error() has the reason) or was cancelled.
  // seconds: NULL, or an array of end - begin numbers that get the time of each step.
  size_t run(Context &, size_t begin, size_t end, double *seconds) const;
  // The memory of a tensor in this run.
  void *data(const Context &, int32_t tensor) const;

  size_t n_steps() const { return steps_.size(); }
  bool native(size_t step) const { return steps_[step].kernel != nullptr; }
  const mnn_tensor &tensor(int32_t index) const { return tensors_[index].like; }

 private:
  struct Tensor {
    mnn_tensor like;
    std::vector<int64_t> shape;
    Place place;
    int64_t where, offset;  // arena: offset; input, output: number; alias: tensor and byte offset
    void *data;             // constants
  };
  void check(int64_t index, int64_t n_inputs, int64_t n_outputs) const;

  struct Slot {  // a pointer of a call that changes from run to run
    size_t index;
    int32_t tensor;
  };

  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
  std::vector<Slot> moving_;
  std::vector<mnn_tensor> slots_;  // tensors of all calls, one after another
  size_t arena_bytes_ = 0, scratch_bytes_ = 0;
  std::mutex mutex_;
  std::vector<Context *> idle_;
};

// Memory and call structs of one run.
struct Context {
  Memory arena, scratch;
  std::vector<mnn_tensor> slots;
  std::vector<mnn_call> calls;
  void *const *inputs = nullptr;
  void *const *outputs = nullptr;
  const std::atomic<int> *cancelled = nullptr;
  std::atomic<bool> failed{false};
  char error[1024] = "";  // of the worker that failed first
  bool is_cancelled() const { return cancelled && cancelled->load(std::memory_order_relaxed); }
};

}  // namespace mnn

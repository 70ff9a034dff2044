// Many threads on one program and on the thread pool, for sanitizers: see tools/sanitize.sh. Exits with 1 if a value is wrong.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "executor.hpp"
#include "thread_pool.hpp"

namespace {

constexpr int64_t kItems = 1000;
std::atomic<int> wrong{0};

void expect(bool right, const char *what) {
  if (!right && wrong.fetch_add(1) < 10) std::printf("wrong: %s\n", what);
}

struct Copy {
  const mnn_call *call;
  const float *from;
  float *to;
};

void copy_body(void *arg, int64_t begin, int64_t end, int32_t worker) {
  const auto *c = static_cast<const Copy *>(arg);
  expect(worker >= 0 && worker < c->call->threads, "a worker's number");
  for (int64_t i = begin; i < end; ++i) c->to[i] = c->from[i] + 1;
}

// y = x + 1 + packed[0], by way of scratch.
int run(const mnn_call *c) {
  const auto *x = static_cast<const float *>(c->in->data);
  if (x[0] < 0) return c->fail(c, "negative");
  auto *scratch = static_cast<float *>(c->scratch);
  Copy there{c, x, scratch};
  c->parallel(c, kItems, 16, copy_body, &there);
  auto *y = static_cast<float *>(c->out->data);
  for (int64_t i = 0; i < kItems; ++i) y[i] = scratch[i] + *static_cast<float *>(c->state);
  return 0;
}

int prepare(mnn_call *c) {
  int fresh = 0;
  auto *packed = static_cast<float *>(c->shared(c, 1, "first", 4, &fresh));
  if (!packed || !c->alloc(c, 100)) return c->fail(c, "no memory");
  if (fresh) *packed = *static_cast<const float *>(c->in[1].data);
  c->state = packed;
  c->scratch_bytes = kItems * sizeof(float);
  return 0;
}

const mnn_kernel kernel{"stress", "Stress", "f32,f32->f32", "", "p,p->p", 0, prepare, run};

void use(mnn::Program &program, int number) {
  std::vector<float> x(kItems), y(kItems);
  for (int i = 0; i < 300; ++i) {
    const bool fails = i % 50 == 7, cancels = i % 50 == 9;
    x.assign(kItems, fails ? -1.f : static_cast<float>(number * 1000 + i));
    std::atomic<int> token{0};
    std::thread other;
    if (cancels) other = std::thread([&token] { token = 1; });
    void *in = x.data(), *out = y.data();
    mnn::Context *context = program.acquire();
    program.bind(*context, &in, &out, &token);
    const size_t reached = program.run(*context, 0, program.n_steps(), nullptr);
    if (fails) expect(reached == 0 && context->error[0] == 'n', "a failure");
    if (!fails && !cancels) expect(reached == 2 && y.front() == x[0] + 6 && y.back() == x[0] + 6, "a result");
    program.release(context);
    if (cancels) other.join();
  }
}

}  // namespace

int main() {
  float two = 2;
  const std::vector<int64_t> shape{kItems}, scalar;
  mnn_tensor x{nullptr, {MNN_FLOAT, 32, 1}, 1, MNN_PLAIN, 0, shape.data()};
  mnn_tensor w{&two, {MNN_FLOAT, 32, 1}, 0, MNN_PLAIN, 0, scalar.data()};
  mnn::SharedStore store;
  mnn::Prepared prepared;
  std::string why;
  std::vector<uint32_t> uses;
  expect(mnn::prepare(&kernel, {x, w}, {x}, {}, 3, store, prepared, why, uses), "prepare");
  mnn::Program program;
  program.add_tensor(x, shape, mnn::Place::input, 0, 0, nullptr);
  program.add_tensor(w, scalar, mnn::Place::constant, 0, 0, &two);
  program.add_tensor(x, shape, mnn::Place::arena, 0, 0, nullptr);
  program.add_tensor(x, shape, mnn::Place::output, 0, 0, nullptr);
  program.add_step({&prepared, {0, 1}, {2}});
  program.add_step({&prepared, {2, 1}, {3}});
  program.finish(kItems * sizeof(float), 1, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&program, i] { use(program, i); });
  for (auto &t : threads) t.join();
  std::printf("%s\n", wrong ? "wrong" : "right");
  return wrong != 0;
}

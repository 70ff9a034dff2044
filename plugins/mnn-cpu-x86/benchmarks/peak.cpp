// Most GFLOP/s that one thread can reach with vectors of N floats, in registers alone:
//   g++ -O2 -DN=16 -mavx512f -mprefer-vector-width=512 peak.cpp -o peak && ./peak     (N=8: -mavx2 -mfma, N=4: -msse4.1)
#include <chrono>
#include <cstdio>

typedef float vf __attribute__((vector_size(4 * N)));

int main() {
  constexpr int kChains = 12;
  constexpr long kRounds = 2000000;
  vf sums[kChains] = {}, x = vf{} + 1.0001f, y = vf{} + 0.9f;
  double best = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (long round = 0; round < kRounds; ++round)
#pragma GCC unroll 32
      for (vf &s : sums) {
        s = s * y + x;
        asm volatile("" : "+v"(s));  // keeps every step
      }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double speed = 2e-9 * kChains * N * kRounds / seconds;
    if (speed > best) best = speed;
  }
  printf("%.1f GFLOP/s\n", best);
}

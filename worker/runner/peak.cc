#include "worker/runner/peak.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hone::runner {
namespace {

// FMA latency times units is at most 4 × 2 = 8 vectors on most CPUs (5 × 2 on some). 12 chains fit
// into 16 registers beside the two factors.
constexpr int kChains = 12;

#if defined(__x86_64__)
#define HONE_VECTOR_REGISTER "+v"
#else
#define HONE_VECTOR_REGISTER "+w"
#endif

// Inlined into functions that each allow different instructions, and compiled for these. The empty
// assembly statement keeps the optimizer from computing or removing the values.
template <int kLanes>
[[gnu::always_inline]] inline double RunChains(int64_t iterations) {
  typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
  Vector sums[kChains];
  for (Vector& sum : sums) sum = Vector{} + 1.0f;
  Vector factor = Vector{} + 0.5f;
  Vector term = Vector{} + 0.25f;
  asm volatile("" : HONE_VECTOR_REGISTER(factor), HONE_VECTOR_REGISTER(term));
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + term;
  }
  for (Vector& sum : sums) asm volatile("" : HONE_VECTOR_REGISTER(sum));
  return static_cast<double>(iterations) * kChains * kLanes * 2;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) double Fma512(int64_t iterations) {
  return RunChains<16>(iterations);
}
__attribute__((target("avx2,fma"))) double Fma256(int64_t iterations) {
  return RunChains<8>(iterations);
}
#endif
// On x86-64, this is a multiply and an add, because not every CPU has the fused operation.
double Fma128(int64_t iterations) { return RunChains<4>(iterations); }

constexpr int kRounds = 12;       // minimum
constexpr int kMostRounds = 150;  // maximum, if the best rounds do not agree
constexpr double kAgree = 0.02;
constexpr int64_t kFmaIterations = 300'000;  // 1.4 ms at 2.5 GHz and one iteration in 12 cycles
// Per core. Larger than its share of the last-level cache.
constexpr size_t kStreamBytes = size_t{48} << 20;

// Returns at most `count` CPUs that this process may use.
std::vector<int> Cpus(int count) {
  cpu_set_t allowed;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && static_cast<int>(cpus.size()) < count; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

Rate BestRate(int threads, const std::function<double(int)>& work) {
  const std::vector<int> cpus = Cpus(threads);
  struct Round {
    double done = 0;
    double ns = 0;
  };
  std::vector<Round> round(threads);
  std::vector<double> rates;  // of the best three rounds, descending
  Rate rate;
  int done = 0;
  bool more = true;
  const auto finish_round = [&]() noexcept {
    double amount = 0;
    double ns = 1;
    for (const Round& part : round) {
      amount += part.done;
      ns = std::max(ns, part.ns);
    }
    rates.push_back(amount / ns);
    std::sort(rates.begin(), rates.end(), std::greater<>());
    if (rates.size() > 3) rates.pop_back();
    rate.steady = rates.size() == 3 && rates[2] >= (1 - kAgree) * rates[0];
    ++done;
    more = done < kRounds || (done < kMostRounds && !rate.steady);
  };
  std::barrier start(threads);
  std::barrier end(threads, finish_round);
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      if (t < static_cast<int>(cpus.size())) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpus[t], &one);
        pthread_setaffinity_np(pthread_self(), sizeof one, &one);
      }
      while (more) {
        start.arrive_and_wait();
        const double begin = NowNs();
        round[t].done = work(t);
        round[t].ns = NowNs() - begin;
        end.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  rate.per_ns = rates[0];
  return rate;
}

std::vector<int> FmaWidths() {
  std::vector<int> widths = {128};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) widths.push_back(256);
  if (__builtin_cpu_supports("avx512f")) widths.push_back(512);
#endif
  return widths;
}

double RunFma([[maybe_unused]] int width_bits, int64_t iterations) {
#if defined(__x86_64__)
  if (width_bits == 512) return Fma512(iterations);
  if (width_bits == 256) return Fma256(iterations);
#endif
  return Fma128(iterations);
}

uint64_t RunStream(const void* data, size_t bytes) {
  const auto* const words = static_cast<const uint64_t*>(data);
  uint64_t sums[8] = {};
  // Eight sums per cache line. The compiler vectorizes them, so memory is the limit.
  for (size_t i = 0; i < bytes / 8; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

void Evict(const void* data, size_t bytes) {
  constexpr size_t kLine = 64;  // the shortest of all CPUs
  const char* const begin = static_cast<const char*>(data);
#if defined(__x86_64__)
  for (size_t at = 0; at < bytes; at += kLine) __builtin_ia32_clflush(begin + at);
  __builtin_ia32_mfence();
#elif defined(__aarch64__)
  for (size_t at = 0; at < bytes; at += kLine) {
    asm volatile("dc civac, %0" : : "r"(begin + at) : "memory");
  }
  asm volatile("dsb sy" : : : "memory");
#else
  for (size_t at = 0; at < bytes; at += kLine) {
    static_cast<void>(*static_cast<const volatile char*>(begin + at));
  }
#endif
}

double Peak::gflops_one_core() const {
  return std::ranges::max_element(widths, {}, &Width::gflops_one_core)->gflops_one_core;
}

double Peak::gflops_all_cores() const {
  return std::ranges::max_element(widths, {}, &Width::gflops_all_cores)->gflops_all_cores;
}

std::string Peak::ToJson() const {
  const auto width_json = [](std::string* out, const Width& width) {
    absl::StrAppendFormat(
        out, R"({"vector_bits": %d, "gflops_one_core": %.1f, "gflops_all_cores": %.1f})",
        width.vector_bits, width.gflops_one_core, width.gflops_all_cores);
  };
  return absl::StrFormat(
      R"({"cores": %d, "steady": %s, "gflops_one_core": %.1f, "gflops_all_cores": %.1f, "read_gbps_one_core": %.2f, )"
      R"("read_gbps_all_cores": %.2f, "calibration": "%s", "widths": [%s]})",
      cores, steady ? "true" : "false", gflops_one_core(), gflops_all_cores(), read_gbps_one_core,
      read_gbps_all_cores, calibration, absl::StrJoin(widths, ", ", width_json));
}

Peak MeasurePeak(int cores) {
  Peak peak;
  peak.cores = cores;
  const auto rate = [&peak](int threads, const std::function<double(int)>& work) {
    const Rate best = BestRate(threads, work);
    peak.steady = peak.steady && best.steady;
    return best.per_ns;
  };
  for (const int bits : FmaWidths()) {
    const auto fma = [bits](int) { return RunFma(bits, kFmaIterations); };
    peak.widths.push_back({.vector_bits = bits,
                           .gflops_one_core = rate(1, fma),
                           .gflops_all_cores = rate(cores, fma)});
  }
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::vector<std::unique_ptr<void, Free>> buffers(cores);
  std::vector<uint64_t> sums(cores);
  const auto stream = [&](int thread) {
    std::unique_ptr<void, Free>& buffer = buffers[thread];
    // First touched by the thread that reads it; the slower first round does not count.
    if (buffer == nullptr) {
      buffer.reset(std::aligned_alloc(64, kStreamBytes));
      if (buffer == nullptr) return 0.0;
      std::fill_n(static_cast<char*>(buffer.get()), kStreamBytes, 1);
    }
    sums[thread] += RunStream(buffer.get(), kStreamBytes);
    return static_cast<double>(kStreamBytes);
  };
  peak.read_gbps_one_core = BestRate(1, stream).per_ns;
  peak.read_gbps_all_cores = BestRate(cores, stream).per_ns;
  return peak;
}

}  // namespace hone::runner

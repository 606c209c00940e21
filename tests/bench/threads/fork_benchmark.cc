// Measures how long a parallel loop of a kernel takes to start and to end on Hone's threads and on
// those of OpenMP, pthreadpool and oneTBB. Each thread works for some microseconds, so that a
// library that leaves all parts to one thread is not the quickest. Rounds of the libraries
// alternate.
#include <omp.h>
#include <pthreadpool.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <vector>

#include "common/base/command_line.h"
#include "common/target/kernel_abi.h"
#include "common/target/thread_pool.h"

namespace {

using Clock = std::chrono::steady_clock;
using Body = void (*)(void* context, int64_t begin, int64_t end, int64_t thread);

constexpr Clock::duration kWork = std::chrono::microseconds(10);

// Each thread gets one part, as the kernels of most schedules want it.
struct Part {
  int64_t extent;
  int32_t threads;
  Body body;
  void* context;
  void operator()(size_t thread) const {
    const auto t = static_cast<int64_t>(thread);
    body(context, t * extent / threads, (t + 1) * extent / threads, t);
  }
};

void OpenMpParallelFor(const HoneRuntime*, int64_t extent, int64_t, int32_t threads, Body body,
                       void* context) {
#pragma omp parallel num_threads(threads)
  Part{extent, threads, body, context}(static_cast<size_t>(omp_get_thread_num()));
}

struct PthreadpoolRuntime {
  explicit PthreadpoolRuntime(int threads)
      : runtime{ParallelFor, threads}, pool(pthreadpool_create(threads)) {}
  ~PthreadpoolRuntime() { pthreadpool_destroy(pool); }
  static void ParallelFor(const HoneRuntime* runtime, int64_t extent, int64_t, int32_t threads,
                          Body body, void* context) {
    Part part{extent, threads, body, context};
    pthreadpool_parallelize_1d(
        reinterpret_cast<const PthreadpoolRuntime*>(runtime)->pool,
        [](void* part, size_t thread) { (*static_cast<Part*>(part))(thread); }, &part,
        static_cast<size_t>(threads), 0);
  }
  HoneRuntime runtime;  // first, because ParallelFor casts its address
  pthreadpool_t pool;
};

struct TbbRuntime {
  explicit TbbRuntime(int threads) : runtime{ParallelFor, threads}, arena(threads) {}
  static void ParallelFor(const HoneRuntime* runtime, int64_t extent, int64_t, int32_t threads,
                          Body body, void* context) {
    const Part part{extent, threads, body, context};
    const_cast<tbb::task_arena&>(reinterpret_cast<const TbbRuntime*>(runtime)->arena).execute([&] {
      tbb::parallel_for(0, threads, part, tbb::static_partitioner());
    });
  }
  HoneRuntime runtime;
  tbb::task_arena arena;
};

void WorkUntil(Clock::time_point end) {
  while (Clock::now() < end) {
  }
}

// The median time of a loop in microseconds beyond the work of each thread. The caller computes for
// `gap` between two loops.
double ForkUs(const HoneRuntime& runtime, Clock::duration gap) {
  std::vector<double> times;
  for (int i = 0; i < 400; ++i) {
    WorkUntil(Clock::now() + gap);
    const auto begin = Clock::now();
    runtime.parallel_for(
        &runtime, runtime.threads, 0, runtime.threads,
        [](void*, int64_t, int64_t, int64_t) { WorkUntil(Clock::now() + kWork); }, nullptr);
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin - kWork).count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Measure(int threads, int rounds) {
  PthreadpoolRuntime pthreadpool(threads);
  TbbRuntime tbb(threads);
  const struct {
    const char* name;
    HoneRuntime runtime;
    const HoneRuntime* used;
  } libraries[] = {{"Hone", hone_threads(threads), nullptr},
                   {"libgomp", {OpenMpParallelFor, threads}, nullptr},
                   {"pthreadpool", {}, &pthreadpool.runtime},
                   {"oneTBB", {}, &tbb.runtime}};
  for (const int gap_us : {0, 5, 50, 1000}) {
    std::vector<double> times[4];
    for (int round = 0; round < rounds; ++round) {
      for (int l = 0; l < 4; ++l) {
        const HoneRuntime& runtime =
            libraries[l].used != nullptr ? *libraries[l].used : libraries[l].runtime;
        times[l].push_back(ForkUs(runtime, std::chrono::microseconds(gap_us)));
      }
    }
    std::printf("| %d | %d |", threads, gap_us);
    for (const std::vector<double>& each : times) std::printf(" %.2f |", Median(each));
    std::printf("\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  hone::Command app(
      "Measures the time that a parallel loop without work takes with the threads of several "
      "libraries.\nExample: fork_benchmark --threads 2");
  int threads = 2, rounds = 21;
  app.Add("--threads", threads, "Threads of the loop", {hone::Positive(), hone::ShowDefault()});
  app.Add("--rounds", rounds, "Rounds, of which the median counts",
          {hone::Positive(), hone::ShowDefault()});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  std::printf(
      "| threads | between loops (us) | Hone (us) | libgomp (us) | pthreadpool (us) | oneTBB (us) "
      "|\n"
      "|---|---|---|---|---|---|\n");
  return Measure(threads, rounds);
}

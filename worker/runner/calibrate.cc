#include "worker/runner/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/median.h"
#include "common/target/thread_pool.h"
#include "worker/runner/peak.h"

namespace hone::runner {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kFewBytes = 8 << 10;              // stay in every L1
constexpr size_t kMemoryBytes = size_t{64} << 20;  // per core; larger than its share of any L3
constexpr int64_t kChainIterations = 300'000;
constexpr int64_t kForks = 50;  // of a round
constexpr int kForkRounds = 8;
constexpr absl::Duration kBetweenForkRounds = absl::Milliseconds(10);
constexpr double kUndisturbed = 0.25;        // of the parallel loops of the best round, at least
constexpr int64_t kForkIterations = 20'000;  // of multiply-adds: about 40 µs
constexpr double kRoundBytes = 4e6;          // that a round reads at least

// The buffer that loops read and write, aligned to pages.
class Buffer {
 public:
  explicit Buffer(size_t bytes)
      : data_(static_cast<char*>(std::aligned_alloc(kPage, bytes)), std::free), bytes_(bytes) {
    if (data_ != nullptr) std::fill_n(data_.get(), bytes, 1);
  }
  char* data() const { return data_.get(); }
  size_t bytes() const { return data_ == nullptr ? 0 : bytes_; }

 private:
  std::unique_ptr<char, void (*)(void*)> data_;
  const size_t bytes_;
};

#if defined(__x86_64__)
#define HONE_USE(vector) asm volatile("" : : "v"(vector))
#else
#define HONE_USE(vector) asm volatile("" : : "w"(vector))
#endif

// Loops over vectors of one width, inlined into functions that are compiled for it.
template <int kLanes>
struct Loops {
  typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
  static constexpr size_t kUnroll = 8;

  // One chain of dependent multiply-adds.
  [[gnu::always_inline]] static inline void Chain(int64_t iterations) {
    Vector sum = Vector{} + 1.0f, factor = Vector{} + 0.5f, term = Vector{} + 0.25f;
    HONE_USE(factor);
    HONE_USE(term);
    for (int64_t i = 0; i < iterations; ++i) {
      sum = sum * factor + term;
#if defined(__x86_64__)
      asm volatile("" : "+v"(sum));
#else
      asm volatile("" : "+w"(sum));
#endif
    }
  }
  // Loads every vector of the buffer.
  [[gnu::always_inline]] static inline void Load(const char* data, size_t bytes) {
    const Vector* const vectors = reinterpret_cast<const Vector*>(data);
    const size_t count = bytes / sizeof(Vector);
    for (size_t i = 0; i + kUnroll <= count; i += kUnroll) {
#pragma GCC unroll 8
      for (size_t u = 0; u < kUnroll; ++u) {
        const Vector loaded = vectors[i + u];
        HONE_USE(loaded);
      }
    }
  }
  [[gnu::always_inline]] static inline void Store(char* data, size_t bytes) {
    Vector* const vectors = reinterpret_cast<Vector*>(data);
    const size_t count = bytes / sizeof(Vector);
    const Vector value = Vector{} + 1.0f;
    for (size_t i = 0; i + kUnroll <= count; i += kUnroll) {
#pragma GCC unroll 8
      for (size_t u = 0; u < kUnroll; ++u) {
        vectors[i + u] = value;
        asm volatile("" : : : "memory");
      }
    }
  }
};

// The loops of one width as functions.
struct Width {
  int bits;
  void (*chain)(int64_t iterations);
  void (*load)(const char* data, size_t bytes);
  void (*store)(char* data, size_t bytes);
};

#define HONE_WIDTH(name, lanes, attributes)                                                       \
  attributes void Chain##name(int64_t iterations) { Loops<lanes>::Chain(iterations); }            \
  attributes void Load##name(const char* data, size_t bytes) { Loops<lanes>::Load(data, bytes); } \
  attributes void Store##name(char* data, size_t bytes) { Loops<lanes>::Store(data, bytes); }

HONE_WIDTH(128, 4, )
#if defined(__x86_64__)
HONE_WIDTH(256, 8, __attribute__((target("avx2,fma"))))
HONE_WIDTH(512, 16, __attribute__((target("avx512f"))))
#endif
#undef HONE_WIDTH

Width WidestOf(int bits) {
#if defined(__x86_64__)
  if (bits >= 512) return {512, Chain512, Load512, Store512};
  if (bits >= 256) return {256, Chain256, Load256, Store256};
#endif
  static_cast<void>(bits);
  return {128, Chain128, Load128, Store128};
}

// Returns the nanoseconds per unit of the fastest round. `work` returns the units that it did.
double NsPerUnit(int threads, const std::function<double(int)>& work) {
  const double per_ns = BestRate(threads, work).per_ns;
  return per_ns > 0 ? 1 / per_ns : 0;
}

// Returns the nanoseconds per unit of repeated reads of a buffer, which a round reads as often as
// needed for kRoundBytes.
double NsOfReads(const Buffer& buffer, size_t unit_bytes,
                 const std::function<void(const char*, size_t)>& read) {
  const auto times = static_cast<int64_t>(kRoundBytes / static_cast<double>(buffer.bytes())) + 1;
  return NsPerUnit(1, [&](int) {
    for (int64_t i = 0; i < times; ++i) read(buffer.data(), buffer.bytes());
    return static_cast<double>(times) * static_cast<double>(buffer.bytes() / unit_bytes);
  });
}

// Returns the size of a buffer that fits into one level and not into the level before it; 0: there
// is no room between them.
size_t Between(int64_t smaller, int64_t larger) {
  const int64_t bytes = (smaller + larger) / 2 / static_cast<int64_t>(kPage) * kPage;
  return bytes >= smaller + smaller / 2 ? static_cast<size_t>(bytes) : 0;
}

// Returns how much longer a parallel loop takes than the work of one of its threads. Without work,
// the calling thread would end the loop before another one wakes up.
double ForkNs(int cores, int bits) {
  struct Work {
    int bits;
    int64_t iterations;
  };
  const Work work{bits, kForkIterations};
  const auto body = [](void* context, int64_t begin, int64_t end, int64_t) {
    const auto& own = *static_cast<const Work*>(context);
    for (int64_t i = begin; i < end; ++i) RunFma(own.bits, own.iterations);
  };
  const HoneRuntime runtime = hone_threads(cores);
  hone_threads_start(cores);
  // Each loop is timed by itself, because other programs delay some of them by milliseconds. There
  // are several rounds, because a program that takes one of the cores delays all loops of a round:
  // beside a compiler, 400 loops in succession gave 0.7 to 47 µs on a machine with 0.9 µs.
  const auto run = [&](int64_t extent, int32_t threads) {
    std::vector<double> ns;
    for (int64_t i = 0; i < kForks; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      runtime.parallel_for(&runtime, extent, 0, threads, body, const_cast<Work*>(&work));
      ns.push_back(
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
              .count());
    }
    return Quantile(ns, kUndisturbed);
  };
  const double alone = run(1, 1);
  double fork = run(cores, cores) - alone;
  for (int round = 1; round < kForkRounds; ++round) {
    absl::SleepFor(kBetweenForkRounds);
    fork = std::min(fork, run(cores, cores) - alone);
  }
  // Other programs had the other cores.
  return fork > alone / 2 ? 0 : fork;
}

}  // namespace

target::Calibration MeasureCalibration(const target::Target& host) {
  const int bits = std::min(host.vector_bits, FmaWidths().back());
  const Width width = WidestOf(bits);
  const size_t vector_bytes = static_cast<size_t>(width.bits) / 8;
  target::Calibration measured;
  measured.fma = NsPerUnit(
      1, [&](int) { return RunFma(width.bits, kChainIterations) / (2.0 * width.bits / 32); });
  measured.fma_latency = NsPerUnit(1, [&](int) {
    width.chain(kChainIterations);
    return static_cast<double>(kChainIterations);
  });
  const Buffer few(kFewBytes);
  measured.load = NsOfReads(few, vector_bytes, width.load);
  measured.store = NsOfReads(few, vector_bytes, [&](const char* data, size_t bytes) {
    width.store(const_cast<char*>(data), bytes);
  });
  const int64_t l3_share = host.l3_bytes / std::max(1, host.cores);
  if (const size_t bytes = Between(host.l1_bytes, host.l2_bytes); bytes > 0)
    measured.l2_line = NsOfReads(Buffer(bytes), kLine, width.load);
  if (const size_t bytes = Between(host.l2_bytes, l3_share); bytes > 0)
    measured.l3_line = NsOfReads(Buffer(bytes), kLine, width.load);
  {
    std::vector<std::unique_ptr<Buffer>> buffers(host.cores);
    const auto stream = [&](int thread) {
      // First touched by the thread that reads it.
      if (buffers[thread] == nullptr) buffers[thread] = std::make_unique<Buffer>(kMemoryBytes);
      width.load(buffers[thread]->data(), buffers[thread]->bytes());
      return static_cast<double>(buffers[thread]->bytes() / kLine);
    };
    measured.memory_line = NsPerUnit(1, stream);
    measured.memory_shared_line = NsPerUnit(host.cores, stream);
  }
  if (host.cores > 1) measured.fork = ForkNs(host.cores, width.bits);
  measured.RemoveImpossible();
  return measured;
}

}  // namespace hone::runner

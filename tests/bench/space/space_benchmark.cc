// The cost of a candidate before compilation: generating spaces, drawing decisions, replaying them.
// Each Replay row also has the median and the 99th percentile over many candidates of all spaces;
// the target is a median of 200 µs.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_split.h"
#include "common/operator/operator.h"
#include "server/tuner/space/generate.h"

namespace hone::space {
namespace {

const char* const kWorkloads[] = {
    "matmul m=1024 n=1024 k=1024",
    "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
    "conv2d n=1 h=56 w=56 ci=64 co=64 k=3 s=1 p=1",
};
constexpr double kTolerances[] = {0, 0, 1e-3};  // the last one allows a rewrite

std::shared_ptr<const ir::Workload> Make(int64_t number) {
  std::vector<std::string> words = absl::StrSplit(kWorkloads[number], ' ');
  const std::string name = words[0];
  words.erase(words.begin());
  return std::make_shared<const ir::Workload>(op::BuildWorkload(name, words).value());
}

std::vector<std::unique_ptr<DesignSpace>> Spaces(int64_t number) {
  return GenerateDesignSpaces(Make(number), target::TargetByName("x86-avx512").value(),
                              kTolerances[number])
      .value();
}

void Generate(benchmark::State& state) {
  const auto workload = Make(state.range(0));
  const target::Target target = target::TargetByName("x86-avx512").value();
  const double tolerance = kTolerances[state.range(0)];
  for (auto _ : state) benchmark::DoNotOptimize(GenerateDesignSpaces(workload, target, tolerance));
  state.SetLabel(kWorkloads[state.range(0)]);
}
BENCHMARK(Generate)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

void Sample(benchmark::State& state) {
  const auto spaces = Spaces(state.range(0));
  uint64_t i = 0;
  for (auto _ : state) {
    Rng rng(1, i++);
    benchmark::DoNotOptimize(spaces[i % spaces.size()]->Sample(rng));
  }
  state.SetLabel(kWorkloads[state.range(0)]);
}
BENCHMARK(Sample)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

void Mutate(benchmark::State& state) {
  const auto spaces = Spaces(state.range(0));
  Rng rng(1);
  std::vector<int64_t> at = spaces[0]->Sample(rng).value();
  for (auto _ : state) at = spaces[0]->Mutate(at, rng).value();
  state.SetLabel(kWorkloads[state.range(0)]);
}
BENCHMARK(Mutate)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

void Replay(benchmark::State& state) {
  const auto spaces = Spaces(state.range(0));
  std::vector<std::vector<int64_t>> drawn;
  for (uint64_t i = 0; i < 512; ++i) {
    Rng rng(2, i);
    drawn.push_back(spaces[i % spaces.size()]->Sample(rng).value());
  }
  std::vector<double> microseconds;
  size_t i = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(spaces[i % spaces.size()]->Replay(drawn[i % drawn.size()]));
    const auto end = std::chrono::steady_clock::now();
    microseconds.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    i = (i + 1) % drawn.size();
  }
  std::sort(microseconds.begin(), microseconds.end());
  state.counters["median_us"] = microseconds[microseconds.size() / 2];
  state.counters["p99_us"] = microseconds[microseconds.size() * 99 / 100];
  state.SetLabel(kWorkloads[state.range(0)]);
}
BENCHMARK(Replay)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hone::space

// Time to extract the rows of one candidate, per schedule; beside it what comes before in a
// candidate's evaluation.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "server/feature/feature_set.h"
#include "server/feature/nest.h"
#include "tests/server/feature/programs.h"

namespace hone::feature {
namespace {

std::vector<ir::Program> Programs(const NamedTrace& trace) {
  std::vector<ir::Program> programs;
  for (uint64_t seed = 0; programs.size() < 32; ++seed) {
    ir::Program program;
    if (DrawProgram(trace, seed, program)) programs.push_back(std::move(program));
  }
  return programs;
}

void BM_Extract(benchmark::State& state, const NamedTrace& trace, const std::string& set) {
  const std::vector<ir::Program> programs = Programs(trace);
  const FeatureSet& features = **FindFeatureSet(set);
  const target::Target target = TestTarget();
  std::vector<float> values;
  int rows = 0;
  size_t at = 0;
  for (auto _ : state) {
    values.clear();
    if (!features.Extract(programs[at++ % programs.size()], target, values, rows).ok()) {
      state.SkipWithError("refused");
    }
    benchmark::DoNotOptimize(values.data());
  }
  state.counters["rows"] = rows;
}

void BM_Analyze(benchmark::State& state, const NamedTrace& trace) {
  const std::vector<ir::Program> programs = Programs(trace);
  Nest nest;
  size_t at = 0;
  for (auto _ : state) {
    if (!nest.Analyze(programs[at++ % programs.size()]).ok()) state.SkipWithError("refused");
  }
}

void BM_StructuralDigest(benchmark::State& state, const NamedTrace& trace) {
  const std::vector<ir::Program> programs = Programs(trace);
  size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(programs[at++ % programs.size()].StructuralDigest());
  }
}

}  // namespace
}  // namespace hone::feature

int main(int argc, char** argv) {
  using namespace hone::feature;
  for (const NamedTrace& trace : Traces()) {
    const std::string name(trace.name);
    for (const std::string& set : FeatureSetNames()) {
      benchmark::RegisterBenchmark(("extract/" + set + "/" + name).c_str(), BM_Extract, trace, set);
    }
    benchmark::RegisterBenchmark(("analyze/" + name).c_str(), BM_Analyze, trace);
    benchmark::RegisterBenchmark(("digest/" + name).c_str(), BM_StructuralDigest, trace);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

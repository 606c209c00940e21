// The time to extract the features of one candidate, per schedule, compared with the earlier steps
// of a candidate's evaluation.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "server/tuner/feature/feature_set.h"
#include "server/tuner/feature/nest.h"
#include "tests/server/tuner/feature/programs.h"

namespace hone::feature {
namespace {

struct Candidate {
  ir::Program program;
  std::vector<int64_t> decisions;
};

std::vector<Candidate> Candidates(const NamedTrace& trace) {
  std::vector<Candidate> candidates;
  for (uint64_t seed = 0; candidates.size() < 32; ++seed) {
    Candidate candidate;
    if (DrawProgram(trace, seed, candidate.program, &candidate.decisions)) {
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

void BM_Extract(benchmark::State& state, const NamedTrace& trace, const std::string& set) {
  const std::vector<Candidate> candidates = Candidates(trace);
  const FeatureSet& features = **FindFeatureSet(set);
  const target::Target target = TestTarget();
  const schedule::Trace parsed = TraceOf(trace);
  std::vector<float> values;
  int rows = 0;
  size_t at = 0;
  for (auto _ : state) {
    values.clear();
    const Candidate& candidate = candidates[at++ % candidates.size()];
    if (!features
             .ExtractCandidate(candidate.program, {0, candidate.decisions, &parsed}, target, values,
                               rows)
             .ok()) {
      state.SkipWithError("refused");
    }
    benchmark::DoNotOptimize(values.data());
  }
  state.counters["rows"] = rows;
}

void BM_Analyze(benchmark::State& state, const NamedTrace& trace) {
  const std::vector<Candidate> candidates = Candidates(trace);
  Nest nest;
  size_t at = 0;
  for (auto _ : state) {
    if (!nest.Analyze(candidates[at++ % candidates.size()].program).ok())
      state.SkipWithError("refused");
  }
}

void BM_StructuralDigest(benchmark::State& state, const NamedTrace& trace) {
  const std::vector<Candidate> candidates = Candidates(trace);
  size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(candidates[at++ % candidates.size()].program.StructuralDigest());
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

#include "tests/server/cost_model/real_space.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "common/base/rng.h"
#include "server/feature/feature_set.h"
#include "server/search/draft_score.h"
#include "tests/server/feature/programs.h"

namespace hone::cost_model {
namespace {

constexpr double kNoise = 0.03;

}  // namespace

FeatureMatrix RealSpace::Features(absl::string_view feature_set, int begin, int end) const {
  const feature::FeatureSet& set = **feature::FindFeatureSet(feature_set);
  FeatureMatrix matrix{.columns = set.Columns()};
  for (int i = begin; i < end; ++i) {
    std::vector<float> rows;
    int count = 0;
    const absl::Status status = set.ExtractCandidate(
        candidates[i].program, {0, candidates[i].decisions}, feature::TestTarget(), rows, count);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
      std::abort();
    }
    matrix.Append(rows, count);
  }
  return matrix;
}

RealSpace DrawRealSpace(absl::string_view name, uint64_t seed, int candidates) {
  RealSpace space;
  const feature::NamedTrace& trace = feature::TraceCalled(name);
  std::set<Digest> seen;
  const search::DraftMachine machine = search::DraftMachine::Of(feature::TestTarget());
  for (uint64_t draw = 0; space.throughput.size() < static_cast<size_t>(candidates); ++draw) {
    RealSpace::Candidate candidate;
    Rng rng(seed, draw);
    if (!feature::DrawProgram(trace, rng(), candidate.program, &candidate.decisions) ||
        !seen.insert(candidate.program.StructuralDigest()).second)
      continue;
    const double latency =
        search::DraftCycles(candidate.program, machine) * (1 + kNoise * (2 * rng.Uniform() - 1));
    space.throughput.push_back(1 / latency);
    space.candidates.push_back(std::move(candidate));
  }
  const double best = *std::max_element(space.throughput.begin(), space.throughput.end());
  for (double& throughput : space.throughput) throughput /= best;
  return space;
}

}  // namespace hone::cost_model

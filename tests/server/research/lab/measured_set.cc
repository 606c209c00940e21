#include "tests/server/research/lab/measured_set.h"

#include <set>

#include "common/base/rng.h"
#include "gtest/gtest.h"
#include "server/research/lab/recorded_set.h"
#include "tests/status.h"

namespace hone::lab {

MeasuredSet::MeasuredSet(const std::string& name)
    : set_(*LoadRecordedSet("tests/bench/recorded", name)),
      target_(*target::Target::FromText(set_.target)),
      best_ns_(BestLatencyNs(set_)) {
  for (const std::string& text : set_.spaces)
    spaces_.push_back(*space::DesignSpace::FromText(text));
  std::set<int> seen;
  for (const RecordedCandidate& each : set_.candidates) {
    measurements_[{each.space, each.decisions}] = each.measurement;
    if (set_.measurements[each.measurement].outcome == record::Outcome::kOk &&
        seen.insert(each.measurement).second)
      programs_.push_back({spaces_[each.space]->digest(), each.decisions});
  }
  Rng rng(1);
  for (size_t i = programs_.size(); i > 1; --i)
    std::swap(programs_[i - 1], programs_[rng.Below(i)]);
}

search::SearchContext MeasuredSet::Context(uint64_t seed) const {
  search::SearchContext context{.target = target_, .seed = seed, .population = 128};
  for (const auto& space : spaces_) context.spaces.push_back(space.get());
  return context;
}

int MeasuredSet::SpaceOf(const record::Candidate& candidate) const {
  int space = 0;
  while (spaces_[space]->digest() != candidate.space_digest) ++space;
  return space;
}

search::Measured MeasuredSet::Measure(const record::Candidate& candidate) const {
  const auto found = measurements_.find({SpaceOf(candidate), candidate.decisions});
  EXPECT_NE(found, measurements_.end()) << "the candidate is not recorded";
  if (found == measurements_.end()) return {candidate, record::Outcome::kInvalid, 0};
  const Measurement& measurement = set_.measurements[found->second];
  return {candidate, measurement.outcome, measurement.latency_ns};
}

void MeasuredSet::AppendRows(const feature::FeatureSet& features,
                             const record::Candidate& candidate,
                             cost_model::FeatureMatrix& matrix) const {
  const int space = SpaceOf(candidate);
  std::vector<float> rows;
  int count = 0;
  const absl::Status status =
      features.ExtractCandidate(*spaces_[space]->Replay(candidate.decisions),
                                {space, candidate.decisions}, target_, rows, count);
  EXPECT_THAT(status, IsOk());
  matrix.columns = features.Columns();
  matrix.Append(rows, count);
}

}  // namespace hone::lab

#ifndef HONE_TESTS_SERVER_RESEARCH_LAB_MEASURED_SET_H_
#define HONE_TESTS_SERVER_RESEARCH_LAB_MEASURED_SET_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/research/lab/recorded_set.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/design_space.h"

namespace hone::lab {

// A recorded set of tests/bench/recorded with its design spaces. It stands in for a device in tests
// of cost models and searches.
class MeasuredSet {
 public:
  // REQUIRES: a recorded set has this name.
  explicit MeasuredSet(const std::string& name);

  search::SearchContext Context(uint64_t seed) const;
  double best_ns() const { return best_ns_; }
  // The programs that did not fail, without duplicates and in random order.
  const std::vector<record::Candidate>& programs() const { return programs_; }

  // The recorded result of the candidate. REQUIRES: the candidate is legal.
  search::Measured Measure(const record::Candidate& candidate) const;
  // Appends the feature rows of the candidate. REQUIRES: the candidate is legal.
  void AppendRows(const feature::FeatureSet& features, const record::Candidate& candidate,
                  cost_model::FeatureMatrix& matrix) const;

 private:
  int SpaceOf(const record::Candidate& candidate) const;

  RecordedSet set_;
  target::Target target_;
  double best_ns_ = 0;
  std::vector<std::unique_ptr<space::DesignSpace>> spaces_;
  std::map<std::pair<int, std::vector<int64_t>>, int> measurements_;
  std::vector<record::Candidate> programs_;
};

}  // namespace hone::lab

#endif  // HONE_TESTS_SERVER_RESEARCH_LAB_MEASURED_SET_H_

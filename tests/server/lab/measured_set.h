#ifndef HONE_TESTS_SERVER_LAB_MEASURED_SET_H_
#define HONE_TESTS_SERVER_LAB_MEASURED_SET_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/cost_model/cost_model.h"
#include "server/feature/feature_set.h"
#include "server/lab/recorded_set.h"
#include "server/search/search_strategy.h"
#include "server/space/design_space.h"

namespace hone::lab {

// A recorded set of tests/bench/recorded with its design spaces open: the device of tests of models
// and searches.
class MeasuredSet {
 public:
  // REQUIRES a set of that name.
  explicit MeasuredSet(const std::string& name);

  search::SearchContext Context(uint64_t seed) const;
  double best_ns() const { return best_ns_; }
  // The programs that did not fail, each once, in random order.
  const std::vector<record::Candidate>& programs() const { return programs_; }

  // What the candidate came to. REQUIRES a legal one.
  search::Measured Measure(const record::Candidate& candidate) const;
  // Appends the rows of a legal candidate.
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

#endif  // HONE_TESTS_SERVER_LAB_MEASURED_SET_H_

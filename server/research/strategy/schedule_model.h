#ifndef HONE_SERVER_RESEARCH_STRATEGY_SCHEDULE_MODEL_H_
#define HONE_SERVER_RESEARCH_STRATEGY_SCHEDULE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/history.h"

namespace hone::search {

// A candidate, or the first decisions of one.
struct PartialPoint {
  int space = 0;
  absl::Span<const int64_t> decisions;
};

// A cost model of the results of one search that reads schedules alone (FeatureSet::
// ExtractSchedule), so that it scores a candidate or a partial one without replaying it. It learns
// from the first 32 results, then from the first half as many more, and so on. Used by one thread.
class ScheduleModel {
 public:
  // `context` must outlive the model. `name`: of a cost model.
  ScheduleModel(const SearchContext& context, std::string name)
      : context_(context), name_(std::move(name)) {}

  // Learns if there are enough new results. Returns whether it has learned anything. Errors are
  // those of the cost model.
  absl::StatusOr<bool> Learn(const History& history);
  // Returns a score for each. REQUIRES: it has learned.
  absl::StatusOr<std::vector<double>> Score(absl::Span<const PartialPoint> points) const;

 private:
  absl::StatusOr<cost_model::FeatureMatrix> RowsOf(absl::Span<const PartialPoint> points) const;

  const SearchContext& context_;
  const std::string name_;
  const feature::FeatureSet* features_ = nullptr;
  std::unique_ptr<cost_model::CostModel> model_;  // null: not enough results yet
  size_t learned_ = 0;                            // the results that it has learned from
};

}  // namespace hone::search

#endif  // HONE_SERVER_RESEARCH_STRATEGY_SCHEDULE_MODEL_H_

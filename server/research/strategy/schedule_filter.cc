#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "server/research/strategy/schedule_model.h"
#include "server/research/strategy/strategies.h"

namespace hone::search {
namespace {

constexpr size_t kLeastResults = 32;

class ScheduleFilter final : public PointFilter {
 public:
  ScheduleFilter(const SearchContext& context, std::string model)
      : model_(context, std::move(model)) {}

  absl::StatusOr<bool> Learn(const History& history) override { return model_.Learn(history); }

  absl::StatusOr<std::vector<double>> Score(absl::Span<const Point> points) override {
    std::vector<PartialPoint> whole;
    for (const Point& point : points) whole.push_back({point.space, point.decisions});
    return model_.Score(whole);
  }

 private:
  ScheduleModel model_;
};

}  // namespace

absl::StatusOr<bool> ScheduleModel::Learn(const History& history) {
  const auto told = static_cast<size_t>(history.Told());
  size_t most = kLeastResults;
  while (most + most / 2 <= told) most += most / 2;
  if (told < most || most == learned_) return model_ != nullptr;
  HONE_ASSIGN_OR_RETURN(
      std::unique_ptr<cost_model::CostModel> model,
      cost_model::CreateCostModel(name_, {.seed = context_.seed, .pause = context_.check}));
  HONE_ASSIGN_OR_RETURN(features_, feature::FindFeatureSet(model->feature_set()));
  std::vector<PartialPoint> points;
  std::vector<double> throughput;
  double fastest = 0;  // 1 / ns
  for (const History::Entry& entry : history.entries()) {
    if (!entry.told || points.size() == most) continue;
    points.push_back({entry.point.space, entry.point.decisions});
    throughput.push_back(entry.ok ? 1 / entry.latency_ns : 0);
    fastest = std::max(fastest, throughput.back());
  }
  if (fastest == 0) return model_ != nullptr;
  for (double& each : throughput) each /= fastest;
  HONE_ASSIGN_OR_RETURN(const cost_model::FeatureMatrix rows, RowsOf(points));
  HONE_RETURN_IF_ERROR(model->Update(rows, throughput));
  model_ = std::move(model);
  learned_ = most;
  return true;
}

absl::StatusOr<std::vector<double>> ScheduleModel::Score(
    absl::Span<const PartialPoint> points) const {
  HONE_ASSIGN_OR_RETURN(const cost_model::FeatureMatrix rows, RowsOf(points));
  HONE_ASSIGN_OR_RETURN(cost_model::Prediction prediction, model_->Predict(rows));
  return std::move(prediction.mean);
}

absl::StatusOr<cost_model::FeatureMatrix> ScheduleModel::RowsOf(
    absl::Span<const PartialPoint> points) const {
  cost_model::FeatureMatrix matrix{.columns = features_->Columns()};
  for (const PartialPoint& point : points) {
    int rows = 0;
    HONE_RETURN_IF_ERROR(features_->ExtractSchedule(
        {point.space, point.decisions, &context_.spaces[point.space]->trace()}, matrix.values,
        rows));
    matrix.row_begin.push_back(matrix.row_begin.back() + rows);
  }
  return matrix;
}

std::unique_ptr<PointFilter> MakeScheduleFilter(const SearchContext& context, std::string model) {
  return std::make_unique<ScheduleFilter>(context, std::move(model));
}

}  // namespace hone::search

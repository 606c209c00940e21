#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/models.h"

namespace hone::cost_model {
namespace {

constexpr double kOverlap = 0.3;  // as in feature::EstimateCost
constexpr absl::string_view kPartNames[kDraftWeights] = {
    "compute", "math",          "latency",      "spills", "loads",  "stores",   "bodies",
    "moves",   "waits",         "l2",           "pages",  "l3",     "l3_jumps", "contended",
    "memory",  "memory_shared", "memory_jumps", "forks",  "overlap"};

// Fitting.
constexpr double kLeastWeight = 1.0 / 64;  // of failed candidates, and the least weight
constexpr double kFitHuber = 0.25;         // in log latency; larger errors count linearly
constexpr double kPresetPull = 0.002;      // per squared log2 of a factor
constexpr double kSteps[] = {1, 0.5, 0.25, 0.12, 0.06};  // in log2
constexpr int kMostSweeps = 4;                           // per step size

// The candidates of a fit, without those that failed.
struct FitData {
  const FeatureMatrix& features;
  std::vector<int> candidates;
  std::vector<double> log_throughput, weight;
  std::vector<int32_t> task;  // 0, 1, …
  int tasks = 0;
};

FitData MakeFitData(const FeatureMatrix& features, const Labels& labels) {
  FitData data{.features = features};
  std::vector<int32_t> numbers;
  for (int i = 0; i < features.candidates(); ++i) {
    if (labels.throughput[i] <= 0) continue;
    data.candidates.push_back(i);
    data.log_throughput.push_back(std::log(labels.throughput[i]));
    data.weight.push_back(std::max(labels.throughput[i], kLeastWeight));
    numbers.push_back(labels.TaskOf(i));
  }
  std::vector<int32_t> known = numbers;
  absl::c_sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  data.tasks = static_cast<int>(known.size());
  for (const int32_t number : numbers)
    data.task.push_back(static_cast<int32_t>(absl::c_lower_bound(known, number) - known.begin()));
  // Every task has the weight 1.
  std::vector<double> sums(data.tasks, 0);
  for (size_t i = 0; i < data.task.size(); ++i) sums[data.task[i]] += data.weight[i];
  for (size_t i = 0; i < data.task.size(); ++i) data.weight[i] /= sums[data.task[i]];
  return data;
}

double Loss(const FitData& data, const DraftWeights& weights) {
  std::vector<double> error(data.candidates.size()), mean(data.tasks, 0);
  for (size_t i = 0; i < error.size(); ++i) {
    error[i] = std::log(weights.Cycles(data.features, data.candidates[i])) + data.log_throughput[i];
    mean[data.task[i]] += data.weight[i] * error[i];
  }
  double loss = 0;
  for (size_t i = 0; i < error.size(); ++i) {
    const double off = std::abs(error[i] - mean[data.task[i]]);
    loss += data.weight[i] * (off < kFitHuber ? off * off / 2 : kFitHuber * (off - kFitHuber / 2));
  }
  loss /= std::max(1, data.tasks);
  for (const double factor : weights.factors)
    loss += kPresetPull * std::log2(factor) * std::log2(factor);
  return loss;
}

class DraftPredictor final : public Predictor {
 public:
  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    weights_ = DraftWeights::Fit(features, labels);
    trained_ = true;
    return absl::OkStatus();
  }

  int columns() const override { return trained_ ? kDraftColumns : 0; }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction;
    for (int i = 0; i < features.candidates(); ++i)
      prediction.mean.push_back(1 / weights_.Cycles(features, i));
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override {
    if (trained_) weights_.Serialize(writer);
  }
  absl::Status Parse(ByteReader& reader) override {
    trained_ = reader.remaining() > 0;
    return trained_ ? weights_.Parse(reader) : absl::OkStatus();
  }

 private:
  bool trained_ = false;
  DraftWeights weights_;
};

}  // namespace

absl::string_view DraftPartName(int part) { return kPartNames[part]; }

double DraftWeights::Cycles(absl::Span<const float> row) const {
  const auto part = [&](DraftPart which) { return factors[which] * row[which]; };
  const double arithmetic =
      std::max(part(kComputePart) + part(kMathPart), part(kLatencyPart)) + part(kSpillPart);
  const double ports = std::max(part(kLoadPart), part(kStorePart));
  const double execute =
      std::hypot(arithmetic, ports) + part(kBodyPart) + part(kMovePart) + part(kWaitPart);
  const double l2 = part(kL2Part) + part(kPagePart);
  const double l3 = part(kL3Part) + part(kL3JumpPart) + part(kContendedPart);
  const double jumps = 1 + row[kMemoryJumpPart] * (factors[kMemoryJumpPart] - 1);
  const double memory = std::max(part(kMemoryPart), part(kMemorySharedPart)) * jumps;
  const double largest = std::max({execute, l2, l3, memory});
  return largest + kOverlap * factors[kOverlapWeight] * (execute + l2 + l3 + memory - largest);
}

double DraftWeights::Cycles(const FeatureMatrix& features, int candidate) const {
  double cycles = 0;
  for (int32_t r = features.row_begin[candidate]; r < features.row_begin[candidate + 1]; ++r) {
    const absl::Span<const float> row = features.row(r);
    cycles += Cycles(row) + factors[kForkPart] * row[kForkPart];
  }
  return std::max(1.0, cycles);
}

DraftWeights DraftWeights::Fit(const FeatureMatrix& features, const Labels& labels) {
  DraftWeights best;
  const FitData data = MakeFitData(features, labels);
  double least = Loss(data, best);
  for (const double step : kSteps) {
    bool improved = true;
    for (int sweep = 0; improved && sweep < kMostSweeps; ++sweep) {
      improved = false;
      for (double& factor : best.factors) {
        YieldToTimers();
        const double before = factor;
        for (const double next : {before * std::exp2(step), before * std::exp2(-step)}) {
          if (next > kMost || next < 1 / kMost) continue;
          const double kept = factor;
          factor = next;
          const double loss = Loss(data, best);
          if (loss < least) {
            least = loss;
            improved = true;
          } else {
            factor = kept;
          }
        }
      }
    }
  }
  return best;
}

void DraftWeights::Serialize(ByteWriter& writer) const {
  for (const double factor : factors) writer.Add(factor);
}

absl::Status DraftWeights::Parse(ByteReader& reader) {
  for (int part = 0; part < kDraftWeights; ++part) {
    HONE_RETURN_IF_ERROR(reader.Read(factors[part]));
    if (factors[part] >= 1 / kMost && factors[part] <= kMost) continue;
    return absl::InvalidArgumentError(absl::StrCat("cannot load the draft: its factor of ",
                                                   kPartNames[part], " is ", factors[part],
                                                   ", not in [", 1 / kMost, ", ", kMost, "]"));
  }
  return absl::OkStatus();
}

constexpr ModelKind kDraftModel = {.name = "draft",
                                   .feature_set = "draft",
                                   .make = MakePredictor<DraftPredictor>,
                                   .columns = kDraftColumns,
                                   .any_features = false};

}  // namespace hone::cost_model

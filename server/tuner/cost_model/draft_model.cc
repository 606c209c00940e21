#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/models.h"

namespace hone::cost_model {
namespace {

constexpr double kOverlap = 0.3;  // as in feature::EstimateCost and EstimateGpuCost
constexpr absl::string_view kPartNames[kDraftWeights] = {"compute",        "math",
                                                         "latency",        "spills",
                                                         "loads",          "stores",
                                                         "bodies",         "moves",
                                                         "waits",          "l2",
                                                         "pages",          "l3",
                                                         "l3_jumps",       "contended",
                                                         "memory",         "memory_shared",
                                                         "memory_jumps",   "forks",
                                                         "gpu_arithmetic", "gpu_issues",
                                                         "gpu_spills",     "gpu_shared",
                                                         "gpu_conflicts",  "gpu_l1",
                                                         "gpu_l2",         "gpu_load_waits",
                                                         "gpu_sum_waits",  "gpu_barriers",
                                                         "gpu_memory",     "gpu_launches",
                                                         "gpu_estimate",   "gpu_waves",
                                                         "gpu_resident",   "gpu_last",
                                                         "overlap",        "gpu_overlap",
                                                         "gpu_unhidden"};

constexpr int kCpuWeights[] = {kComputePart,    kMathPart,      kLatencyPart,  kSpillPart,
                               kLoadPart,       kStorePart,     kBodyPart,     kMovePart,
                               kWaitPart,       kL2Part,        kPagePart,     kL3Part,
                               kL3JumpPart,     kContendedPart, kMemoryPart,   kMemorySharedPart,
                               kMemoryJumpPart, kForkPart,      kOverlapWeight};
constexpr int kGpuWeights[] = {
    kGpuArithmeticPart, kGpuIssuePart,  kGpuSpillPart,     kGpuSharedPart,    kGpuConflictPart,
    kGpuL1Part,         kGpuL2Part,     kGpuLoadWaitPart,  kGpuSumWaitPart,   kGpuBarrierPart,
    kGpuMemoryPart,     kGpuLaunchPart, kGpuOverlapWeight, kGpuUnhiddenWeight};
constexpr int kCpuOther[] = {kMemoryJumpPart};
constexpr int kGpuOther[] = {kGpuWaves, kGpuResident, kGpuLast};
constexpr std::array<double, kDraftWeights> kPresets = [] {
  std::array<double, kDraftWeights> factors{};
  factors.fill(1);
  return factors;
}();
constexpr DraftKind kKinds[] = {{"CPU", 0, kCpuEnd, kCpuWeights, kCpuOther},
                                {"GPU", kCpuEnd, kGpuEnd, kGpuWeights, kGpuOther}};

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

// Returns the cycles of a statement on a CPU, without forks.
double CpuCycles(absl::Span<const float> row, const std::array<double, kDraftWeights>& factors) {
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

// Returns the cycles of a launch on a GPU, as feature::EstimateGpuCost adds them up.
double GpuCycles(absl::Span<const float> row, const std::array<double, kDraftWeights>& factors) {
  const auto part = [&](DraftPart which) { return factors[which] * row[which]; };
  const double compute = part(kGpuArithmeticPart) + part(kGpuIssuePart) + part(kGpuSpillPart);
  const double shared = part(kGpuSharedPart) + part(kGpuConflictPart);
  const double l1 = part(kGpuL1Part), l2 = part(kGpuL2Part);
  const double overlap = kOverlap * factors[kGpuOverlapWeight];
  const double largest = std::max({compute, shared, l1, l2});
  const double busy = largest + overlap * (compute + shared + l1 + l2 - largest);
  const double waits = part(kGpuLoadWaitPart) + part(kGpuSumWaitPart) + part(kGpuBarrierPart);
  // The columns are sums over the blocks and waves of a unit.
  const double full = row[kGpuWaves], resident = row[kGpuResident], last = row[kGpuLast];
  const double per_block = busy / std::max(1.0, full * resident + last);
  const double per_wave = waits / std::max(1.0, full + (last > 0 ? 1 : 0));
  const auto wave = [&](double blocks) {
    const double own = per_block * blocks;
    return std::max(own, per_wave) +
           factors[kGpuUnhiddenWeight] * std::min(own, per_wave) / (1 + blocks);
  };
  const double run = full * wave(resident) + (last > 0 ? wave(last) : 0);
  const double memory = part(kGpuMemoryPart);
  return std::max(run, memory) + overlap * std::min(run, memory) + part(kGpuLaunchPart);
}

class DraftPredictor final : public Predictor {
 public:
  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    HONE_RETURN_IF_ERROR(CheckDraftKind(features, DraftKindOf(features, 0)));
    weights_ = DraftWeights::Fit(features, labels);
    trained_ = true;
    return absl::OkStatus();
  }

  int columns() const override { return trained_ ? kDraftColumns : 0; }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    if (trained_) HONE_RETURN_IF_ERROR(CheckDraftKind(features, *weights_.kind));
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

const DraftKind& DraftKindOf(const FeatureMatrix& features, int candidate) {
  const int estimate = features.columns - kDraftColumns + kGpuEstimate;
  bool gpu = false;
  for (int32_t r = features.row_begin[candidate]; r < features.row_begin[candidate + 1]; ++r)
    gpu |= features.row(r)[estimate] > 0;
  return kKinds[gpu ? 1 : 0];
}

absl::Status CheckDraftKind(const FeatureMatrix& features, const DraftKind& kind) {
  for (int i = 0; i < features.candidates(); ++i) {
    const DraftKind& own = DraftKindOf(features, i);
    if (&own == &kind) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("candidate ", i, " is a program for a ", own.name, ", but the draft is of a ",
                     kind.name, "; learn from the results of one target at a time"));
  }
  return absl::OkStatus();
}

DraftWeights::DraftWeights() : kind(&kKinds[0]), factors(kPresets) {}

double DraftWeights::Cycles(absl::Span<const float> row) const {
  if (!(row[kGpuEstimate] > 0)) return CpuCycles(row, factors);
  return row[kGpuEstimate] * (GpuCycles(row, factors) / GpuCycles(row, kPresets));
}

double DraftWeights::Cycles(const FeatureMatrix& features, int candidate) const {
  double cycles = 0;
  for (int32_t r = features.row_begin[candidate]; r < features.row_begin[candidate + 1]; ++r) {
    const absl::Span<const float> row = features.row(r).last(kDraftColumns);
    cycles += Cycles(row) + factors[kForkPart] * row[kForkPart];
  }
  return std::max(1.0, cycles);
}

DraftWeights DraftWeights::Fit(const FeatureMatrix& features, const Labels& labels) {
  DraftWeights best;
  best.kind = &DraftKindOf(features, 0);
  const FitData data = MakeFitData(features, labels);
  double least = Loss(data, best);
  for (const double step : kSteps) {
    bool improved = true;
    for (int sweep = 0; improved && sweep < kMostSweeps; ++sweep) {
      improved = false;
      for (const int weight : best.kind->weights) {
        double& factor = best.factors[weight];
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
  writer.Add(kind->name, static_cast<uint32_t>(kind->weights.size()));
  for (const int weight : kind->weights) writer.Add(factors[weight]);
}

absl::Status DraftWeights::Parse(ByteReader& reader) {
  std::string name;
  uint32_t count = 0;
  HONE_RETURN_IF_ERROR(reader.Read(name, count));
  kind = absl::c_find_if(kKinds, [&](const DraftKind& each) { return each.name == name; });
  if (kind == std::end(kKinds)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot load the draft: it is of a '", name, "', but this program knows ",
                     absl::StrJoin(kKinds, ", ", [](std::string* out, const DraftKind& each) {
                       out->append(each.name.data(), each.name.size());
                     })));
  }
  if (count != kind->weights.size()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot load the draft: it has ", count,
                                                   " factors, but that of a ", name, " has ",
                                                   kind->weights.size()));
  }
  for (const int part : kind->weights) {
    HONE_RETURN_IF_ERROR(reader.Read(factors[part]));
    if (factors[part] >= 1 / kMost && factors[part] <= kMost) continue;
    return absl::InvalidArgumentError(absl::StrCat("cannot load the draft: its factor of ",
                                                   kPartNames[part], " is ", factors[part],
                                                   ", not in [", 1 / kMost, ", ", kMost, "]"));
  }
  return absl::OkStatus();
}

constexpr ModelKind kDraftModel = {.name = "draft",
                                   .version = 2,
                                   .feature_set = "draft",
                                   .make = MakePredictor<DraftPredictor>,
                                   .columns = kDraftColumns,
                                   .any_features = false};

}  // namespace hone::cost_model

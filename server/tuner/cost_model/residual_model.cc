#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/flat_forest.h"
#include "server/tuner/cost_model/model_file.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/cost_model/xgboost_booster.h"

namespace hone::cost_model {
namespace {

constexpr uint32_t kVersion = 2;  // of its files
constexpr int kRounds = 150;
constexpr double kLearningRate = 0.1;
constexpr double kFailedThroughput = 1.0 / 16;
constexpr double kLeastResidualWeight = 0.05;  // of slow candidates
constexpr double kMostError = 1;               // in log latency; larger errors count linearly
// Deciding how much of it to use.
constexpr int kFolds = 4;
constexpr int kLeastTasks =
    6;  // with fewer, what helps those that are left out may not help others
constexpr double kShares[] = {0.25, 0.5, 0.75, 1};  // of the trees' correction
constexpr double kGain = 0.98;  // the loss on left-out tasks must fall below this share
constexpr double kHuber = 0.25;

// The rows that the trees read: the statement's features, each part's share of its cycles (only of
// the parts of the fitted kind of target), and the sizes of both.
class ResidualRows {
 public:
  ResidualRows(const DraftWeights& weights, const FeatureMatrix& features)
      : columns(ColumnsOf(*weights.kind)) {
    const int first = features.columns - kDraftColumns;
    const DraftKind& kind = *weights.kind;
    rows.reserve(static_cast<size_t>(features.rows()) * columns);
    for (int i = 0; i < features.candidates(); ++i) {
      const size_t begin = cycles.size();
      double sum = 0;
      for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r) {
        const absl::Span<const float> parts = features.row(r).subspan(first);
        cycles.push_back(
            std::max(1.0, weights.Cycles(parts) + weights.factors[kForkPart] * parts[kForkPart]));
        sum += cycles.back();
      }
      for (size_t r = begin; r < cycles.size(); ++r) {
        const absl::Span<const float> row = features.row(static_cast<int>(r));
        rows.insert(rows.end(), row.begin(), row.begin() + first);
        for (int part = kind.begin; part < kind.end; ++part) {
          const double share = absl::c_linear_search(kind.not_cycles, part)
                                   ? row[first + part]
                                   : weights.factors[part] * row[first + part] / cycles[r];
          rows.push_back(static_cast<float>(share));
        }
        rows.push_back(static_cast<float>(std::log2(cycles[r])));
        rows.push_back(static_cast<float>(cycles[r] / sum));
      }
    }
  }

  static int ColumnsOf(const DraftKind& kind) {
    return kResidualColumns - kDraftColumns + kind.end - kind.begin + 2;
  }

  const int columns;
  std::vector<float> rows;
  std::vector<double> cycles;  // of each row, by the fitted draft
};

// The derivatives of the loss with respect to the trees' values of the rows.
class ResidualObjective {
 public:
  ResidualObjective(const FeatureMatrix& features, const ResidualRows& rows, const Labels& labels)
      : row_begin_(features.row_begin),
        cycles_(rows.cycles),
        gradient_(rows.cycles.size()),
        hessian_(rows.cycles.size()) {
    std::map<int32_t, int32_t> numbers;
    for (size_t i = 0; i < labels.throughput.size(); ++i) {
      const double throughput = labels.throughput[i] > 0 ? labels.throughput[i] : kFailedThroughput;
      log_throughput_.push_back(std::log(throughput));
      weight_.push_back(std::max(throughput, kLeastResidualWeight));
      task_.push_back(numbers.try_emplace(labels.TaskOf(i), numbers.size()).first->second);
    }
    mean_.resize(numbers.size());
    task_weight_.resize(numbers.size(), 0);
    for (size_t i = 0; i < task_.size(); ++i) task_weight_[task_[i]] += weight_[i];
    // The mean weight of a candidate is 1, and every task has the same.
    const double each = static_cast<double>(task_.size()) / static_cast<double>(mean_.size());
    for (size_t i = 0; i < task_.size(); ++i) weight_[i] *= each / task_weight_[task_[i]];
    absl::c_fill(task_weight_, each);
  }

  void Differentiate(absl::Span<const float> values) {
    const size_t candidates = task_.size();
    std::vector<double> error(candidates), corrected(values.size()), sums(candidates, 0);
    absl::c_fill(mean_, 0.0);
    for (size_t i = 0; i < candidates; ++i) {
      for (int32_t r = row_begin_[i]; r < row_begin_[i + 1]; ++r) {
        corrected[r] = cycles_[r] * std::exp(static_cast<double>(values[r]));
        sums[i] += corrected[r];
      }
      error[i] = std::log(sums[i]) + log_throughput_[i];
      mean_[task_[i]] += weight_[i] * error[i] / task_weight_[task_[i]];
    }
    for (size_t i = 0; i < candidates; ++i) {
      const double off = std::clamp(error[i] - mean_[task_[i]], -kMostError, kMostError);
      for (int32_t r = row_begin_[i]; r < row_begin_[i + 1]; ++r) {
        const double share = corrected[r] / sums[i];
        gradient_[r] = static_cast<float>(weight_[i] * off * share);
        hessian_[r] = static_cast<float>(weight_[i] * share);
      }
    }
  }

  absl::Span<float> gradient() { return absl::MakeSpan(gradient_); }
  absl::Span<float> hessian() { return absl::MakeSpan(hessian_); }

 private:
  const absl::Span<const int32_t> row_begin_;
  const absl::Span<const double> cycles_;
  std::vector<double> log_throughput_, weight_, mean_, task_weight_;
  std::vector<int32_t> task_;
  std::vector<float> gradient_, hessian_;
};

// Candidates with their labels.
struct Material {
  FeatureMatrix features;
  std::vector<double> throughput;
  std::vector<int32_t> tasks;
  Labels labels() const { return {throughput, tasks}; }
};

// Returns the candidates whose tasks are selected, by the number of the task.
Material Select(const FeatureMatrix& features, const Labels& labels,
                const std::function<bool(int32_t task)>& selected) {
  Material material{.features = {.columns = features.columns}};
  for (int i = 0; i < features.candidates(); ++i) {
    if (!selected(labels.TaskOf(i))) continue;
    const size_t begin = static_cast<size_t>(features.row_begin[i]) * features.columns;
    const size_t end = static_cast<size_t>(features.row_begin[i + 1]) * features.columns;
    material.features.Append(absl::MakeConstSpan(features.values).subspan(begin, end - begin),
                             features.row_begin[i + 1] - features.row_begin[i]);
    material.throughput.push_back(labels.throughput[i]);
    material.tasks.push_back(labels.TaskOf(i));
  }
  return material;
}

FeatureMatrix DraftRows(const FeatureMatrix& features) {
  FeatureMatrix draft{.columns = kDraftColumns, .row_begin = features.row_begin};
  for (int r = 0; r < features.rows(); ++r) {
    const absl::Span<const float> parts = features.row(r).subspan(features.columns - kDraftColumns);
    draft.values.insert(draft.values.end(), parts.begin(), parts.end());
  }
  return draft;
}

// A fitted draft and trees for what is left.
struct Learned {
  DraftWeights weights;
  FlatForest forest;  // without columns: none
  double share = 0;   // of the trees' correction that is used, in [0, 1]

  // Returns the logarithm of each candidate's cycles, with this share of the correction.
  std::vector<double> LogCycles(const FeatureMatrix& features, double used) const {
    const ResidualRows rows(weights, features);
    std::vector<float> values(rows.cycles.size(), 0.0f);
    if (forest.columns() > 0 && used > 0) forest.Predict(rows.rows, absl::MakeSpan(values));
    std::vector<double> result;
    for (int i = 0; i < features.candidates(); ++i) {
      double sum = 0;
      for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r)
        sum += rows.cycles[r] * std::exp(used * static_cast<double>(values[r]));
      result.push_back(std::log(sum));
    }
    return result;
  }
};

absl::StatusOr<Learned> Learn(const Material& material, const CostModelOptions& options) {
  Learned learned{.weights = DraftWeights::Fit(DraftRows(material.features), material.labels()),
                  .share = 1};
  const ResidualRows rows(learned.weights, material.features);
  ResidualObjective objective(material.features, rows, material.labels());
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<XgboostBooster> booster,
                        XgboostBooster::Create(rows.rows, rows.columns,
                                               {{"tree_method", "hist"},
                                                {"max_bin", "64"},
                                                {"max_depth", "6"},
                                                {"eta", absl::StrCat(kLearningRate)},
                                                {"min_child_weight", "10"},
                                                {"lambda", "10"},
                                                {"subsample", "0.7"},
                                                {"colsample_bynode", "0.3"},
                                                {"base_score", "0"},
                                                {"nthread", absl::StrCat(options.threads)},
                                                {"seed", absl::StrCat(options.seed & 0x7fffffff)},
                                                {"verbosity", "0"}}));
  for (int round = 0; round < kRounds; ++round) {
    HONE_ASSIGN_OR_RETURN(const absl::Span<const float> values, booster->TrainingScores());
    objective.Differentiate(values);
    HONE_RETURN_IF_ERROR(booster->BoostOneRound(objective.gradient(), objective.hessian()));
    YieldToTimers();
    if (options.pause != nullptr) HONE_RETURN_IF_ERROR(options.pause());
  }
  HONE_ASSIGN_OR_RETURN(const std::string json, booster->Json());
  HONE_ASSIGN_OR_RETURN(learned.forest, ForestOfXgboostJson(json, rows.columns, kRounds));
  return learned;
}

// Sums of Huber's loss over tasks, each relative to its mean, in which fast candidates weigh more.
double LossOf(const std::vector<double>& log_cycles, const Material& material) {
  struct Sums {
    double weight = 0, error = 0, loss = 0;
  };
  std::map<int32_t, Sums> tasks;
  const auto visit = [&](const auto& see) {
    for (size_t i = 0; i < log_cycles.size(); ++i) {
      const double throughput = std::max(material.throughput[i], kFailedThroughput);
      see(tasks[material.tasks[i]], throughput, log_cycles[i] + std::log(throughput));
    }
  };
  visit([](Sums& sums, double weight, double error) {
    sums.weight += weight;
    sums.error += weight * error;
  });
  visit([](Sums& sums, double weight, double error) {
    const double off = std::abs(error - sums.error / sums.weight);
    sums.loss += weight * (off < kHuber ? off * off / 2 : kHuber * (off - kHuber / 2));
  });
  double loss = 0;
  for (const auto& [task, sums] : tasks) loss += sums.loss / sums.weight;
  return loss;
}

// Returns what a saved model has learned; nullopt if nothing, or if it cannot be read.
std::optional<Learned> ReadForeign(const std::string& bytes);

// Learns on all tasks, but uses only what orders tasks better that it was not learned on.
class ResidualPredictor final : public Predictor {
 public:
  explicit ResidualPredictor(const CostModelOptions& options) : options_(options) {}

  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    const DraftKind& kind = DraftKindOf(features, 0);
    HONE_RETURN_IF_ERROR(CheckDraftKind(features, kind));
    const Material all = Select(features, labels, [](int32_t) { return true; });
    std::map<int32_t, int> fold_of;  // by task
    for (const int32_t task : all.tasks) fold_of.try_emplace(task, 0);
    tasks_ = 0;
    for (auto& [task, fold] : fold_of) fold = tasks_++ % kFolds;
    presets_ = fitted_ = corrected_ = LossOf(Learned().LogCycles(features, 0), all) / tasks_;
    double used = presets_;
    if (tasks_ > 1) {  // something can be left out
      HONE_RETURN_IF_ERROR(LearnFrom(all, fold_of));
      used = learned_.share > 0 ? corrected_ : learned_.forest.columns() > 0 ? fitted_ : presets_;
    }
    for (const std::string& bytes : options_.foreign) {
      std::optional<Learned> other = ReadForeign(bytes);
      if (!other.has_value() || other->weights.kind != &kind) continue;
      const double loss = LossOf(other->LogCycles(features, other->share), all) / tasks_;
      if (!(loss < kGain * used)) continue;  // also if it is not a number
      used = foreign_ = loss;
      learned_ = *std::move(other);
      is_foreign_ = true;
    }
    return absl::OkStatus();
  }

  std::string Summary() const override {
    nlohmann::ordered_json json{{"tasks", tasks_},           {"loss_of_presets", presets_},
                                {"loss_of_draft", fitted_},  {"loss_with_trees", corrected_},
                                {"is_foreign", is_foreign_}, {"share_of_trees", learned_.share}};
    if (is_foreign_) json["loss_of_foreign"] = foreign_;
    for (const int part : learned_.weights.kind->weights)
      json["factors"][std::string(DraftPartName(part))] = learned_.weights.factors[part];
    return json.dump();
  }

  int columns() const override { return learned_.forest.columns() == 0 ? 0 : kResidualColumns; }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction;
    if (columns() == 0) {  // the draft
      for (int i = 0; i < features.candidates(); ++i)
        prediction.mean.push_back(1 / learned_.weights.Cycles(features, i));
      return prediction;
    }
    HONE_RETURN_IF_ERROR(CheckDraftKind(features, *learned_.weights.kind));
    prediction.mean = learned_.LogCycles(features, learned_.share);
    for (double& mean : prediction.mean) mean = std::exp(-mean);
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override {
    if (columns() == 0) return;
    learned_.weights.Serialize(writer);
    writer.Add(learned_.share);
    learned_.forest.Serialize(writer);
  }

  absl::Status Parse(ByteReader& reader) override {
    if (reader.remaining() == 0) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(learned_.weights.Parse(reader));
    HONE_RETURN_IF_ERROR(reader.Read(learned_.share));
    HONE_ASSIGN_OR_RETURN(learned_.forest, FlatForest::Parse(reader));
    const int expected = ResidualRows::ColumnsOf(*learned_.weights.kind);
    if (learned_.forest.columns() != expected) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot load the cost model: its trees read ", learned_.forest.columns(),
          " columns, but those of a ", learned_.weights.kind->name, " read ", expected));
    }
    if (learned_.share >= 0 && learned_.share <= 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("cannot load the cost model: the share of its trees is ", learned_.share,
                     ", not in [0, 1]"));
  }

  const Learned& learned() const { return learned_; }

 private:
  // Sets what is learned and its losses on left-out tasks.
  absl::Status LearnFrom(const Material& all, const std::map<int32_t, int>& fold_of) {
    double presets = 0, fitted = 0;
    std::vector<double> corrected(std::size(kShares), 0.0);
    for (int fold = 0; fold < std::min(kFolds, tasks_); ++fold) {
      const auto select = [&](bool left_out) {
        return Select(all.features, all.labels(),
                      [&](int32_t task) { return (fold_of.at(task) == fold) == left_out; });
      };
      const Material left_out = select(true);
      HONE_ASSIGN_OR_RETURN(const Learned learned, Learn(select(false), options_));
      presets += LossOf(Learned().LogCycles(left_out.features, 0), left_out);
      fitted += LossOf(learned.LogCycles(left_out.features, 0), left_out);
      for (size_t s = 0; s < corrected.size(); ++s)
        corrected[s] += LossOf(learned.LogCycles(left_out.features, kShares[s]), left_out);
    }
    const size_t best = absl::c_min_element(corrected) - corrected.begin();
    fitted_ = fitted / tasks_;
    corrected_ = corrected[best] / tasks_;
    const bool corrects = tasks_ >= kLeastTasks && corrected[best] < kGain * fitted;
    if (!((corrects ? corrected[best] : fitted) < kGain * presets)) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(learned_, Learn(all, options_));
    learned_.share = corrects ? kShares[best] : 0;
    return absl::OkStatus();
  }

  const CostModelOptions options_;
  Learned learned_;
  // Of the last training: mean losses on left-out tasks, which all are to the foreign model that is
  // used.
  double presets_ = 0, fitted_ = 0, corrected_ = 0, foreign_ = 0;
  bool is_foreign_ = false;
  int tasks_ = 0;
};

std::optional<Learned> ReadForeign(const std::string& bytes) {
  const absl::StatusOr<ModelFile> file =
      DecodeModel(bytes, {.name = "residual", .version = kVersion, .feature_set = "residual"});
  if (!file.ok()) return std::nullopt;
  ByteReader reader(file->payload);
  ResidualPredictor predictor({});
  if (!predictor.Parse(reader).ok() || predictor.columns() == 0) return std::nullopt;
  return predictor.learned();
}

}  // namespace

constexpr ModelKind kResidualModel = {.name = "residual",
                                      .version = kVersion,
                                      .feature_set = "residual",
                                      .make = MakePredictor<ResidualPredictor>,
                                      .columns = kResidualColumns,
                                      .any_features = false};

}  // namespace hone::cost_model

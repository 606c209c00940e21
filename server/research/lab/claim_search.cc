#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "server/research/lab/claims.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/maker.h"

namespace hone::lab {
namespace {

constexpr int kClaimBatch = 16;
constexpr int kDonorResults = 500;   // what a model of another task has learned
constexpr int kFrozenResults = 512;  // what a frozen model has learned
constexpr char kSimulatedTarget[] = "x86-avx2";
// The simulated device builds a candidate in so many seconds, and runs it so often.
constexpr double kBuildSeconds = 0.05;
constexpr int kRunsOfATrial = 20;
constexpr double kPoolRandomShare = 0.05;

using cost_model::FeatureMatrix;

// A task on a machine that the draft knows badly: the draft's estimate with other constants, a
// third of the candidates slower for no reason, and noise of 2 % that depends on the seed.
class SimulatedTask {
 public:
  static absl::StatusOr<std::unique_ptr<SimulatedTask>> Make(const std::string& task,
                                                             const ClaimVariant& variant,
                                                             uint64_t seed) {
    auto made = std::make_unique<SimulatedTask>();
    HONE_ASSIGN_OR_RETURN(made->target_, target::TargetByName(kSimulatedTarget));
    made->target_.cores = 2;
    std::vector<std::string> words = absl::StrSplit(task, ' ');
    const std::string name = words[0];
    words.erase(words.begin());
    HONE_ASSIGN_OR_RETURN(ir::Workload workload, op::BuildWorkload(name, words));
    HONE_ASSIGN_OR_RETURN(
        made->spaces_,
        space::MakeSpaces({.workload = std::make_shared<const ir::Workload>(std::move(workload)),
                           .target = &made->target_},
                          variant.space));
    std::erase_if(made->spaces_, [&](const auto& space) {
      return !variant.only.empty() && space->name() != variant.only;
    });
    if (made->spaces_.empty())
      return absl::NotFoundError(absl::StrCat(task, " has no design space ", variant.only));
    made->seed_ = seed;
    // A machine with slow threads and stores, and a slow second level of its cache.
    made->machine_.factors[cost_model::kForkPart] = 6;
    made->machine_.factors[cost_model::kLoadPart] = 2;
    made->machine_.factors[cost_model::kL2Part] = 3;
    made->machine_.factors[cost_model::kMovePart] = 4;
    return made;
  }

  search::SearchContext Context(uint64_t seed, int population) const {
    search::SearchContext context{.target = target_, .seed = seed, .population = population};
    for (const auto& space : spaces_) context.spaces.push_back(space.get());
    return context;
  }

  // Returns 0 if the candidate does not replay.
  double LatencyNs(const record::Candidate& candidate) const {
    FeatureMatrix rows;
    if (!AppendRows("draft", candidate, rows).ok()) return 0;
    DigestBuilder builder;
    builder.Add(absl::string_view(candidate.space_digest));
    for (const int64_t decision : candidate.decisions) builder.Add(decision);
    const uint64_t key = builder.Finish().low;
    const double noise = 0.02 * (2 * Rng(seed_, key).Uniform() - 1);
    return machine_.Cycles(rows, 0) * (key % 3 == 0 ? 1.2 : 1) * (1 + noise);
  }

  absl::Status AppendRows(absl::string_view set, const record::Candidate& candidate,
                          FeatureMatrix& matrix) const {
    const auto space = absl::c_find_if(
        spaces_, [&](const auto& each) { return each->digest() == candidate.space_digest; });
    HONE_ASSIGN_OR_RETURN(const feature::FeatureSet* features, feature::FindFeatureSet(set));
    std::vector<float> rows;
    int count = 0;
    const auto number = static_cast<int>(space - spaces_.begin());
    HONE_RETURN_IF_ERROR(search::AppendRowsOf(*features, **space, {number, candidate.decisions},
                                              target_, rows, count));
    matrix.columns = features->Columns();
    matrix.Append(rows, count);
    return absl::OkStatus();
  }

  std::vector<record::Candidate> Drawn(int count, uint64_t seed) const {
    std::vector<record::Candidate> drawn;
    for (int i = 0; i < count; ++i) {
      Rng rng(seed, static_cast<uint64_t>(i), /*purpose=*/1);
      const space::DesignSpace& space = *spaces_[i % spaces_.size()];
      const auto decisions = space.Sample(rng);
      if (decisions.ok()) drawn.push_back({space.digest(), *decisions});
    }
    return drawn;
  }

 private:
  target::Target target_;
  std::vector<std::unique_ptr<space::DesignSpace>> spaces_;
  cost_model::DraftWeights machine_;
  uint64_t seed_ = 0;
};

// The results that a model learns from.
class Lessons {
 public:
  // Results of another task, which the model keeps.
  void AddDonor(const FeatureMatrix& rows, const std::vector<double>& latencies) {
    Append(rows, latencies, /*task=*/1);
  }
  void Add(const FeatureMatrix& row, double latency_ns) { Append(row, {latency_ns}, /*task=*/0); }

  absl::Status Teach(cost_model::CostModel& model) const {
    if (model.feature_set().empty() || latency_ns_.empty()) return absl::OkStatus();
    double best_ns[2] = {0, 0};
    for (size_t i = 0; i < latency_ns_.size(); ++i) {
      double& best = best_ns[tasks_[i]];
      if (latency_ns_[i] > 0 && (best == 0 || latency_ns_[i] < best)) best = latency_ns_[i];
    }
    std::vector<double> throughput;
    for (size_t i = 0; i < latency_ns_.size(); ++i)
      throughput.push_back(latency_ns_[i] > 0 ? best_ns[tasks_[i]] / latency_ns_[i] : 0);
    return model.Update(rows_, {throughput, tasks_});
  }

 private:
  void Append(const FeatureMatrix& rows, const std::vector<double>& latencies, int32_t task) {
    rows_.columns = rows.columns;
    for (int i = 0; i < rows.candidates(); ++i) {
      const size_t begin = static_cast<size_t>(rows.row_begin[i]) * rows.columns;
      const int count = rows.row_begin[i + 1] - rows.row_begin[i];
      rows_.Append(absl::MakeConstSpan(rows.values)
                       .subspan(begin, static_cast<size_t>(count) * rows.columns),
                   count);
      latency_ns_.push_back(latencies[i]);
      tasks_.push_back(task);
    }
  }

  FeatureMatrix rows_;
  std::vector<double> latency_ns_;
  std::vector<int32_t> tasks_;
};

// Adds results of random candidates of a task.
absl::Status AddDrawn(const SimulatedTask& task, int count, uint64_t seed,
                      const std::string& feature_set, bool as_donor, Lessons& lessons) {
  FeatureMatrix all;
  std::vector<double> latencies;
  for (const record::Candidate& candidate : task.Drawn(count, seed)) {
    FeatureMatrix row;
    if (!task.AppendRows(feature_set, candidate, row).ok()) continue;
    if (!as_donor) {
      lessons.Add(row, task.LatencyNs(candidate));
      continue;
    }
    all.columns = row.columns;
    all.Append(row.values, row.rows());
    latencies.push_back(task.LatencyNs(candidate));
  }
  if (as_donor) lessons.AddDonor(all, latencies);
  return absl::OkStatus();
}

// Returns the results of candidates, and the seconds that they take.
absl::StatusOr<double> MeasureOn(const SimulatedTask& task, const cost_model::CostModel* frozen,
                                 const std::vector<record::Candidate>& candidates,
                                 std::vector<search::Measured>& results) {
  double seconds = 0;
  for (const record::Candidate& candidate : candidates) {
    double latency_ns = 0;
    if (frozen == nullptr) {
      latency_ns = task.LatencyNs(candidate);
      seconds += kBuildSeconds + kRunsOfATrial * latency_ns / 1e9;
    } else {
      FeatureMatrix row;
      HONE_RETURN_IF_ERROR(task.AppendRows(frozen->feature_set(), candidate, row));
      HONE_ASSIGN_OR_RETURN(const cost_model::Prediction prediction, frozen->Predict(row));
      latency_ns = 1e6 / std::max(prediction.mean[0], 1e-3);
    }
    results.push_back(
        {candidate, latency_ns > 0 ? record::Outcome::kOk : record::Outcome::kInvalid, latency_ns});
  }
  return seconds;
}

}  // namespace

absl::Status CheckVariant(const ClaimVariant& variant) {
  if (!variant.strategy.empty() &&
      !absl::c_linear_search(search::SearchStrategyNames(), variant.strategy))
    return absl::NotFoundError(absl::StrCat("there is no strategy ", variant.strategy));
  return cost_model::CreateCostModel(variant.cost_model, {.feature_set = variant.feature_set})
      .status();
}

absl::StatusOr<ClaimRun> RunSearch(const Claim& claim, const ClaimVariant& variant,
                                   const std::string& name, int seed, int trials, int population) {
  const auto key = static_cast<uint64_t>(seed);
  HONE_ASSIGN_OR_RETURN(const auto task, SimulatedTask::Make(name, variant, key));
  HONE_ASSIGN_OR_RETURN(const auto model,
                        cost_model::CreateCostModel(
                            variant.cost_model, {.seed = key, .feature_set = variant.feature_set}));
  const bool reads = !model->feature_set().empty();
  const bool frozen = claim.device == ClaimDevice::kFrozen;
  const std::string set(model->feature_set());
  Lessons lessons;
  if (frozen) {  // the same model for all seeds and variants
    HONE_RETURN_IF_ERROR(AddDrawn(*task, kFrozenResults, 1, set, /*as_donor=*/false, lessons));
  } else if (variant.transfers && reads) {
    HONE_ASSIGN_OR_RETURN(const auto donor, SimulatedTask::Make(claim.donor, variant, key));
    HONE_RETURN_IF_ERROR(AddDrawn(*donor, std::min(kDonorResults, 5 * trials), key, set,
                                  /*as_donor=*/true, lessons));
  }
  HONE_RETURN_IF_ERROR(lessons.Teach(*model));
  HONE_ASSIGN_OR_RETURN(const auto strategy, search::CreateSearchStrategy(
                                                 variant.strategy, task->Context(key, population)));
  ClaimRun run{.claim = claim.name,
               .device = ClaimDeviceName(claim.device),
               .variant = variant.label,
               .task = name,
               .seed = seed,
               .trials = trials};
  double searched = 0;
  for (uint64_t event = 0; static_cast<int>(run.latency_ns.size()) < trials; ++event) {
    const absl::Time begin = absl::Now();
    const int n = std::min(kClaimBatch, trials - static_cast<int>(run.latency_ns.size()));
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Candidate> proposed,
                          strategy->Propose(n, event, model.get()));
    if (proposed.empty()) break;
    searched += absl::ToDoubleSeconds(absl::Now() - begin);
    std::vector<search::Measured> results;
    HONE_ASSIGN_OR_RETURN(const double seconds,
                          MeasureOn(*task, frozen ? model.get() : nullptr, proposed, results));
    for (size_t i = 0; i < results.size(); ++i) {
      run.latency_ns.push_back(results[i].latency_ns);
      const double share = static_cast<double>(i + 1) / static_cast<double>(results.size());
      run.seconds.push_back(searched + run.device_seconds + share * seconds);
    }
    run.device_seconds += seconds;
    const absl::Time told = absl::Now();
    strategy->Tell(results);
    for (size_t i = 0; i < results.size() && reads && !frozen; ++i) {
      FeatureMatrix row;
      if (task->AppendRows(set, proposed[i], row).ok()) lessons.Add(row, results[i].latency_ns);
    }
    if (!frozen) HONE_RETURN_IF_ERROR(lessons.Teach(*model));
    searched += absl::ToDoubleSeconds(absl::Now() - told);
  }
  return run;
}

absl::StatusOr<ClaimRun> RunOnSample(const Claim& claim, const ClaimVariant& variant,
                                     const Sample& sample, const JudgedTask& task, int seed,
                                     int trials, const cost_model::CostModel* trained) {
  const auto key = static_cast<uint64_t>(seed);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> own,
                        cost_model::CreateCostModel(
                            variant.cost_model, {.seed = key, .feature_set = variant.feature_set}));
  const bool pool = trained == nullptr;
  const cost_model::CostModel& model = pool ? *own : *trained;
  const auto set = static_cast<size_t>(absl::c_find(sample.feature_sets, model.feature_set()) -
                                       sample.feature_sets.begin());
  ClaimRun run{.claim = claim.name,
               .device = ClaimDeviceName(claim.device),
               .variant = variant.label,
               .task = task.name,
               .seed = seed,
               .trials = trials};
  const size_t count = task.latency_ns.size();
  std::vector<bool> taken(count, false);
  const double slowest = *absl::c_max_element(task.latency_ns);
  Lessons lessons;
  Rng rng(key, DigestOf(task.workload).low);
  const auto take = [&](size_t candidate) {
    taken[candidate] = true;
    // In an order, a failed candidate counts as the slowest one (TopK in metric.h).
    const bool ok = task.latency_ns[candidate] > 0;
    run.latency_ns.push_back(ok || pool ? task.latency_ns[candidate] : slowest);
    run.device_seconds += kBuildSeconds + kRunsOfATrial * task.latency_ns[candidate] / 1e9;
    run.seconds.push_back(run.device_seconds);
    if (!pool || set == sample.feature_sets.size()) return;
    const FeatureMatrix& from = task.features[set];
    FeatureMatrix row{.columns = from.columns};
    const size_t begin = static_cast<size_t>(from.row_begin[candidate]) * from.columns;
    const int rows = from.row_begin[candidate + 1] - from.row_begin[candidate];
    row.Append(
        absl::MakeConstSpan(from.values).subspan(begin, static_cast<size_t>(rows) * from.columns),
        rows);
    lessons.Add(row, task.latency_ns[candidate]);
  };
  const size_t most = std::min(count, static_cast<size_t>(trials));
  while (run.latency_ns.size() < most) {
    std::vector<double> scores(count, 0);
    if (set < sample.feature_sets.size()) {
      HONE_ASSIGN_OR_RETURN(cost_model::Prediction prediction, model.Predict(task.features[set]));
      scores = std::move(prediction.mean);
    }
    std::vector<size_t> order(count);
    absl::c_iota(order, 0);
    std::vector<double> ties;  // random, so that an untrained model draws
    for (size_t i = 0; i < count; ++i) ties.push_back(rng.Uniform());
    absl::c_sort(order, [&](size_t a, size_t b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : ties[a] < ties[b];
    });
    std::erase_if(order, [&](size_t candidate) { return taken[candidate]; });
    const size_t batch = pool ? kClaimBatch : most;
    for (size_t i = 0; i < batch && run.latency_ns.size() < most; ++i) {
      size_t candidate = order[i];
      if (taken[candidate] || (pool && rng.Uniform() < kPoolRandomShare)) {
        do candidate = order[rng.Below(order.size())];
        while (taken[candidate]);
      }
      take(candidate);
    }
    if (pool) HONE_RETURN_IF_ERROR(lessons.Teach(*own));
  }
  return run;
}

}  // namespace hone::lab

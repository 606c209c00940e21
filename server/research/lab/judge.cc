#include "server/research/lab/judge.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/median.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/record/dataset.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/search/model_work.h"
#include "server/research/lab/modelled.h"
#include "server/research/lab/sample.h"
#include "server/tuner/search/run_in_threads.h"

namespace hone::lab {
namespace {

constexpr char kPresets[] = "presets";
constexpr char kOverPresets[] = "presets+";  // before the name of a model that learns a residual
constexpr size_t kFolds = 5;
constexpr double kTimingNoise = 0.03;  // of throughputs; smaller differences say nothing
constexpr double kShare = 0.95;
constexpr int kResamplings = 2000;
constexpr double kIntervalTail = 0.025;

using Records = std::vector<record::DatasetRecord>;

absl::StatusOr<std::map<int32_t, Records>> ReadByTask(record::Dataset& dataset) {
  std::map<int32_t, Records> tasks;
  for (int64_t first = 0; first < dataset.size(); first += record::kDatasetPage) {
    HONE_ASSIGN_OR_RETURN(Records page, dataset.Read(first, record::kDatasetPage));
    for (record::DatasetRecord& record : page) tasks[record.task].push_back(std::move(record));
  }
  return tasks;
}

absl::StatusOr<std::string> NameOf(const std::string& text) {
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(text));
  return absl::StrCat(workload.name, " ", workload.StructuralDigest().ToHex().substr(0, 8));
}

absl::StatusOr<JudgedTask> ReadJudgedTask(const record::Dataset& dataset, int32_t number,
                                          const Records& records, const Sample& sample,
                                          const ReadOptions& options,
                                          const job::TaskEnvironment& environment) {
  const std::vector<std::string>& feature_sets = sample.feature_sets;
  const record::DatasetTask& described = dataset.tasks()[number];
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(described.workload));
  JudgedTask task{
      .name = absl::StrCat(workload.name, " ", workload.StructuralDigest().ToHex().substr(0, 8)),
      .workload = described.workload,
      .family = described.network.empty() ? workload.name : described.network};
  HONE_ASSIGN_OR_RETURN(task.held_out, IsHeldOut(described.workload));
  task.features.resize(feature_sets.size());
  std::map<int32_t, std::unique_ptr<job::TaskSpaces>> spaces;
  std::vector<std::string> traces;
  const size_t step =
      options.results > 0
          ? std::max<size_t>(1, (records.size() + options.results - 1) / options.results)
          : 1;
  for (size_t i = 0; i < records.size(); i += step) {
    const record::DatasetRecord& record = records[i];
    auto [space, fresh] = spaces.try_emplace(record.space);
    if (fresh) {
      auto opened = environment.OpenKept(dataset.spaces()[record.space], sample.target);
      if (opened.ok()) space->second = *std::move(opened);
    }
    bool extracted = space->second != nullptr;
    for (size_t s = 0; extracted && s < feature_sets.size(); ++s) {
      extracted = space->second
                      ->AppendFeatures(feature_sets[s],
                                       {space->second->spaces()[0].digest, record.decisions},
                                       &task.features[s])
                      .ok();
    }
    if (!extracted) {
      ++task.left_out;
      continue;
    }
    task.latency_ns.push_back(record.latency_ns);
    if (record.latency_ns > 0 && (task.best_ns == 0 || record.latency_ns < task.best_ns))
      task.best_ns = record.latency_ns;
    if (options.modelled_by.empty()) continue;
    HONE_ASSIGN_OR_RETURN(traces.emplace_back(),
                          environment.TraceText(dataset.spaces()[record.space], record.decisions));
  }
  if (!options.modelled_by.empty()) {
    HONE_ASSIGN_OR_RETURN(task.modelled_cycles,
                          ModelCycles(options.modelled_by, sample.target, traces));
  }
  return task;
}

// Feature rows and labels of several tasks.
struct TrainingData {
  cost_model::FeatureMatrix features;
  std::vector<double> throughput;
  std::vector<int32_t> tasks, targets;
  std::vector<double> offset;  // empty: the model learns no residual
  int32_t added = 0;           // tasks

  // `most`: of the results, evenly; 0: all. `offsets`: of its candidates; empty: none.
  void Add(const JudgedTask& task, size_t set, int most, int32_t target,
           absl::Span<const double> offsets) {
    const cost_model::FeatureMatrix& from = task.features[set];
    features.columns = from.columns;
    const int step = most > 0 ? std::max(1, (from.candidates() + most - 1) / most) : 1;
    double best_ns = 0;  // of those that are kept: what a young store knows
    for (int i = 0; i < from.candidates(); i += step) {
      if (task.latency_ns[i] > 0 && (best_ns == 0 || task.latency_ns[i] < best_ns))
        best_ns = task.latency_ns[i];
    }
    for (int i = 0; i < from.candidates(); i += step) {
      const int rows = from.row_begin[i + 1] - from.row_begin[i];
      features.Append(absl::MakeConstSpan(from.values)
                          .subspan(static_cast<size_t>(from.row_begin[i]) * from.columns,
                                   static_cast<size_t>(rows) * from.columns),
                      rows);
      throughput.push_back(task.latency_ns[i] > 0 ? best_ns / task.latency_ns[i] : 0);
      tasks.push_back(added);
      targets.push_back(target);
      if (!offsets.empty()) offset.push_back(offsets[i]);
    }
    ++added;
  }
};

// Returns the name of the model that learns a residual over the presets; "": it does not.
absl::string_view OverPresets(absl::string_view name) {
  return absl::ConsumePrefix(&name, kOverPresets) ? name : "";
}

absl::StatusOr<std::unique_ptr<cost_model::CostModel>> MakeModel(const std::string& name,
                                                                 uint64_t seed = 1) {
  const absl::string_view over = OverPresets(name);
  return cost_model::CreateCostModel(name == kPresets ? "draft"
                                     : over.empty()   ? absl::string_view(name)
                                                      : over,
                                     {.seed = seed});
}

size_t SetOf(const Sample& sample, const cost_model::CostModel& model) {
  return absl::c_find(sample.feature_sets, model.feature_set()) - sample.feature_sets.begin();
}

// The logarithm of the speed of each candidate by the draft without training.
absl::StatusOr<std::vector<double>> PresetsOf(const Sample& sample, const JudgedTask& task) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> draft, MakeModel(kPresets));
  HONE_ASSIGN_OR_RETURN(cost_model::Prediction prediction,
                        draft->Predict(task.features[SetOf(sample, *draft)]));
  for (double& each : prediction.mean) each = std::log(std::max(each, 1e-30));
  return std::move(prediction.mean);
}

std::vector<TaskScore> ScoreModelledCosts(const std::vector<const JudgedTask*>& tasks) {
  std::vector<TaskScore> scores;
  for (const JudgedTask* task : tasks) {
    std::vector<double> speeds;
    for (const double cycles : task->modelled_cycles) speeds.push_back(cycles > 0 ? 1 / cycles : 0);
    scores.push_back(ScoreTask(*task, std::move(speeds)));
  }
  return scores;
}

// `residual`: the model's scores are added to those of the presets. Adds the time of the
// predictions to `ns`: of the processor, so that other programs beside do not count.
absl::Status Score(const cost_model::CostModel& model, bool residual, const Sample& sample,
                   const std::vector<const JudgedTask*>& tasks, std::vector<TaskScore>& scores,
                   int64_t& ns) {
  const size_t set = SetOf(sample, model);
  for (const JudgedTask* task : tasks) {
    cost_model::FeatureMatrix none;
    none.row_begin.assign(task->latency_ns.size() + 1, 0);
    const std::clock_t begin = std::clock();
    HONE_ASSIGN_OR_RETURN(
        cost_model::Prediction prediction,
        model.Predict(set < sample.feature_sets.size() ? task->features[set] : none));
    ns += int64_t{std::clock() - begin} * (1'000'000'000 / CLOCKS_PER_SEC);
    if (residual) {
      HONE_ASSIGN_OR_RETURN(const std::vector<double> presets, PresetsOf(sample, *task));
      for (size_t i = 0; i < presets.size(); ++i) prediction.mean[i] += presets[i];
    }
    scores.push_back(ScoreTask(*task, std::move(prediction.mean)));
  }
  return absl::OkStatus();
}

double GeometricMeanOf(const std::vector<const TaskScore*>& tasks, double TaskScore::* field) {
  double sum = 0;
  for (const TaskScore* task : tasks) sum += std::log(task->*field);
  return std::exp(sum / static_cast<double>(tasks.size()));
}

double MeanOf(const std::vector<const TaskScore*>& tasks, double TaskScore::* field) {
  double sum = 0, count = 0;
  for (const TaskScore* task : tasks) {
    if (std::isnan(task->*field)) continue;
    sum += task->*field;
    ++count;
  }
  return sum / count;
}

std::string IntervalText(const Interval& interval, double scale = 1) {
  return scale == 1
             ? absl::StrFormat("%.2f (%.2f–%.2f)", interval.value, interval.low, interval.high)
             : absl::StrFormat("%.0f (%.0f–%.0f)", scale * interval.value, scale * interval.low,
                               scale * interval.high);
}

std::string LineOf(const JudgedModel& model, const std::vector<TaskScore>& tasks) {
  const auto worst = [&](double TaskScore::* field) {
    double most = 0;
    for (const TaskScore& task : tasks) most = std::max(most, task.*field);
    return most;
  };
  const auto mean = [&](double TaskScore::* field) {
    return ClusteredBootstrap(tasks, [field](const std::vector<const TaskScore*>& some) {
      return GeometricMeanOf(some, field);
    });
  };
  const Interval pairs = ClusteredBootstrap(tasks, [](const std::vector<const TaskScore*>& some) {
    return MeanOf(some, &TaskScore::pairs);
  });
  std::vector<double> trials;
  std::vector<cost_model::RankedTask> ranked;
  for (const TaskScore& task : tasks) {
    trials.push_back(task.trials_to_95);
    ranked.push_back(task.ranked);
  }
  return absl::StrFormat("| %s | %s | %.1f | %s | %.2f | %s | %.2f | %.2f | %.0f | %.0f | %s |\n",
                         model.name, IntervalText(mean(&TaskScore::first)),
                         worst(&TaskScore::first), IntervalText(mean(&TaskScore::best_of_8)),
                         worst(&TaskScore::best_of_8), IntervalText(pairs, 100),
                         cost_model::TopK(ranked, 1), cost_model::TopK(ranked, 5),
                         Quantile(trials, 0.5), Quantile(trials, 0.75),
                         model.predict_us > 0 ? absl::StrFormat("%.2g", model.predict_us) : "–");
}

}  // namespace

absl::StatusOr<Sample> ReadSample(const std::string& path, std::vector<std::string> feature_sets,
                                  int threads, const ReadOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::Dataset> dataset,
                        record::Dataset::Open(path));
  if (dataset->targets().size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", dataset->targets().size(), " targets; a sample has one"));
  }
  HONE_ASSIGN_OR_RETURN(const auto by_task, ReadByTask(*dataset));
  HONE_ASSIGN_OR_RETURN(target::Target target,
                        target::Target::FromText(dataset->targets()[0].text));
  target.calibration = options.calibration;
  Sample sample{.target = target.ToText(),
                .machine = dataset->targets()[0].machine,
                .modelled = dataset->targets()[0].IsModelled(),
                .feature_sets = std::move(feature_sets)};
  std::vector<std::pair<int32_t, const Records*>> work;
  for (const auto& [task, records] : by_task) {
    HONE_ASSIGN_OR_RETURN(const std::string name, NameOf(dataset->tasks()[task].workload));
    if (absl::StrContains(name, options.only)) work.emplace_back(task, &records);
  }
  std::vector<absl::StatusOr<JudgedTask>> tasks(work.size(), absl::UnknownError(""));
  std::atomic<size_t> next = 0;
  const std::unique_ptr<job::TaskEnvironment> environment = job::MakeCompilerEnvironment(1);
  search::RunInThreads(threads, [&](size_t) {
    for (size_t i = next++; i < work.size(); i = next++) {
      tasks[i] =
          ReadJudgedTask(*dataset, work[i].first, *work[i].second, sample, options, *environment);
    }
  });
  for (absl::StatusOr<JudgedTask>& task : tasks) {
    if (!task.ok()) return task.status();
    if (task->best_ns > 0) sample.tasks.push_back(*std::move(task));
  }
  return sample;
}

absl::StatusOr<std::map<std::string, double>> BestOfSample(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::Dataset> dataset,
                        record::Dataset::Open(path));
  HONE_RETURN_IF_ERROR(CheckKind(*dataset, path, /*modelled=*/false));
  HONE_ASSIGN_OR_RETURN(const auto by_task, ReadByTask(*dataset));
  std::map<std::string, double> best;
  for (const auto& [task, records] : by_task) {
    double& known = best[dataset->tasks()[task].workload];
    for (const record::DatasetRecord& record : records) {
      if (record.latency_ns > 0 && (known == 0 || record.latency_ns < known))
        known = record.latency_ns;
    }
  }
  return best;
}

TaskScore ScoreTask(const JudgedTask& task, std::vector<double> scores) {
  TaskScore result{.name = task.name, .family = task.family};
  std::vector<double> latency = task.latency_ns, throughput;
  const double slowest = *absl::c_max_element(latency);
  for (double& each : latency) {
    throughput.push_back(each > 0 ? task.best_ns / each : 0);
    if (each == 0) each = slowest;
  }
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  double best = latency[order[0]];
  result.first = best / task.best_ns;
  result.trials_to_95 = static_cast<double>(order.size());
  bool reached = false;
  for (size_t i = 0; i < order.size(); ++i) {
    best = std::min(best, latency[order[i]]);
    if (i < 8) result.best_of_8 = best / task.best_ns;
    if (task.best_ns >= kShare * best && !reached) {
      result.trials_to_95 = static_cast<double>(i + 1);
      reached = true;
    }
    if (i >= 8 && reached) break;
  }
  result.pairs = cost_model::PairwiseAccuracy(scores, throughput, kTimingNoise);
  result.ranked = {.score = std::move(scores), .latency_ns = task.latency_ns};
  return result;
}

absl::StatusOr<std::vector<std::string>> FeatureSetsOf(const std::vector<std::string>& names) {
  std::vector<std::string> sets;
  for (const std::string& name : names) {
    if (name == kModelledCost) continue;
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> model, MakeModel(name));
    const auto add = [&](const std::string& set) {
      if (!set.empty() && !absl::c_linear_search(sets, set)) sets.push_back(set);
    };
    add(std::string(model->feature_set()));
    if (!OverPresets(name).empty()) add("draft");
  }
  return sets;
}

absl::StatusOr<std::unique_ptr<cost_model::CostModel>> TrainModel(
    const std::string& name, const Sample& sample, const std::vector<const JudgedTask*>& tasks,
    int most_results, const Sample* also, uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost_model::CostModel> model, MakeModel(name, seed));
  const size_t set = SetOf(sample, *model);
  if (name == kPresets || set == sample.feature_sets.size()) return model;
  TrainingData data;
  const auto add = [&](const Sample& from, const JudgedTask& task, int most,
                       int32_t target) -> absl::Status {
    std::vector<double> offsets;
    if (!OverPresets(name).empty()) {
      HONE_ASSIGN_OR_RETURN(offsets, PresetsOf(from, task));
    }
    data.Add(task, set, most, target, offsets);
    return absl::OkStatus();
  };
  for (const JudgedTask* task : tasks) {
    HONE_RETURN_IF_ERROR(add(sample, *task, most_results, /*target=*/0));
  }
  if (also != nullptr) {
    for (const JudgedTask& task : also->tasks) {
      if (!task.held_out) HONE_RETURN_IF_ERROR(add(*also, task, /*most=*/0, /*target=*/1));
    }
  }
  HONE_RETURN_IF_ERROR(
      model->Update(data.features, {data.throughput, data.tasks, data.targets, data.offset}));
  return model;
}

absl::StatusOr<std::vector<JudgedModel>> Judge(const Sample& sample,
                                               const std::vector<std::string>& names,
                                               const Training& training) {
  using Tasks = std::vector<const JudgedTask*>;
  const auto select = [](const Sample& from, bool held_out) {
    Tasks selected;
    for (const JudgedTask& task : from.tasks)
      if (task.held_out == held_out) selected.push_back(&task);
    return selected;
  };
  const Tasks development = select(sample, false), held_out = select(sample, true);
  const bool only_other = training.other != nullptr && !training.with_own;
  const Sample& learns_from = only_other ? *training.other : sample;
  const auto judge = [&](const std::string& name, const Tasks& train, const Tasks& judged,
                         std::vector<TaskScore>& scores, int64_t& ns) -> absl::Status {
    Tasks some;
    const size_t most = training.tasks > 0 ? static_cast<size_t>(training.tasks) : train.size();
    for (size_t t = 0; t < std::min(most, train.size()); ++t)
      some.push_back(train[t * train.size() / std::min(most, train.size())]);
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> model,
                          TrainModel(name, learns_from, some, training.results,
                                     only_other ? nullptr : training.other));
    return Score(*model, !OverPresets(name).empty(), sample, judged, scores, ns);
  };
  std::vector<JudgedModel> models;
  for (const std::string& name : names) {
    JudgedModel model{.name = name};
    int64_t ns = 0, candidates = 0;
    if (name == kModelledCost) {
      model.development = ScoreModelledCosts(development);
      model.held_out = ScoreModelledCosts(held_out);
    } else if (only_other) {
      const Tasks train = select(*training.other, false);
      if (!training.held_out_only) {
        HONE_RETURN_IF_ERROR(judge(name, train, development, model.development, ns));
      }
      HONE_RETURN_IF_ERROR(judge(name, train, held_out, model.held_out, ns));
    } else {
      for (size_t fold = 0; fold < (training.held_out_only ? 0 : kFolds); ++fold) {
        Tasks train, judged;
        for (size_t t = 0; t < development.size(); ++t)
          (t % kFolds == fold ? judged : train).push_back(development[t]);
        HONE_RETURN_IF_ERROR(judge(name, train, judged, model.development, ns));
      }
      HONE_RETURN_IF_ERROR(judge(name, development, held_out, model.held_out, ns));
    }
    for (const JudgedTask& task : sample.tasks)
      if (task.held_out || !training.held_out_only)
        candidates += static_cast<int64_t>(task.latency_ns.size());
    if (candidates > 0)
      model.predict_us = static_cast<double>(ns) / 1e3 / static_cast<double>(candidates);
    models.push_back(std::move(model));
  }
  return models;
}

Interval ClusteredBootstrap(
    const std::vector<TaskScore>& tasks,
    const std::function<double(const std::vector<const TaskScore*>&)>& statistic) {
  std::map<std::string, std::vector<const TaskScore*>> by_family;
  std::vector<const TaskScore*> all;
  for (const TaskScore& task : tasks) {
    by_family[task.family].push_back(&task);
    all.push_back(&task);
  }
  std::vector<const std::vector<const TaskScore*>*> families;
  for (const auto& [name, family] : by_family) families.push_back(&family);
  std::vector<double> values;
  for (int i = 0; i < kResamplings; ++i) {
    Rng rng(/*seed=*/1, static_cast<uint64_t>(i));
    std::vector<const TaskScore*> drawn;
    for (size_t f = 0; f < families.size(); ++f) {
      const std::vector<const TaskScore*>& family = *families[rng.Below(families.size())];
      for (size_t t = 0; t < family.size(); ++t) drawn.push_back(family[rng.Below(family.size())]);
    }
    values.push_back(statistic(drawn));
  }
  return {statistic(all), Quantile(values, kIntervalTail), Quantile(values, 1 - kIntervalTail)};
}

std::string JudgementText(const Sample& sample, const std::vector<JudgedModel>& models,
                          bool per_task) {
  size_t candidates = 0;
  int left_out = 0;
  for (const JudgedTask& task : sample.tasks) {
    candidates += task.latency_ns.size();
    left_out += task.left_out;
  }
  std::string text =
      absl::StrFormat("%d candidates of %d tasks %s %s", candidates, sample.tasks.size(),
                      sample.modelled ? "**not measured** but" : "on", sample.machine);
  if (left_out > 0) absl::StrAppend(&text, "; ", left_out, " do not replay and were left out");
  absl::StrAppend(&text, "\n");
  for (const bool held_out : {false, true}) {
    const auto scores = [held_out](const JudgedModel& model) -> const std::vector<TaskScore>& {
      return held_out ? model.held_out : model.development;
    };
    if (models.empty() || scores(models[0]).empty()) continue;
    absl::StrAppendFormat(
        &text,
        "\n%d %s tasks\n\n| model | first choice | worst | best of 8 | worst | pairs %% | top-1 | "
        "top-5 | trials to 95 %% | worst quarter | µs |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n",
        scores(models[0]).size(), held_out ? "held-out" : "development");
    for (const JudgedModel& model : models) absl::StrAppend(&text, LineOf(model, scores(model)));
    if (!per_task) continue;
    absl::StrAppend(&text, "\n| task | best µs |");
    for (const JudgedModel& model : models) absl::StrAppend(&text, " ", model.name, " |");
    absl::StrAppend(&text, "\n|---|---|");
    for (size_t i = 0; i < models.size(); ++i) absl::StrAppend(&text, "---|");
    absl::StrAppend(&text, "\n");
    for (size_t t = 0; t < scores(models[0]).size(); ++t) {
      const TaskScore& first = scores(models[0])[t];
      const auto judged = absl::c_find_if(
          sample.tasks, [&](const JudgedTask& task) { return task.name == first.name; });
      absl::StrAppendFormat(&text, "| %s | %.1f |", first.name, judged->best_ns / 1e3);
      for (const JudgedModel& model : models) {
        const TaskScore& score = scores(model)[t];
        absl::StrAppendFormat(&text, " %.2f, %.2f, %.0f |", score.first, score.best_of_8,
                              100 * score.pairs);
      }
      absl::StrAppend(&text, "\n");
    }
  }
  return text;
}

}  // namespace hone::lab

#include "server/job/search/model_work.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/job/actor/executor.h"
#include "server/job/actor/job_codec.h"
#include "server/job/search/draft_work.h"
#include "server/job/search/task_search.h"
#include "server/tuner/cost_model/model_file.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

constexpr double kTrainingShare =
    0.2;  // of the trials; held out to evaluate a model before it is stored

// A draft is learned again from at least this many new results, and at least a quarter as many as
// it knows.
constexpr int64_t kLearningStep = 64;
constexpr int64_t kLearningRecords = 8000;  // bounds the time, evenly over workloads
constexpr size_t kLeastDraftTasks = 2;      // one to learn from and one to judge on
constexpr int kLearningRest = 10;           // after learning, in times of its duration

std::string MetricsJson(const ModelScore& score) {
  // NaN becomes null.
  return nlohmann::ordered_json{{"held_out", score.held_out},
                                {"evaluated_on", score.evaluated_on},
                                {"top1", score.top1},
                                {"top5", score.top5},
                                {"peak", score.peak},
                                {"recall", score.recall},
                                {"pairwise", score.pairwise},
                                {"rmse", score.rmse},
                                {"calibration_error", score.calibration_error}}
      .dump();
}

// Returns how many elements of each group to take, at most `most` in total: the same number from
// each group that is large enough.
size_t ShareOfEach(std::vector<size_t> sizes, size_t most) {
  std::sort(sizes.begin(), sizes.end());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t share = most / (sizes.size() - i);
    if (sizes[i] > share) return std::max<size_t>(share, 1);
    most -= sizes[i];
  }
  return sizes.empty() ? 0 : sizes.back();
}

// A sample of the candidates of one target, drawn while its records are read in any number.
class TargetSample {
 public:
  explicit TargetSample(size_t most) : most_(most), thin_at_(2 * most) {}

  void Add(const record::Record& record, double latency_ns) {
    ++records_;
    jobs_.insert(record.job_id);
    Group& group = groups_[record.workload_digest];
    group.op = record.op;
    const auto [place, added] = group.candidates.try_emplace(CandidateDigest(record.candidate));
    if (added) ++held_;
    place->second = {record.candidate, latency_ns};
    if (held_ > thin_at_) Thin();
  }

  int64_t records() const { return records_; }
  const std::set<std::string>& jobs() const { return jobs_; }

  // Moves the sample out, as tasks without a target.
  std::vector<RecordedTask> Take() {
    Thin();
    std::vector<RecordedTask> tasks;
    for (auto& [workload, group] : groups_) {
      RecordedTask& task =
          tasks.emplace_back(RecordedTask{.workload_digest = workload, .op = std::move(group.op)});
      for (auto& [digest, candidate] : group.candidates)
        task.candidates.push_back(std::move(candidate));
      group.candidates.clear();
    }
    return tasks;
  }

 private:
  struct Group {
    std::string op;
    // In the order of digests, so the first ones are a random sample.
    std::map<Digest, RecordedCandidate> candidates;
  };

  // Drops what will not be in the sample: the share of a workload only shrinks when more records
  // are seen.
  void Thin() {
    std::vector<size_t> sizes;
    for (const auto& [workload, group] : groups_) sizes.push_back(group.candidates.size());
    const size_t share = ShareOfEach(std::move(sizes), most_);
    held_ = 0;
    for (auto& [workload, group] : groups_) {
      if (group.candidates.size() > share) {
        group.candidates.erase(std::next(group.candidates.begin(), static_cast<long>(share)),
                               group.candidates.end());
      }
      held_ += group.candidates.size();
    }
    // With more workloads than `most_`, each keeps one candidate.
    thin_at_ = 2 * std::max(most_, held_);
  }

  const size_t most_;
  size_t thin_at_;
  size_t held_ = 0;
  int64_t records_ = 0;
  std::set<std::string> jobs_;
  std::map<std::string, Group> groups_;  // by workload
};

using TargetSamples = std::map<std::string, TargetSample>;

absl::StatusOr<TargetSamples> ReadSamples(store::Store& store, const RecordedTaskQuery& query,
                                          const std::function<absl::Status()>& stop,
                                          LeftOut& left_out) {
  TargetSamples samples;
  const auto add = [&](const record::Record& record) {
    if (record.policy.name != "screen") return;
    const bool ok = record.result.outcome == record::Outcome::kOk;
    const double latency = ok ? record::SteadyLatencyNs(record.result) : 0;
    if (record.quarantined) {
      ++left_out.quarantined;
    } else if (ok && !IsPlausibleLatency(latency)) {
      ++left_out.implausible;
    } else {
      samples.try_emplace(record.target, static_cast<size_t>(query.max_records))
          .first->second.Add(record, latency);
    }
  };
  HONE_RETURN_IF_ERROR(store.ForEachRecord({.target = query.target, .op = query.op}, add, stop));
  return samples;
}

// Returns the description of a target from the first of these jobs that is stored; nullopt if none
// is.
std::optional<std::string> FindTargetText(store::Store& store, const std::set<std::string>& jobs) {
  for (const std::string& job : jobs) {
    const absl::StatusOr<store::JobRow> row = store.GetJob(job);
    if (!row.ok()) continue;
    const absl::StatusOr<JobSpec> spec = DecodeSpec(row->request);
    if (spec.ok() && !spec->target.empty()) return spec->target;
  }
  return std::nullopt;
}

constexpr int kCandidatesBetweenPauses = 32;

}  // namespace

absl::Status ModelWork::TakeTurn() {
  if (stopped_) return absl::UnavailableError("the server is shutting down");
  if (!busy_.exchange(true)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "another training or evaluation of cost models is in progress; try again when it has ended");
}

EvaluationServices ModelWork::Services(WorkLimit limit) const {
  auto lock = std::make_shared<HostLock>(ShareHost(respect_timing_lock_));
  auto pause = [this, lock, limit = std::move(limit)]() -> absl::Status {
    if (stopped_) return absl::UnavailableError("the server is shutting down");
    if (limit.cancelled != nullptr && limit.cancelled()) {
      return absl::CancelledError("the client has disconnected");
    }
    if (services_.clock->Now() > limit.deadline) {
      return absl::DeadlineExceededError(
          "the models were not finished in time; ask for fewer models or records");
    }
    // If the lock cannot be taken again, the only effect is disturbed timings.
    if (lock->held()) lock->YieldToTimers().IgnoreError();
    return absl::OkStatus();
  };
  return {.clock = services_.steady_clock != nullptr ? services_.steady_clock : services_.clock,
          .store = services_.store,
          .environment = services_.environment,
          .pause = std::move(pause)};
}

void ModelWork::Evaluate(EvaluationQuery query, WorkLimit limit,
                         absl::AnyInvocable<void(absl::StatusOr<ModelEvaluation>) &&> done) {
  if (absl::Status turn = TakeTurn(); !turn.ok()) return std::move(done)(std::move(turn));
  services_.executor->Schedule(
      [this, query = std::move(query), limit = std::move(limit), done = std::move(done)]() mutable {
        absl::StatusOr<ModelEvaluation> evaluation;
        const absl::Status status = Attempt([&] {
          evaluation = EvaluateModels(Services(std::move(limit)), query);
          return evaluation.status();
        });
        busy_ = false;
        if (!status.ok()) return std::move(done)(status);
        std::move(done)(std::move(evaluation));
      });
}

absl::StatusOr<std::string> ModelWork::Judge(const TrainingQuery& query, const std::string& target,
                                             const EvaluationServices& services) const {
  EvaluationQuery judge{.records = query.records,
                        .models = {query.model},
                        .held_out_trials = kTrainingShare,
                        .seed = query.seed};
  judge.records.target = target;
  const absl::StatusOr<ModelEvaluation> judged = EvaluateModels(services, judge);
  if (judged.ok()) return MetricsJson(judged->scores.front());
  if (absl::IsNotFound(judged.status()))
    return nlohmann::ordered_json{{"none", judged.status().message()}}.dump();
  return judged.status();
}

absl::StatusOr<store::ModelRow> ModelWork::MakeModel(const TrainingQuery& query,
                                                     const EvaluationServices& services) const {
  cost_model::CostModelOptions options{.seed = query.seed,
                                       .feature_set = query.model.feature_set,
                                       .threads = 1,
                                       .pause = services.pause};
  HONE_RETURN_IF_ERROR(services.environment->CreateModel(query.model.name, options).status());
  HONE_ASSIGN_OR_RETURN(RecordedTasks recorded,
                        ReadRecordedTasks(*services.store, query.records, services.pause));
  const bool is_draft = query.model.name == kLearnedDraft;
  if (is_draft)
    options.foreign = ForeignDrafts(*services.store, recorded.target, recorded.target_text);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> model,
                        services.environment->CreateModel(query.model.name, options));
  const bool can_learn = recorded.tasks.size() >= kLeastDraftTasks;
  if (is_draft && !can_learn && options.foreign.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the results on ", recorded.target,
                     " are of one task; a draft is judged on "
                     "tasks that it was not learned from: tune another workload"));
  }
  store::ModelRow row{.key = {.name = std::string(model->name()),
                              .feature_set = std::string(model->feature_set()),
                              .target = recorded.target,
                              .scope = query.records.op},
                      .workloads = static_cast<int64_t>(recorded.tasks.size())};
  if (const auto described = target::Target::FromText(recorded.target_text);
      described.ok() && described->Key() == recorded.target) {
    row.target_text = recorded.target_text;
  }
  if (!is_draft) {  // which judges itself
    HONE_ASSIGN_OR_RETURN(row.metrics, Judge(query, recorded.target, services));
  }
  LabelledRows material;
  for (size_t t = 0; t < recorded.tasks.size(); ++t) {
    // One task at a time, so that rows are not in memory twice.
    HONE_ASSIGN_OR_RETURN(
        const std::vector<TaskRows> rows,
        ExtractRows(*services.environment, *services.store, {&recorded.tasks[t], 1},
                    std::string(model->feature_set()), services.pause));
    recorded.tasks[t].candidates = {};
    if (!(rows[0].best_ns > 0)) continue;  // nothing ran, so there is no order to learn
    for (int i = 0; i < rows[0].candidates(); ++i)
      material.Add(rows[0], static_cast<int32_t>(t), i);
  }
  if (material.throughput.empty()) {
    return absl::FailedPreconditionError(
        "none of the recorded candidates can be replayed any more");
  }
  HONE_RETURN_IF_ERROR(model->Update(material.features, material.labels()));
  if (is_draft) row.metrics = model->Summary();
  HONE_RETURN_IF_ERROR(services.pause());
  HONE_ASSIGN_OR_RETURN(row.bytes, model->Save());
  HONE_ASSIGN_OR_RETURN(const cost_model::ModelHeader header,
                        cost_model::ReadModelHeader(row.bytes));
  if (is_draft && !can_learn && header.columns == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the results on ", recorded.target,
        " are of one task, and no draft of another machine orders them better than the constants"));
  }
  row.version = header.version;
  row.records = material.features.candidates();
  row.created_unix_ms = absl::ToUnixMillis(services_.clock->Now());
  return row;
}

void ModelWork::Train(TrainingQuery query, WorkLimit limit,
                      absl::AnyInvocable<void(absl::StatusOr<store::ModelRow>) &&> done) {
  if (absl::Status turn = TakeTurn(); !turn.ok()) return std::move(done)(std::move(turn));
  services_.executor->Schedule(
      [this, query = std::move(query), limit = std::move(limit), done = std::move(done)]() mutable {
        store::ModelRow row, kept;
        const absl::Status status = Attempt([&]() -> absl::Status {
          HONE_ASSIGN_OR_RETURN(row, MakeModel(query, Services(std::move(limit))));
          kept = row;
          kept.size = static_cast<int64_t>(row.bytes.size());
          kept.bytes.clear();
          return absl::OkStatus();
        });
        busy_ = false;
        if (!status.ok()) return std::move(done)(status);
        services_.store->PutModel(std::move(row), [kept = std::move(kept), done = std::move(done)](
                                                      absl::StatusOr<int64_t> id) mutable {
          if (!id.ok()) return std::move(done)(id.status());
          kept.id = *id;
          kept.in_use = true;
          std::move(done)(std::move(kept));
        });
      });
}

void ModelWork::NoteResult(const std::string& target_key) {
  absl::MutexLock lock(&mutex_);
  ++fresh_[target_key];
}

void ModelWork::CountKnown(const std::string& target) {
  int64_t known = 0, fresh = 0;
  const absl::Cleanup note = [&] {  // also after an exception
    absl::MutexLock lock(&mutex_);
    known_[target] = known;
    fresh_[target] += fresh;
    learning_ = false;
  };
  // Records that an earlier server made are new to this one, also if it uses a draft that another
  // server learned.
  const absl::StatusOr<store::ModelRow> row = services_.store->GetModel(
      {.name = kLearnedDraft, .feature_set = kLearnedDraft, .target = target});
  if (row.ok() && row->origin.empty()) {
    known = row->records;
    return;
  }
  const auto records =
      services_.store->Query({.target = target, .page_size = static_cast<int>(kLearningStep)});
  if (records.ok()) fresh = static_cast<int64_t>(records->size());
}

void ModelWork::Tick() {
  std::string target, unknown;
  int64_t counted = 0;
  const absl::Time began = services_.SteadyNow();
  {
    absl::MutexLock lock(&mutex_);
    if (learning_ || stopped_ || began < next_learning_) return;
    for (auto& [key, fresh] : fresh_) {
      const auto known = known_.find(key);
      if (known == known_.end()) {
        unknown = key;
        learning_ = true;
        break;
      }
      if (fresh < std::max(kLearningStep, known->second / 4)) continue;
      target = key;
      counted = std::exchange(fresh, 0);
      learning_ = true;
      break;
    }
  }
  if (!unknown.empty()) {
    // A tick must not read the store.
    return services_.executor->Schedule([this, unknown] {
      CountKnown(unknown);
      Tick();
    });
  }
  if (target.empty()) return;
  Train({.records = {.target = target, .max_records = kLearningRecords},
         .model = {.name = kLearnedDraft}},
        WorkLimit{}, [this, target, counted, began](const absl::StatusOr<store::ModelRow>& row) {
          const absl::Time now = services_.SteadyNow();
          absl::MutexLock lock(&mutex_);
          learning_ = false;
          next_learning_ = now + kLearningRest * (now - began);
          if (row.ok()) {
            known_[target] = row->records;
            spdlog::info("learned from {} results of {} tasks of {}: {}", row->records,
                         row->workloads, target, row->metrics);
          } else if (absl::IsResourceExhausted(row.status())) {
            fresh_[target] += counted;  // after the request of a client
          } else if (absl::IsFailedPrecondition(row.status())) {
            spdlog::info("nothing was learned: {}", std::string(row.status().message()));
          } else {
            spdlog::warn("learning from the results of {}: {}", target,
                         std::string(row.status().message()));
          }
        });
}

std::vector<std::pair<std::string, int64_t>> LeftOut::Reasons() const {
  std::vector<std::pair<std::string, int64_t>> reasons = {
      {"quarantined", quarantined},
      {"with an implausible latency", implausible},
      {"of a target that no job in this store describes", unknown_target},
      {"of candidates that no longer replay, or whose design space is not stored", not_replayed}};
  std::erase_if(reasons, [](const auto& reason) { return reason.second == 0; });
  return reasons;
}

std::string LeftOut::ToText() const {
  if (Total() == 0) return "";
  std::vector<std::string> parts;
  for (const auto& [reason, count] : Reasons()) parts.push_back(absl::StrCat(count, " ", reason));
  return absl::StrCat(Total(), " left out: ", absl::StrJoin(parts, ", "));
}

absl::StatusOr<RecordedTasks> ReadRecordedTasks(store::Store& store, const RecordedTaskQuery& query,
                                                const std::function<absl::Status()>& stop) {
  RecordedTasks found{.target = query.target};
  HONE_ASSIGN_OR_RETURN(TargetSamples samples, ReadSamples(store, query, stop, found.left_out));
  const auto most = std::max_element(
      samples.begin(), samples.end(),
      [](const auto& a, const auto& b) { return a.second.records() < b.second.records(); });
  if (most != samples.end()) {
    found.target = most->first;
    TargetSample& sample = most->second;
    if (const std::optional<std::string> text = FindTargetText(store, sample.jobs())) {
      found.target_text = *text;
      found.records = sample.records();
      found.tasks = sample.Take();
    } else {
      found.left_out.unknown_target = sample.records();
    }
  }
  if (found.tasks.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no measurements to learn from",
        query.target.empty() ? "" : absl::StrCat(" on target ", query.target),
        query.op.empty() ? "" : absl::StrCat(" of operator '", query.op, "'"),
        found.left_out.Total() > 0 ? absl::StrCat(" (", found.left_out.ToText(), ")") : "",
        "; hone tune makes some, and hone records query lists the stored ones"));
  }
  // Every job has the calibration of its day. What is learned refers to the constants of the kind.
  const absl::StatusOr<target::Target> target = target::Target::FromText(found.target_text);
  for (RecordedTask& task : found.tasks) {
    task.target_key = found.target;
    task.target = target.ok() ? target->KindText() : found.target_text;
  }
  return found;
}

absl::StatusOr<std::vector<TaskRows>> ExtractRows(const TaskEnvironment& environment,
                                                  store::Store& store,
                                                  absl::Span<const RecordedTask> tasks,
                                                  const std::string& feature_set,
                                                  const std::function<absl::Status()>& pause) {
  std::vector<TaskRows> all;
  int since_pause = 0;
  for (const RecordedTask& task : tasks) {
    TaskRows rows{.workload_digest = task.workload_digest, .op = task.op};
    std::map<std::string, std::unique_ptr<TaskSpaces>> spaces;  // null: it cannot be opened
    const auto find_space = [&](const std::string& digest) -> const TaskSpaces* {
      const auto [space, is_new] = spaces.try_emplace(digest);
      if (!is_new) return space->second.get();
      if (const absl::StatusOr<std::string> text = store.GetText(digest); text.ok()) {
        space->second = environment.OpenKept(*text, task.target).value_or(nullptr);
      }
      return space->second.get();
    };
    for (const RecordedCandidate& each : task.candidates) {
      if (++since_pause == kCandidatesBetweenPauses) {
        HONE_RETURN_IF_ERROR(pause());
        since_pause = 0;
      }
      if (feature_set.empty()) {
        rows.features.Append({}, 0);
      } else {
        const TaskSpaces* space = find_space(each.candidate.space_digest);
        const absl::Status status =
            space == nullptr
                ? absl::FailedPreconditionError("unknown space")
                : space->AppendFeatures(feature_set,
                                        {space->spaces()[0].digest, each.candidate.decisions},
                                        &rows.features);
        if (absl::IsNotFound(status)) return status;
        if (!status.ok()) {
          ++rows.left_out;
          continue;
        }
      }
      rows.latency_ns.push_back(each.latency_ns);
      if (each.latency_ns > 0 && (rows.best_ns == 0 || each.latency_ns < rows.best_ns)) {
        rows.best_ns = each.latency_ns;
      }
    }
    all.push_back(std::move(rows));
  }
  return all;
}

void LabelledRows::Add(const TaskRows& task, int32_t number, int i) {
  const auto columns = static_cast<size_t>(task.features.columns);
  const size_t begin = task.features.row_begin[i], end = task.features.row_begin[i + 1];
  features.columns = task.features.columns;
  features.Append(
      absl::MakeConstSpan(task.features.values).subspan(begin * columns, (end - begin) * columns),
      static_cast<int>(end - begin));
  throughput.push_back(task.Throughput(i));
  tasks.push_back(number);
}

}  // namespace hone::job

#include "server/job/search/recorded_task.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "server/job/actor/job_codec.h"
#include "server/job/search/task_search.h"

namespace hone::job {
namespace {

constexpr size_t kMostRead = 200'000;  // the newest; bounds the work for a large store

// The needed part of a record. Records are larger, because they contain all samples.
struct Measured {
  std::string workload, op, target, job;
  RecordedCandidate candidate;
};

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

// Returns the target with the most measurements.
std::string MostCommonTarget(const std::deque<Measured>& all) {
  std::map<std::string, int64_t> count;
  for (const Measured& each : all) ++count[each.target];
  std::string most;
  for (const auto& [target, n] : count) {
    if (most.empty() || n > count[most]) most = target;
  }
  return most;
}

// Returns the description of a job's target; nullopt if the job is not stored.
std::optional<std::string> TargetText(store::Store& store, const std::string& job) {
  const absl::StatusOr<store::JobRow> row = store.GetJob(job);
  if (!row.ok()) return std::nullopt;
  const absl::StatusOr<JobSpec> spec = DecodeSpec(row->request);
  if (!spec.ok() || spec->target.empty()) return std::nullopt;
  // Every job has the calibration of its day. What is learned refers to the constants of the kind.
  const absl::StatusOr<target::Target> target = target::Target::FromText(spec->target);
  return target.ok() ? target->KindText() : spec->target;
}

absl::StatusOr<std::deque<Measured>> ReadAll(store::Store& store, const RecordedTaskQuery& query,
                                             const std::function<absl::Status()>& stop,
                                             LeftOut& left_out) {
  std::deque<Measured> all;
  store::RecordQuery page_query{.target = query.target, .op = query.op, .page_size = 1000};
  while (true) {
    HONE_RETURN_IF_ERROR(stop());
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, store.Query(page_query));
    for (const record::Record& record : page) {
      page_query.after_id = record.id;
      if (record.policy.name != "screen") continue;
      const bool ok = record.result.outcome == record::Outcome::kOk;
      const double latency = ok ? record::SteadyLatencyNs(record.result) : 0;
      if (record.quarantined) {
        ++left_out.quarantined;
        continue;
      }
      if (ok && !IsPlausibleLatency(latency)) {
        ++left_out.implausible;
        continue;
      }
      all.push_back({record.workload_digest,
                     record.op,
                     record.target,
                     record.job_id,
                     {record.candidate, latency}});
      if (all.size() > kMostRead) all.pop_front();
    }
    if (static_cast<int>(page.size()) < page_query.page_size) return all;
  }
}

// Returns the description of a target from the first of these jobs that is stored; nullopt if none
// is.
std::optional<std::string> FindTargetText(store::Store& store, const std::string& target,
                                          const std::deque<Measured>& all) {
  std::set<std::string> asked;
  for (const Measured& each : all) {
    if (each.target != target || !asked.insert(each.job).second) continue;
    if (std::optional<std::string> text = TargetText(store, each.job)) return text;
  }
  return std::nullopt;
}

constexpr int kCandidatesBetweenPauses = 32;

// Opens the spaces of one task, each once. Find returns null if a space cannot be opened.
class OpenSpaces {
 public:
  OpenSpaces(const TaskEnvironment& environment, store::Store& store, const std::string& target)
      : environment_(environment), store_(store), target_(target) {}

  const TaskSpaces* Find(const std::string& digest) {
    auto found = spaces_.find(digest);
    if (found == spaces_.end()) found = spaces_.emplace(digest, Open(digest)).first;
    return found->second.get();
  }

 private:
  std::unique_ptr<TaskSpaces> Open(const std::string& digest) const {
    const absl::StatusOr<std::string> text = store_.GetText(digest);
    if (!text.ok()) return nullptr;
    absl::StatusOr<std::unique_ptr<TaskSpaces>> space = environment_.OpenKept(*text, target_);
    return space.ok() ? *std::move(space) : nullptr;
  }

  const TaskEnvironment& environment_;
  store::Store& store_;
  const std::string& target_;
  std::map<std::string, std::unique_ptr<TaskSpaces>> spaces_;
};

}  // namespace

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
  RecordedTasks found;
  HONE_ASSIGN_OR_RETURN(std::deque<Measured> all, ReadAll(store, query, stop, found.left_out));
  found.target = query.target.empty() ? MostCommonTarget(all) : query.target;
  const std::optional<std::string> text = FindTargetText(store, found.target, all);
  struct Group {
    std::string op;
    std::map<Digest, RecordedCandidate> candidates;
  };
  std::map<std::string, Group> groups;  // by workload
  for (Measured& each : all) {
    if (each.target != found.target) continue;
    if (!text.has_value()) {
      ++found.left_out.unknown_target;
      continue;
    }
    Group& group = groups[each.workload];
    group.op = each.op;
    const Digest digest = CandidateDigest(each.candidate.candidate);
    group.candidates[digest] = std::move(each.candidate);
    ++found.records;
  }
  if (groups.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no measurements to learn from",
        query.target.empty() ? "" : absl::StrCat(" on target ", query.target),
        query.op.empty() ? "" : absl::StrCat(" of operator '", query.op, "'"),
        found.left_out.Total() > 0 ? absl::StrCat(" (", found.left_out.ToText(), ")") : "",
        "; hone tune makes some, and hone records query lists the stored ones"));
  }
  std::vector<size_t> sizes;
  for (const auto& [workload, group] : groups) sizes.push_back(group.candidates.size());
  const size_t share = ShareOfEach(sizes, static_cast<size_t>(query.max_records));
  for (auto& [workload, group] : groups) {
    RecordedTask task{
        .workload_digest = workload, .op = group.op, .target_key = found.target, .target = *text};
    // In the order of digests, so the first ones are a random sample.
    for (auto& [digest, candidate] : group.candidates) {
      if (task.candidates.size() == share) break;
      task.candidates.push_back(std::move(candidate));
    }
    found.tasks.push_back(std::move(task));
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
    OpenSpaces spaces(environment, store, task.target);
    for (const RecordedCandidate& each : task.candidates) {
      if (++since_pause == kCandidatesBetweenPauses) {
        HONE_RETURN_IF_ERROR(pause());
        since_pause = 0;
      }
      if (feature_set.empty()) {
        rows.features.Append({}, 0);
      } else {
        const TaskSpaces* space = spaces.Find(each.candidate.space_digest);
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

#include "server/job/search/recorded_task.h"

#include <algorithm>
#include <iterator>
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
      samples.try_emplace(record.target, static_cast<size_t>(query.max_records))
          .first->second.Add(record, latency);
    }
    if (static_cast<int>(page.size()) < page_query.page_size) return samples;
  }
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

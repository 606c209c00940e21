#include "server/confirm/finalist.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/median.h"
#include "common/record/processes.h"
#include "server/job/actor/job_actor.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// The default schedule competes if it is at most this many times slower than the best. A slower one
// is only measured for the speed-up.
constexpr double kDefaultWithin = 2.0;
// How often a slow default schedule still has to run to measure a speed-up, and the share of the
// remaining time that these runs may take.
constexpr double kRunsOfSlowDefault = 8;
constexpr double kTimeOfSlowDefault = 0.5;
// With a time limit there are only as many finalists as can be measured a few times each.
constexpr absl::Duration kFinalistTime = absl::Seconds(1);

// Chooses the finalists of one search.
class Chooser {
 public:
  Chooser(JobActor& job, const JobTask& task, Found found, const ConfirmationOptions& options)
      : job_(job), task_(task), found_(std::move(found)), options_(options) {}

  Finalists Choose() {
    std::sort(found_.screened.begin(), found_.screened.end(),
              [this](const Screened& a, const Screened& b) { return ComesBefore(task_, a, b); });
    AddLeader();
    AddFastest();
    AddDefault();
    FindIncumbent(job_, task_, chosen_);
    return std::move(chosen_);
  }

 private:
  double Best() const { return found_.screened[0].latency_ns; }
  bool IsLeader(const record::Record& record) const {
    return found_.leader.has_value() && found_.leader->candidate == record.candidate;
  }

  // Adds the leader first, because single measurements may make it look slower than many others.
  void AddLeader() {
    for (const Screened& screened : found_.screened) {
      if (!IsLeader(screened.record)) continue;
      const std::string& program = screened.record.result.facts.program_digest;
      if (!program.empty()) programs_.emplace(program, 0);
      Add(screened);
      return;
    }
  }

  void AddFastest() {
    // One lucky measurement must not exclude the others. A decided space has only one candidate and
    // the default schedule; the latter need not be timed for minutes if it is much slower.
    const auto in_time = static_cast<int>(
        std::clamp<int64_t>(job_.TimeLeft() / kFinalistTime, 1, options_.finalists));
    const int min_finalists = task_.IsDecided() ? 1 : options_.min_finalists;
    // Besides the leader, the fastest is always a finalist.
    const int most = std::max(in_time, static_cast<int>(chosen_.list.size()) + 1);
    for (const Screened& screened : found_.screened) {
      const record::Record& record = screened.record;
      const int count = static_cast<int>(chosen_.list.size());
      const bool slow = screened.latency_ns > Best() * options_.within;
      if (count >= most || (count >= min_finalists && slow)) break;
      if (IsLeader(record)) continue;
      const std::string& program = record.result.facts.program_digest;
      if (!program.empty() && !programs_.emplace(program, count).second) continue;
      Add(screened);
    }
  }

  // Adds the default schedule, because a speed-up is measured in the same rounds as the best.
  void AddDefault() {
    if (!found_.untiled) return;
    const record::Record& record = found_.untiled->record;
    const auto same = programs_.find(record.result.facts.program_digest);
    if (same != programs_.end()) {
      chosen_.list[same->second].is_default = true;
      chosen_.untiled = same->second;
      return;
    }
    chosen_.untiled = chosen_.IndexOf(record.candidate);
    if (chosen_.Has(chosen_.untiled)) return;
    const bool slow = found_.untiled->latency_ns > Best() * kDefaultWithin;
    const absl::Duration needed = kRunsOfSlowDefault * absl::Nanoseconds(record.result.latency_ns);
    if (slow && needed > job_.TimeLeft() * kTimeOfSlowDefault) {
      chosen_.untiled = -1;
      return;
    }
    Add(*found_.untiled);
    chosen_.list.back().is_slow_default = slow;
    if (slow) chosen_.list.back().is_own = false;
  }

  void Add(const Screened& screened) {
    const record::Record& record = screened.record;
    chosen_.list.push_back({.candidate = record.candidate,
                            .space = task_.SpaceText(record.candidate.space_digest),
                            .trial = record.trial,
                            .is_untiled = record.is_default,
                            .screened_ns = screened.latency_ns,
                            .is_default = record.is_default,
                            .is_own = true,
                            .artifact_digest = record.result.artifact_digest,
                            .worker_id = screened.worker_id,
                            .builder = fleet::BuilderOf(record.environment)});
    if (screened.again.empty()) return;
    // These may be published even if every further process is disturbed.
    chosen_.list.back().last = screened.again.back();
    for (const record::Record& process : screened.again) {
      chosen_.list.back().earlier.push_back(process.result);
    }
  }

  JobActor& job_;
  const JobTask& task_;
  Found found_;
  const ConfirmationOptions options_;
  std::map<std::string, int> programs_;  // finalists by program; equal programs count once
  Finalists chosen_;
};

// The number of candidates that are kept for the confirmation, which uses some of the best. It
// counts equal programs once.
constexpr size_t kMaxScreened = 256;

bool IsEarlier(const record::Record& a, const record::Record& b) { return a.id < b.id; }

}  // namespace

absl::Status NothingRan(const JobActor& job) {
  const JobSnapshot& state = job.state();
  std::map<record::Outcome, int64_t> outcomes = state.outcomes;
  // The default schedule is not a trial, but it may have been the only one that was measured.
  if (outcomes.empty() && state.default_schedule) {
    ++outcomes[state.default_schedule->record.result.outcome];
  }
  if (outcomes.empty()) return absl::FailedPreconditionError(WhyUnmeasured(job));
  return absl::AbortedError(
      absl::StrCat("no candidate ran successfully: ",
                   absl::StrJoin(outcomes, ", ",
                                 [](std::string* text, const auto& outcome) {
                                   absl::StrAppend(text, record::OutcomeName(outcome.first), " ",
                                                   outcome.second);
                                 }),
                   "; the records of the job say why each of them failed"));
}

bool ComesBefore(const JobTask& task, const Screened& a, const Screened& b) {
  const bool only_a = task.IsOnly(a.record.candidate), only_b = task.IsOnly(b.record.candidate);
  if (only_a != only_b) return only_a;
  return a.latency_ns < b.latency_ns;
}

record::Record MakeRecord(const JobTask& task, const Finalist& finalist) {
  record::Record record = task.MakeRecord(finalist.candidate, finalist.trial);
  record.is_default = finalist.is_untiled;
  if (!finalist.proposer.empty()) record.proposer = finalist.proposer;
  return record;
}

std::string NameOf(const Finalist& finalist) {
  return finalist.trial == record::kNoTrial ? "a candidate of another job"
                                            : absl::StrCat("trial ", finalist.trial);
}

Screened ScreenedOf(record::Record record, std::string worker_id) {
  const double latency_ns = record::SteadyLatencyNs(record.result);
  return {std::move(record), std::move(worker_id), latency_ns};
}

void FindIncumbent(JobActor& job, const JobTask& task, Finalists& finalists) {
  const JobServices& services = job.services();
  finalists.incumbent = -1;
  finalists.incumbent_record.reset();
  finalists.pin = store::Pin();
  const absl::StatusOr<store::BestRow> row = task.PublishedBest();
  if (absl::IsNotFound(row.status())) return AddUnpublishedBest(job, task, finalists);
  if (!row.ok()) {
    spdlog::warn("job {}: the published best cannot be read: {}", job.id(),
                 row.status().ToString());
    return;
  }
  finalists.incumbent_record = row->record;
  finalists.pin = row->pin;
  finalists.incumbent = finalists.IndexOf(row->record.candidate);
  if (finalists.Has(finalists.incumbent)) return;
  // This job may have measured the best of another one before it was resumed.
  const bool is_own = row->record.job_id == job.id() && row->record.trial != record::kNoTrial;
  Finalist finalist{.candidate = row->record.candidate,
                    .space = row->space,
                    .trial = is_own ? row->record.trial : record::kNoTrial,
                    .proposer = row->record.proposer,
                    .is_untiled = row->record.is_default,
                    .is_own = is_own,
                    .artifact_digest = row->record.result.artifact_digest,
                    .builder = fleet::BuilderOf(row->record.environment)};
  // The published artifact itself is measured, wherever it was built.
  absl::StatusOr<std::string> bytes = services.store->GetArtifact(finalist.artifact_digest);
  if (!bytes.ok() || !services.artifacts->Put(finalist.artifact_digest, *std::move(bytes)).ok()) {
    finalist.artifact_digest.clear();
  }
  finalists.list.push_back(std::move(finalist));
}

Finalists ChooseFinalists(JobActor& job, const JobTask& task, Found found,
                          const ConfirmationOptions& options) {
  return Chooser(job, task, std::move(found), options).Choose();
}

void ScreenedList::Add(Screened screened) {
  list_.push_back(std::move(screened));
  if (list_.size() < 2 * kMaxScreened) return;
  // The slower half cannot become finalists.
  std::nth_element(
      list_.begin(), list_.begin() + kMaxScreened, list_.end(),
      [this](const Screened& a, const Screened& b) { return ComesBefore(task_, a, b); });
  list_.resize(kMaxScreened);
}

void ScreenedList::AddProcesses(const std::vector<record::Record>& processes) {
  for (Screened& screened : list_) {
    if (screened.record.candidate != processes[0].candidate) continue;
    screened.again.insert(screened.again.end(), processes.begin(), processes.end());
    std::vector<double> all = {record::SteadyLatencyNs(screened.record.result)};
    for (record::Record& process : screened.again) {
      // The build's facts are not in the result of an artifact that was built before.
      process.result.facts = screened.record.result.facts;
      all.push_back(record::SteadyLatencyNs(process.result));
    }
    screened.latency_ns = MedianInPlace(absl::MakeSpan(all));
  }
}

void StoredDefault::Add(const record::Record& record) {
  if (!record.is_default || record.quarantined || record.result.outcome != record::Outcome::kOk) {
    return;
  }
  if (record.result.processes == 0) {
    processes_[{record.job_id, record.policy.repeats}].push_back(record);
  } else if (record.result.processes >= record::kProcesses &&
             (!published_ || IsEarlier(*published_, record))) {
    published_ = record;
  }
}

std::optional<record::Record> StoredDefault::Confirmed() const {
  std::optional<record::Record> newest = published_;
  for (const auto& [job, processes] : processes_) {
    if (processes.size() < record::kProcesses) continue;
    const record::Record& last = *std::max_element(processes.begin(), processes.end(), IsEarlier);
    if (!record::IsConfirmed(last) || (newest && IsEarlier(last, *newest))) continue;
    newest = last;
    std::vector<record::MeasureResult> results;
    for (const record::Record& process : processes) results.push_back(process.result);
    newest->result = record::MedianOfProcesses(results);
  }
  return newest;
}

}  // namespace hone::job

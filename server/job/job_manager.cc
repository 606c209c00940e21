#include "server/job/job_manager.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/counted.h"
#include "common/base/seconds_text.h"
#include "common/base/status_macros.h"
#include "server/job/actor/job_codec.h"
#include "server/job/job_book.h"
#include "server/job/network/network_job.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

constexpr int kListedAtOnce = 200;

// Why a job cannot be resumed yet. `save_error`: JobActor::save_error of the job or its child.
absl::Status JustEnding(const std::string& id, const absl::Status& save_error) {
  if (save_error.ok()) {
    return absl::UnavailableError(
        absl::StrCat("job ", id, " is just ending; try again in a moment"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id, " cannot be resumed yet, because its end could not be stored: ",
                   save_error.message(), "; the server tries again every few seconds"));
}

// The answer to a call that resumes a job that has not ended. `has_limits`: the call has new
// limits.
SnapshotOr ResumeUnfinished(SnapshotOr job, bool has_limits) {
  if (!job.ok()) return job;
  const std::string& id = (*job)->id;
  if ((*job)->cancelled) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " is being cancelled and has not ended yet; \"hone jobs watch ",
                     id, "\" waits for its end, after which it can be resumed"));
  }
  if (!has_limits) return job;  // it continues anyway
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id, " has not ended; its limits can be changed only afterwards"));
}

// Returns how many trials of a job are stored. The state of a job that ended at once lacks its last
// ones.
absl::StatusOr<int64_t> StoredTrials(store::Store& store, const std::string& job) {
  std::set<int64_t> trials;
  HONE_RETURN_IF_ERROR(store.ForEachRecord({.job_id = job}, [&](const record::Record& record) {
    if (record.policy.name == "screen" && !record.is_default) trials.insert(record.trial);
  }));
  return trials.size();
}

// Replaces the limits of a job that is resumed by those that are not zero. `begun`: the trials that
// it has measured, and for a network also those that its tasks measure when they continue.
// InvalidArgument: nothing is left of a limit.
absl::Status SetLimits(int64_t max_trials, absl::Duration max_time, int64_t begun,
                       JobSnapshot& job) {
  if (max_trials != 0 && max_trials < begun) {
    return absl::InvalidArgumentError(
        job.network.has_value()
            ? absl::StrCat("the tasks of job ", job.id, " have already been given ",
                           Counted(begun, "trial"),
                           ", some of which they may not have measured yet; the new limit must not "
                           "be lower, because they go on with those")
            : absl::StrCat("job ", job.id, " has already made ", Counted(begun, "trial"),
                           "; the new limit must not be lower, because it includes those"));
  }
  const absl::Duration limit = max_time != absl::ZeroDuration() ? max_time : job.spec.max_time;
  if (limit != absl::ZeroDuration() && limit <= job.CountedWall()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "job ", job.id, " has already taken ",
        SecondsText(absl::Ceil(job.CountedWall(), absl::Seconds(1))),
        job.after_cancel > absl::ZeroDuration() ? " (without the time after a cancel)" : "",
        max_time != absl::ZeroDuration()
            ? "; the new limit must be longer, because it includes that time"
            : ", all of its time; give it more with --time, which includes the time taken"));
  }
  if (max_trials != 0) job.spec.max_trials = max_trials;
  if (max_time != absl::ZeroDuration()) job.spec.max_time = max_time;
  return absl::OkStatus();
}

// What can be shown of a job whose row cannot be read, for example because a newer release wrote
// it.
std::shared_ptr<const JobSnapshot> Unreadable(const store::JobRow& row, const absl::Status& why) {
  JobSnapshot snapshot{.id = row.id, .created_unix_ms = row.created_unix_ms};
  snapshot.spec.request_id = row.request_id;
  snapshot.spec.owner = row.owner;
  snapshot.spec.priority = row.priority;
  snapshot.state = JobStateFromName(row.state).value_or(JobState::kFailed);
  snapshot.error = absl::StrCat("the job cannot be read: ", why.message());
  return std::make_shared<const JobSnapshot>(std::move(snapshot));
}

// Returns whether the networks have this task.
absl::StatusOr<bool> Tunes(const NetworkSpec& network, const TaskEnvironment& environment,
                           const store::TaskKey& task) {
  for (const NetworkTaskSpec& own : network.tasks) {
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo workload, environment.Describe(own.workload));
    if (workload.digest == task.workload_digest) return true;
  }
  return false;
}

}  // namespace

std::string NameARun() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  static std::atomic<int> made = 0;
  return absl::StrCat(host, "/", getpid(), "/", absl::ToUnixMicros(absl::Now()), "/", ++made);
}

JobManager::JobManager(const JobServices& services, JobOptions options)
    : services_(services),
      options_(std::move(options)),
      book_(options_.max_jobs, options_.max_jobs_per_owner),
      starter_(services_, options_, &book_),
      turns_(services_) {
  if (services_.server.empty()) services_.server = NameARun();
  services_.children = &starter_;
}

absl::Status JobManager::Restore() {
  if (const absl::Status writable = services_.store->CheckWritable(); absl::IsDataLoss(writable)) {
    // The server answers look-ups anyway.
    spdlog::error("unfinished jobs are not continued: {}", std::string(writable.message()));
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<store::JobRow> rows, services_.store->UnfinishedJobs());
  std::vector<std::shared_ptr<JobActor>> jobs, suspects;
  for (const store::JobRow& row : rows) {
    absl::StatusOr<JobSnapshot> snapshot;
    const absl::Status read = Attempt([&] {
      snapshot = FromRow(row);
      return snapshot.status();
    });
    if (!read.ok()) {  // a server of the release that wrote it can continue it
      spdlog::error("job {} cannot be read: {}", row.id, read.ToString());
      continue;
    }
    // This process was cut off from the database then, and did not crash.
    std::erase(snapshot->crashed_servers, services_.server);
    const auto& step = snapshot->risky_step;
    const bool crashed = step.has_value() && EndedByItself(*step, services_.server, ThisBoot());
    if (crashed) {
      std::erase(snapshot->crashed_servers, step->server);  // it may be from before a resumption
      snapshot->crashed_servers.push_back(step->server);
      spdlog::warn("job {}: a server ended abnormally while {} (crashes of this job: {})", row.id,
                   step->name, snapshot->crashed_servers.size());
    }
    std::shared_ptr<JobActor> job = starter_.Make(*std::move(snapshot));
    if (!book_.Add(job)) return absl::OkStatus();
    (crashed ? suspects : jobs).push_back(std::move(job));
  }
  const bool one_at_a_time = !suspects.empty();
  jobs.insert(jobs.end(), suspects.begin(), suspects.end());
  for (const std::shared_ptr<JobActor>& job : jobs) {
    spdlog::info("job {}: is continued", job->id());
    if (!one_at_a_time) job->Start();
  }
  if (one_at_a_time) turns_.Add(jobs);
  return absl::OkStatus();
}

void JobManager::Create(JobSpec spec, absl::AnyInvocable<void(SnapshotOr) &&> done,
                        std::shared_ptr<void> place) {
  if (!spec.request_id.empty()) {
    absl::StatusOr<store::JobRow> row = services_.store->GetJobByRequest(spec.request_id);
    if (row.ok()) return std::move(done)(Get(row->id));
    if (!absl::IsNotFound(row.status())) return std::move(done)(row.status());
  }
  const absl::StatusOr<int64_t> number = services_.store->NextJobNumber();
  if (!number.ok()) return std::move(done)(number.status());
  absl::StatusOr<JobSnapshot> snapshot =
      starter_.NewSnapshot(absl::StrCat(*number), std::move(spec));
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  starter_.StartNew(*std::move(snapshot), std::move(done), std::move(place));
}

absl::StatusOr<std::shared_ptr<void>> JobManager::Reserve(const JobSpec& spec) {
  if (!spec.request_id.empty() && services_.store->GetJobByRequest(spec.request_id).ok()) {
    return nullptr;
  }
  return book_.Reserve(spec.request_id, spec.owner);
}

void JobManager::Resume(const std::string& id, int64_t max_trials, absl::Duration max_time,
                        absl::AnyInvocable<void(SnapshotOr) &&> done) {
  const bool has_limits = max_trials != 0 || max_time != absl::ZeroDuration();
  if (std::shared_ptr<JobActor> job = book_.Find(id); job != nullptr && !job->IsOver()) {
    const std::shared_ptr<const JobSnapshot> now = job->snapshot();
    if (HasEnded(now->state)) return std::move(done)(JustEnding(id, job->save_error()));
    return std::move(done)(ResumeUnfinished(now, has_limits));
  }
  absl::StatusOr<store::JobRow> row = services_.store->GetJob(id);
  if (!row.ok()) return std::move(done)(row.status());
  absl::StatusOr<JobSnapshot> snapshot = FromRow(*row);
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  // It could not be continued, or the server is shutting down.
  if (!HasEnded(snapshot->state)) {
    return std::move(done)(ResumeUnfinished(SharedFromRow(*row), has_limits));
  }
  if (!snapshot->spec.parent.empty()) {
    return std::move(done)(absl::InvalidArgumentError(absl::StrCat(
        "job ", id, " tunes a task of job ", snapshot->spec.parent, "; resume that job")));
  }
  if (snapshot->state == JobState::kDone) {
    return std::move(done)(absl::FailedPreconditionError(absl::StrCat(
        "job ", id, " is done; start a new job of the same workload, which reuses its results")));
  }
  int64_t begun = 0;
  if (!snapshot->network.has_value() && max_trials != 0) {
    const absl::StatusOr<int64_t> stored = StoredTrials(*services_.store, id);
    if (!stored.ok()) return std::move(done)(stored.status());
    begun = *stored;
  }
  if (snapshot->network.has_value()) {
    const absl::StatusOr<int64_t> noted = NoteEnds(*snapshot);
    if (!noted.ok()) return std::move(done)(noted.status());
    begun = *noted;
  }
  if (absl::Status set = SetLimits(max_trials, max_time, begun, *snapshot); !set.ok()) {
    return std::move(done)(std::move(set));
  }
  Reopen(*snapshot);
  if (snapshot->network.has_value()) ReopenTasks(*snapshot->spec.network, *snapshot->network);
  row = RowOf(*snapshot, services_.clock->Now());
  spdlog::info("job {}: resumed", id);
  starter_.StartAgain(*std::move(row), *std::move(snapshot), std::move(done));
}

absl::StatusOr<int64_t> JobManager::NoteEnds(JobSnapshot& job) const {
  int64_t begun = 0;
  const int64_t batch = TrialsAtATime(job.spec, options_);
  for (size_t i = 0; i < job.network->tasks.size(); ++i) {
    const std::string id = TaskJobId(job.id, i);
    if (const std::shared_ptr<JobActor> child = book_.Find(id);
        child != nullptr && !child->IsOver()) {
      return JustEnding(job.id, child->save_error());
    }
    const SnapshotOr last = Get(id);
    // The tasks of a network go on without one whose job cannot be read.
    if (absl::IsNotFound(last.status()) || absl::IsDataLoss(last.status())) continue;
    HONE_RETURN_IF_ERROR(last.status());
    if (!HasEnded((*last)->state)) return JustEnding(job.id, absl::OkStatus());
    UpdateTask(**last, /*in_flight=*/0, batch, job.network->tasks[i]);
    const bool continues = (*last)->state == JobState::kCancelled || (*last)->is_resumable;
    begun += continues ? std::max((*last)->trials, (*last)->allowance) : (*last)->trials;
  }
  return begun;
}

std::shared_ptr<const JobSnapshot> JobManager::FindUnfinished(const std::string& id) const {
  const std::shared_ptr<JobActor> job = book_.Find(id);
  if (job == nullptr) return nullptr;
  std::shared_ptr<const JobSnapshot> snapshot = job->snapshot();
  return HasEnded(snapshot->state) ? nullptr : snapshot;
}

SnapshotOr JobManager::Get(const std::string& id) const {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const JobSnapshot> job,
                        ReadJob(book_, *services_.store, id));
  return WithQuarantine(*services_.store, std::move(job));
}

absl::StatusOr<std::vector<std::shared_ptr<const JobSnapshot>>> JobManager::List(
    int page_size, const std::string& after_id) const {
  std::vector<std::shared_ptr<const JobSnapshot>> list;
  std::string last = after_id;
  int rows = page_size;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<store::JobRow> page,
                          services_.store->ListJobs(rows, last));
    for (const store::JobRow& row : page) {
      last = row.id;
      if (IsTaskJobId(row.id)) continue;
      if (std::shared_ptr<JobActor> job = book_.Find(row.id); job != nullptr) {
        list.push_back(WithQuarantine(*services_.store, job->snapshot()));
      } else {
        const SnapshotOr stored = SharedFromRow(row);
        list.push_back(stored.ok() ? WithQuarantine(*services_.store, *stored)
                                   : Unreadable(row, stored.status()));
      }
      if (static_cast<int>(list.size()) == page_size) return list;
    }
    if (static_cast<int>(page.size()) < rows) return list;
    rows = std::max(rows, kListedAtOnce);  // many of the next rows may be of children, too
  }
}

SnapshotOr JobManager::Cancel(const std::string& id, bool confirm) {
  if (std::shared_ptr<JobActor> job = book_.Find(id); job != nullptr) {
    job->Cancel(confirm);
    return job->snapshot();
  }
  HONE_ASSIGN_OR_RETURN(const store::JobRow row, services_.store->GetJob(id));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const JobSnapshot> snapshot, SharedFromRow(row));
  const absl::Status writable = services_.store->CheckWritable();
  if (!HasEnded(snapshot->state) && !writable.ok()) {
    return absl::Status(writable.code(),
                        absl::StrCat("job ", id, " cannot be cancelled: ", writable.message()));
  }
  return snapshot;
}

void JobManager::CancelHeld(const std::string& id) {
  if (const std::shared_ptr<JobActor> job = book_.Find(id); job != nullptr) job->Cancel(false);
}

void JobManager::Propose(const std::string& id, const std::string& caller, Proposals proposals,
                         ProposalAnswer::Done done) {
  const std::shared_ptr<JobActor> actor = book_.Find(id);
  const SnapshotOr snapshot = actor != nullptr ? actor->snapshot() : Get(id);
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  if ((*snapshot)->spec.network.has_value()) {
    return std::move(done)(absl::FailedPreconditionError(absl::StrCat(
        "job ", id, " tunes networks; propose for the job of one of its tasks, such as ",
        TaskJobId(id, 0), ": \"hone jobs show ", id, "\" lists them")));
  }
  const std::shared_ptr<Job> job = std::dynamic_pointer_cast<Job>(actor);
  if (job == nullptr) {
    return std::move(done)(absl::FailedPreconditionError(
        HasEnded((*snapshot)->state)
            ? absl::StrCat("job ", id, " is ", JobStateName((*snapshot)->state),
                           "; propose for another job of its workload")
            : absl::StrCat("the server does not work on job ", id)));
  }
  absl::StatusOr<std::shared_ptr<void>> place =
      checking_->Enter(caller, static_cast<int>(proposals.traces.size()));
  if (!place.ok()) return std::move(done)(place.status());
  proposals.place = *std::move(place);
  proposals.caller = caller;
  job->Propose(std::move(proposals), std::move(done));
}

void JobManager::Tick() {
  for (const std::shared_ptr<JobActor>& job : book_.RemoveOver()) job->Tick();
  turns_.Pass();
}

void JobManager::Suspend() {
  turns_.Stop();
  for (const std::shared_ptr<JobActor>& job : book_.Suspend()) job->SuspendForShutdown();
}

absl::StatusOr<std::string> FindUnfinishedJob(const JobManager& jobs,
                                              const TaskEnvironment& environment,
                                              const store::TaskKey& task) {
  for (const std::string& id : jobs.Unfinished()) {
    const SnapshotOr job = jobs.Get(id);
    if (absl::IsNotFound(job.status())) continue;
    HONE_RETURN_IF_ERROR(job.status());
    const JobSpec& spec = (*job)->spec;
    if (HasEnded((*job)->state) || spec.target_key != task.target ||
        spec.tolerance != task.tolerance) {
      continue;
    }
    if (spec.network.has_value()) {
      HONE_ASSIGN_OR_RETURN(const bool tuned, Tunes(*spec.network, environment, task));
      if (tuned) return id;
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo workload, environment.Describe(spec.workload));
    if (workload.digest == task.workload_digest) return id;
  }
  return std::string();
}

}  // namespace hone::job

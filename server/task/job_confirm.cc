// The confirmation phase of a job: rounds of the finalists, the decision, and the publication of
// the best.

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/task/job.h"
#include "server/task/job_messages.h"
#include "spdlog/spdlog.h"

namespace hone::task {
namespace {

constexpr char kConfirmPolicy[] = "confirm";
constexpr int kConfirmRepeats = 5;           // blocks of each process
constexpr double kConfirmConfidence = 0.95;  // of the intervals that finalists are compared by
// A default schedule that was at most so much slower than the best is confirmed, too: a speed-up of
// ten times needs no second look, and a slow default would hold up the fast ones.
constexpr double kDefaultWithin = 2.0;
// An incumbent that wins is published anew when it is faster than its record by this share: that
// was measured while something disturbed the machine.
constexpr double kOutgrown = 0.05;
// Rounds of a finalist that are measured again because the machine was disturbed; then the median
// over the rounds has to do.
constexpr int kNoisyRounds = 1;

// Why nothing can be confirmed, from what happened instead.
absl::Status NothingRan(const JobSnapshot& state) {
  if (state.trials == 0) {
    return absl::FailedPreconditionError(
        "nothing was measured before the job had to stop: no worker of its target was free in "
        "time");
  }
  std::string outcomes;
  for (const auto& [outcome, count] : state.outcomes) {
    absl::StrAppend(&outcomes, outcomes.empty() ? "" : ", ", record::OutcomeName(outcome), " ",
                    count);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no candidate ran to its end: ", outcomes,
                   "; the records of the job say why each of them failed"));
}

}  // namespace

void Job::StartConfirming() {
  doing_ = "choosing the finalists";
  if (screened_.empty()) {
    if (cancelled_) return End(JobState::kCancelled);
    return End(JobState::kFailed, NothingRan(state_));
  }
  if (exhausted_ && !only_.has_value() &&
      (spec_.max_trials == 0 || state_.trials < spec_.max_trials)) {
    state_.note =
        absl::StrCat("the design spaces are exhausted: all of their candidates are known ",
                     "after ", state_.trials, " trials");
  }
  state_.state = JobState::kConfirming;
  drain_deadline_ = absl::InfiniteFuture();
  SetPhase("confirming the finalists");
  Save();
  ShowState();

  std::sort(screened_.begin(), screened_.end(), [](const Screened& a, const Screened& b) {
    return record::SteadyLatencyNs(a.record.result) < record::SteadyLatencyNs(b.record.result);
  });
  // Also before a default schedule that is the same program.
  std::stable_partition(screened_.begin(), screened_.end(),
                        [this](const Screened& s) { return IsOnly(s.record.candidate); });
  const ConfirmationOptions& options = options_.confirmation;
  const double limit = record::SteadyLatencyNs(screened_[0].record.result) * options.within;
  std::map<std::string, int> programs;  // equal programs are one finalist
  for (const Screened& screened : screened_) {
    const record::Record& record = screened.record;
    const int count = static_cast<int>(finalists_.size());
    if (count >= options.finalists) break;
    // A lucky first must not keep everybody else away. One candidate alone is not lucky: a default
    // schedule that is much slower need not be timed for minutes.
    const int min_finalists = only_.has_value() ? 1 : options.min_finalists;
    if (count >= min_finalists && record::SteadyLatencyNs(record.result) > limit) break;
    const std::string& program = record.result.facts.program_digest;
    if (!program.empty() && !programs.emplace(program, count).second) continue;
    finalists_.push_back({.candidate = record.candidate,
                          .space = SpaceText(record.candidate.space_digest),
                          .trial = record.trial,
                          .is_default = record.is_default,
                          .artifact_digest = record.result.artifact_digest,
                          .worker_id = screened.worker_id});
  }
  AddDefault(programs);
  AddIncumbent();
  for (const Finalist& finalist : finalists_) {
    if (!finalist.artifact_digest.empty() && !finalist.worker_id.empty()) {
      services_.fleet->KeepArtifact(finalist.artifact_digest, finalist.worker_id);
    }
  }
  ChooseDevice();
  confirmation_.emplace(static_cast<int>(finalists_.size()), incumbent_, spec_.seed, options);
  NextRound();
}

void Job::ChooseDevice() {
  std::map<std::string, int> finalists;  // by the worker that has their artifacts
  for (const Finalist& finalist : finalists_) {
    if (finalist.worker_id.empty()) continue;
    const int count = ++finalists[finalist.worker_id];
    if (device_.empty() || count > finalists[device_]) device_ = finalist.worker_id;
  }
  if (device_.empty()) device_ = services_.fleet->AnotherRunner(spec_.target_key, {});
}

void Job::AddDefault(const std::map<std::string, int>& programs) {
  const auto screened =
      std::find_if(screened_.begin(), screened_.end(),
                   [](const Screened& candidate) { return candidate.record.is_default; });
  if (screened == screened_.end()) return;
  const record::Record& record = screened->record;
  const auto same = programs.find(record.result.facts.program_digest);
  if (same != programs.end()) {
    finalists_[same->second].is_default = true;
    return;
  }
  const double best = record::SteadyLatencyNs(screened_[0].record.result);
  if (record::SteadyLatencyNs(record.result) > best * kDefaultWithin) return;
  for (const Finalist& finalist : finalists_) {
    if (finalist.candidate == record.candidate) return;
  }
  finalists_.push_back({.candidate = record.candidate,
                        .space = SpaceText(record.candidate.space_digest),
                        .trial = record.trial,
                        .is_default = true,
                        .artifact_digest = record.result.artifact_digest,
                        .worker_id = screened->worker_id});
}

void Job::AddIncumbent() {
  absl::StatusOr<store::BestRow> row =
      services_.store->LookupBest({.workload_digest = workload_.digest,
                                   .target = spec_.target_key,
                                   .tolerance = spec_.tolerance});
  if (!row.ok()) {
    if (!absl::IsNotFound(row.status())) {
      spdlog::warn("job {}: the published best cannot be read: {}", id_, row.status().ToString());
    }
    return;
  }
  incumbent_record_ = row->record;
  for (size_t i = 0; i < finalists_.size(); ++i) {
    if (finalists_[i].candidate == row->record.candidate) incumbent_ = static_cast<int>(i);
  }
  if (incumbent_ >= 0) return;
  incumbent_ = static_cast<int>(finalists_.size());
  Finalist finalist{.candidate = row->record.candidate,
                    .space = row->space,
                    .trial = row->record.trial,
                    .artifact_digest = row->record.result.artifact_digest};
  // The published bytes themselves are measured, wherever they were built.
  absl::StatusOr<std::string> bytes = services_.store->GetArtifact(finalist.artifact_digest);
  if (!bytes.ok() || !services_.artifacts->Put(finalist.artifact_digest, *std::move(bytes)).ok()) {
    finalist.artifact_digest.clear();
  }
  finalists_.push_back(std::move(finalist));
}

void Job::NextRound() {
  const std::vector<int> order = confirmation_->NextRound();
  if (order.empty()) {
    ReportOnly();
    ReportDefault();
    ranking_ = confirmation_->Ranking();
    if (ranking_.empty()) {
      return End(cancelled_ ? JobState::kCancelled : JobState::kFailed,
                 absl::FailedPreconditionError(
                     "no finalist could be confirmed: each failed when it was measured again"));
    }
    artifact_deadline_ = Steady() + options_.artifact_limit;
    return Publish();
  }
  SetPhase(
      absl::StrCat("confirming ", order.size(), " finalists, round ", confirmation_->rounds()));
  ShowState();
  for (int index : order) SubmitFinalist(index);
}

void Job::ReportOnly() {
  for (size_t i = 0; i < finalists_.size(); ++i) {
    record::Record record = finalists_[i].last;
    if (!IsOnly(record.candidate) || !state_.given) continue;
    const record::BuildFacts facts = state_.given->record.result.facts;  // of the build
    record.result = confirmation_->Combined(static_cast<int>(i));
    record.result.facts = facts;
    state_.given = MakeBest(record);
  }
}

void Job::ReportDefault() {
  for (size_t i = 0; i < finalists_.size(); ++i) {
    const record::Record& last = finalists_[i].last;
    if (!finalists_[i].is_default || !state_.default_schedule || last.result.latency_ns <= 0) {
      continue;
    }
    record::Record record = state_.default_schedule->record;
    record.policy = last.policy;
    record.result = confirmation_->Combined(static_cast<int>(i));
    state_.default_schedule = MakeBest(record);
  }
}

void Job::SubmitFinalist(int index) {
  const Finalist& finalist = finalists_[index];
  fleet::WorkItem item = MakeItem(finalist.candidate, finalist.space);
  item.policy.name = kConfirmPolicy;
  item.policy.repeats = kConfirmRepeats;
  item.policy.confidence = kConfirmConfidence;
  item.best_latency_ns = nullptr;  // nothing stops early
  // Its bytes where they are known to be; else it is built anew.
  const bool there = !device_.empty() && finalist.worker_id == device_;
  if (there || services_.artifacts->Has(finalist.artifact_digest)) {
    item.artifact_digest = finalist.artifact_digest;
  }
  item.worker_id = device_;
  record::Record record = MakeRecord(finalist.candidate, finalist.trial);
  record.policy = item.policy;
  services_.fleet->Submit(
      std::move(item),
      [self = shared_from_this(), index, record = std::move(record)](
          absl::StatusOr<fleet::WorkResult> result, fleet::Acknowledge acknowledge) mutable {
        if (!result.ok()) {
          self->PostCall(
              [index, status = result.status()](Job& job) { job.OnRoundError(index, status); });
          return;
        }
        self->Commit(std::move(record), /*event=*/-1, *std::move(result), std::move(acknowledge),
                     [index](Job& job, const record::Record& stored, const std::string& worker) {
                       job.OnRound(index, stored, worker);
                     });
      });
}

void Job::OnRound(int index, const record::Record& record, const std::string& worker_id) {
  doing_ = "confirming the finalists";
  if (state_.state != JobState::kConfirming) return;
  Finalist& finalist = finalists_[index];
  const bool ok = record.result.outcome == record::Outcome::kOk;
  device_ = worker_id;  // another one than before when that was lost
  if (record.quarantined && finalist.noisy_rounds < kNoisyRounds) {
    ++finalist.noisy_rounds;
    return SubmitFinalist(index);
  }
  if (!ok && !finalist.artifact_digest.empty() && !finalist.rebuilt &&
      confirmation_->rounds() == 1) {
    // Perhaps the bytes did not reach the device: one more try from the trace.
    finalist.artifact_digest.clear();
    finalist.rebuilt = true;
    return SubmitFinalist(index);
  }
  if (ok) {
    // Later rounds run the bytes of this one.
    finalist.artifact_digest = record.result.artifact_digest;
    services_.fleet->KeepArtifact(finalist.artifact_digest, worker_id);
    finalist.worker_id = worker_id;
    finalist.last = record;
  }
  if (spec_.revalidate > 0 && confirmation_->rounds() == 1) Judge(finalist, record);
  if (!ok && IsOnly(finalist.candidate)) {
    finalist.last = record::Record();
    state_.given = MakeBest(record);
  }
  confirmation_->Report(index, record.result);
  if (confirmation_->RoundIsComplete()) NextRound();
}

void Job::OnRoundError(int index, const absl::Status& status) {
  if (state_.state != JobState::kConfirming) return;
  if (absl::IsResourceExhausted(status)) return deferred_finalists_.push_back(index);
  if (absl::IsNotFound(status) && !finalists_[index].rebuilt) {
    finalists_[index].artifact_digest.clear();
    finalists_[index].rebuilt = true;
    return SubmitFinalist(index);
  }
  End(cancelled_ ? JobState::kCancelled : JobState::kFailed, status);
}

void Job::Publish() {
  doing_ = "publishing the best candidate";
  if (publishing_) return;
  // The first in order whose bytes are here; the winner's are waited for.
  for (int index : ranking_) {
    // A revalidated incumbent is published with what it does now, and so is one that outgrew its
    // record.
    if (index == incumbent_ && index == ranking_[0] && spec_.revalidate == 0 &&
        !HasOutgrown(index)) {
      state_.best = MakeBest(*incumbent_record_);
      return End(cancelled_ ? JobState::kCancelled : JobState::kDone);
    }
    const Finalist& finalist = finalists_[index];
    if (services_.artifacts->Has(finalist.artifact_digest)) {
      if (IsSpotChecked(index)) PublishFinalist(index);
      return;
    }
    // Asked again: the worker may have been started anew since.
    services_.fleet->KeepArtifact(finalist.artifact_digest, finalist.worker_id);
    if (Steady() < artifact_deadline_) {
      SetPhase("waiting for the winner's artifact");
      return;
    }
    spdlog::warn("job {}: the artifact of trial {} did not arrive; the next finalist is published",
                 id_, finalist.trial);
  }
  End(JobState::kFailed,
      absl::FailedPreconditionError("no worker sent the artifact of a confirmed finalist"));
}

bool Job::HasOutgrown(int index) const {
  const Finalist& finalist = finalists_[index];
  return services_.artifacts->Has(finalist.artifact_digest) &&
         confirmation_->Combined(index).latency_ns <
             incumbent_record_->result.latency_ns * (1 - kOutgrown);
}

void Job::PublishFinalist(int index) {
  publishing_ = true;
  const Finalist& finalist = finalists_[index];
  record::Record record = finalist.last;
  record.id = 0;
  record.result = confirmation_->Combined(index);
  // Rounds out of policy were measured again. What is left is compared with the others of the same
  // rounds, which holds on a machine that is always disturbed, too.
  record.quarantined = false;
  record.quarantine_reason.clear();
  record.created_unix_ms = absl::ToUnixMillis(Now());
  std::shared_ptr<const std::string> bytes = services_.artifacts->Get(finalist.artifact_digest);
  if (bytes == nullptr) {
    publishing_ = false;
    return;  // dropped between two calls; the next tick looks again
  }
  auto published = [self = shared_from_this()](absl::StatusOr<record::Record> stored) {
    self->PostCall([stored = std::move(stored)](Job& job) { job.OnPublished(stored); });
  };
  store::Store* store = services_.store;
  store->PutText(finalist.candidate.space_digest, finalist.space, [](absl::Status) {});
  store->PutArtifact(finalist.artifact_digest, *bytes, [](absl::Status) {});
  // Publishing needs the texts and the artifact: their errors come back as its own.
  store->Append(std::move(record), Fence(),
                [store, published, fence = Fence()](absl::StatusOr<record::Record> stored) mutable {
                  if (!stored.ok()) return published(std::move(stored));
                  const int64_t id = stored->id;
                  store->PublishBest(
                      id, fence,
                      [published, stored = std::move(stored)](absl::Status status) mutable {
                        if (!status.ok()) return published(std::move(status));
                        published(std::move(stored));
                      });
                });
}

void Job::OnPublished(const absl::StatusOr<record::Record>& record) {
  if (state_.state != JobState::kConfirming) return;
  if (!record.ok()) return OnNotStored(record.status());
  state_.best = MakeBest(*record);
  End(cancelled_ ? JobState::kCancelled : JobState::kDone);
}

}  // namespace hone::task

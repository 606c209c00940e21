#include "server/task/confirm_phase.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/record/processes.h"
#include "server/task/confirm_policy.h"
#include "server/task/unmeasured.h"
#include "spdlog/spdlog.h"

namespace hone::task {
namespace {

// An incumbent that wins is published again if it is faster than its record by this share; the
// machine was probably disturbed when the record was measured.
constexpr double kOutgrown = 0.05;
// The rounds of a finalist on a disturbed machine are measured again after a while, at most this
// often in all. Each wait is twice as long as the one before. After that, a disturbed finalist has
// no result in the round, and the round goes on.
constexpr int kNoisyRounds = 3;
constexpr absl::Duration kCalmDown = absl::Seconds(1);
// A wait may take this share of the time that is left, because other processes have to measure,
// too.
constexpr double kTimeToCalmDown = 0.1;
// If no finalist has a result when a user's time limit is over, the round may take this long for
// the first one.
constexpr absl::Duration kFirstResultGrace = absl::Seconds(5);
// If other jobs publish this many bests during the confirmation, the job keeps the last of these.
constexpr int kMostConflicts = 3;

}  // namespace

void ConfirmPhase::Begin(Found found) {
  job_.SetDoing("choosing the finalists");
  if (found.screened.empty()) return Fail(NothingRan(job_));
  StartRounds(ChooseFinalists(job_, task_, std::move(found)), "confirming the finalists");
}

void ConfirmPhase::BeginRevalidation() {
  job_.SetDoing("choosing the schedules to measure again");
  absl::StatusOr<StoredFinalists> stored = FindStoredFinalists(job_, task_);
  if (!stored.ok()) return job_.End(JobState::kFailed, stored.status());
  last_stored_record_ = stored->last_record;
  StartRounds(std::move(stored->finalists), "building the stored candidates again");
}

void ConfirmPhase::StartRounds(Finalists finalists, const std::string& phase) {
  finalists_ = std::move(finalists);
  job_.state().state = JobState::kConfirming;
  job_.SetPhase(phase);
  job_.Save();
  job_.ShowState();
  for (const Finalist& finalist : finalists_.list) {
    if (!finalist.artifact_digest.empty() && !finalist.worker_id.empty()) {
      job_.services().fleet->KeepArtifact(finalist.artifact_digest, finalist.worker_id);
    }
  }
  ChooseDevice();
  confirmation_.emplace(static_cast<int>(finalists_.list.size()), finalists_.incumbent,
                        job_.spec().seed, job_.options().confirmation);
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    confirmation_->AddEarlier(static_cast<int>(i), finalists_.list[i].earlier);
  }
  if (finalists_.untiled >= 0) {
    const bool slow = finalists_.list[finalists_.untiled].is_slow_default;
    confirmation_->SetYardstick(finalists_.untiled, /*competes=*/!slow);
    // Its screening counts as its first process.
    const record::Record& screened = job_.state().default_schedule->record;
    if (slow && !screened.quarantined) {
      confirmation_->AddEarlier(finalists_.untiled, {screened.result});
    }
  }
  if (finalists_.incumbent >= 0 && job_.spec().revalidate == 0) {
    confirmation_->AddEarlier(finalists_.incumbent, {finalists_.incumbent_record->result});
  }
  NextRound();
}

void ConfirmPhase::ChooseDevice() {
  std::map<std::string, int> finalists;  // by the worker that has their artifacts
  for (const Finalist& finalist : finalists_.list) {
    if (finalist.worker_id.empty()) continue;
    const int count = ++finalists[finalist.worker_id];
    if (device_.empty() || count > finalists[device_]) device_ = finalist.worker_id;
  }
  if (device_.empty()) {
    device_ = job_.services().fleet->AnotherRunner(job_.spec().target_key, {});
  }
}

void ConfirmPhase::NextRound() {
  bool late = false;
  if (confirmation_->rounds() > 0) {
    // A run takes about as long as those of the round before.
    const double runs =
        absl::FDivDuration(job_.TimeLeft(), job_.Steady() - round_began_) * in_round_;
    confirmation_->LimitRuns(runs);
    late = runs < confirmation_->remaining();
  }
  const std::vector<int> order = late ? std::vector<int>() : confirmation_->NextRound();
  if (order.empty()) {
    ranking_ = confirmation_->Ranking();
    PreferFasterDefault();
    if (conflicts_ == 0) {
      ReportOnly();
      ReportDefault();
      ReportOwn();
    }
    if (ranking_.empty()) return EndUnconfirmed();
    NoteDisturbance();
    artifact_deadline_ = job_.Steady() + job_.options().artifact_limit;
    return Publish();
  }
  in_round_ = static_cast<int>(order.size());
  reported_ = disturbed_in_round_ = 0;
  ShowRound();
  round_began_ = job_.Steady();
  for (const int index : order) Submit(index);
}

void ConfirmPhase::EndUnconfirmed() {
  if (!confirmation_->AnyIsDisturbed()) {
    return Fail(absl::FailedPreconditionError(
        "no finalist could be confirmed: each failed when it was measured again"));
  }
  if (finalists_.incumbent_record) return Finish(*finalists_.incumbent_record);
  EndUnconfirmed(
      absl::StrCat("other work disturbed every finalist that was measured in time; the "
                   "last: ",
                   job_.state().disturbance));
}

void ConfirmPhase::EndUnconfirmed(const std::string& reason) {
  const std::string why = absl::StrCat("no best could be confirmed: ", reason);
  if (job_.spec().revalidate > 0) return Fail(absl::FailedPreconditionError(why));
  if (finalists_.incumbent_record) {
    job_.state().note = absl::StrCat("the best stays as it was: ", reason);
    return Finish(*finalists_.incumbent_record);
  }
  // The job ends with the fastest candidate of its search, which is shown as not confirmed.
  job_.state().best.reset();
  job_.state().note = why;
  job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kDone);
}

void ConfirmPhase::PreferFasterDefault() {
  const int untiled = finalists_.untiled;
  if (untiled < 0 || ranking_.empty() || ranking_[0] == finalists_.incumbent) return;
  Finalist& finalist = finalists_.list[untiled];
  if (finalist.last.result.latency_ns <= 0 || !confirmation_->HasResult(untiled)) return;
  const record::MeasureResult own = confirmation_->Combined(untiled);
  const record::MeasureResult winner = confirmation_->Combined(ranking_[0]);
  const int enough = std::min(record::ProcessesOf(winner), record::kProcesses);
  if (record::ProcessesOf(own) < enough ||
      record::SteadyLatencyNs(own) >= record::SteadyLatencyNs(winner)) {
    return;
  }
  finalist.is_own = true;
  std::erase(ranking_, untiled);
  ranking_.insert(ranking_.begin(), untiled);
}

void ConfirmPhase::NoteDisturbance() {
  if (job_.spec().revalidate > 0) return;
  if (!KeepsIncumbent()) return NoteUnconfirmedFastest();
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const bool own = finalists_.list[i].is_own && static_cast<int>(i) != finalists_.incumbent;
    if (own && confirmation_->HasResult(static_cast<int>(i))) return;
  }
  if (!confirmation_->AnyIsDisturbed()) return;
  job_.state().note = absl::StrCat(
      "other work disturbed every measurement of this run's finalists, so that none could be "
      "confirmed; the last: ",
      job_.state().disturbance);
}

void ConfirmPhase::NoteUnconfirmedFastest() {
  const Finalist& fastest = finalists_.list[0];
  if (!fastest.is_own || fastest.is_default || !confirmation_->IsUnmeasured(0)) return;
  job_.state().note =
      absl::StrCat("trial ", fastest.trial,
                   " was the fastest of the search, but it could not be confirmed in time");
  if (!job_.state().disturbance.empty()) {
    absl::StrAppend(&job_.state().note, "; other work disturbed the measurements, the last ",
                    job_.state().disturbance);
  }
}

void ConfirmPhase::ShowRound() {
  std::string phase =
      absl::StrCat("round ", confirmation_->rounds(), ": ", reported_ - disturbed_in_round_, " of ",
                   in_round_, " confirmed");
  if (disturbed_in_round_ > 0) absl::StrAppend(&phase, ", ", disturbed_in_round_, " disturbed");
  job_.SetPhase(phase);
  job_.ShowState();
}

void ConfirmPhase::CutLateRound() {
  if (job_.TimeLeft() > absl::ZeroDuration()) return;
  if (!confirmation_->CutRound()) {
    if (const std::string why = WhyNotWait(); !why.empty()) EndUnconfirmed(why);
    return;
  }
  ++cuts_;
  waiting_.clear();
  job_.services().fleet->CancelJob(job_.id());
  NextRound();
}

std::string ConfirmPhase::WhyNotWait() const {
  const bool limited = job_.spec().max_time > absl::ZeroDuration();
  if (!limited && !job_.state().cancelled) return "";
  if (const std::string why = WhyNoWorker(job_); !why.empty()) return why;
  const absl::Duration waited = std::min(-job_.TimeLeft(), job_.Steady() - round_began_);
  if (!limited || waited < kFirstResultGrace) return "";
  return "no finalist was measured in time; give it more time, or stop other work on that machine";
}

void ConfirmPhase::Submit(int index) {
  const Finalist& finalist = finalists_.list[index];
  fleet::WorkItem item = task_.MakeItem(finalist.candidate, finalist.space);
  // The samples of a screening suffice for a slow default.
  if (finalist.is_slow_default) {
    item.policy.name = ConfirmPolicy().name;
  } else {
    item.policy = ConfirmPolicy();
  }
  item.best_latency_ns = nullptr;  // no finalist is stopped early
  // Runs its artifact if the device is known to have it; otherwise builds the finalist again.
  const bool there = !device_.empty() && finalist.worker_id == device_;
  if (there || job_.services().artifacts->Has(finalist.artifact_digest)) {
    item.artifact_digest = finalist.artifact_digest;
    item.builder = finalist.builder;
  }
  item.worker_id = device_;
  task_.Measure(
      std::move(item), task_.MakeRecord(finalist.candidate, finalist.trial), /*event=*/-1,
      [this, index, cuts = cuts_](const record::Record& record, const std::string& worker) {
        if (cuts == cuts_) OnRound(index, record, worker);
      },
      [this, index, cuts = cuts_](const absl::Status& status) {
        if (cuts == cuts_) OnError(index, status);
      });
}

void ConfirmPhase::OnRound(int index, const record::Record& record, const std::string& worker_id) {
  job_.SetDoing("confirming the finalists");
  if (job_.state().state != JobState::kConfirming) return;
  Finalist& finalist = finalists_.list[index];
  const bool ok = record.result.outcome == record::Outcome::kOk;
  device_ = worker_id;  // differs from the previous one if that was lost
  const absl::Duration calm_down = kCalmDown * (1 << finalist.noisy_rounds);
  const bool may_wait = calm_down < job_.TimeLeft() * kTimeToCalmDown;
  if (record.quarantined && finalist.noisy_rounds < kNoisyRounds && may_wait) {
    ++finalist.noisy_rounds;
    waiting_.push_back({index, job_.Steady() + calm_down});
    job_.SetPhase(absl::StrCat("waiting for a quieter machine: ", job_.state().disturbance));
    return job_.ShowState();
  }
  if (!ok && !finalist.artifact_digest.empty() && !finalist.rebuilt &&
      confirmation_->rounds() == 1) {
    // The artifact may not have reached the device, so the finalist is built from its trace, once.
    finalist.artifact_digest.clear();
    finalist.rebuilt = true;
    return Submit(index);
  }
  if (ok) {
    // Later rounds run the artifact of this one.
    finalist.artifact_digest = record.result.artifact_digest;
    finalist.builder = fleet::BuilderOf(record.environment);
    job_.services().fleet->KeepArtifact(finalist.artifact_digest, worker_id);
    finalist.worker_id = worker_id;
    finalist.last = record;
  }
  if (job_.spec().revalidate > 0 && confirmation_->rounds() == 1) {
    if (const std::string why = WhyStoredIsWrong(finalist, record.result); !why.empty()) {
      spdlog::warn("job {}: the stored records of trial {} are quarantined: {}", job_.id(),
                   finalist.trial, why);
      task_.Quarantine(finalist.candidate, last_stored_record_,
                       absl::StrCat("revalidation: ", why));
    }
  }
  if (!ok && task_.IsOnly(finalist.candidate)) {
    finalist.last = record::Record();
    job_.state().given = task_.MakeBest(record);
  }
  // A task of a network needs a kernel even on a machine that is always disturbed, and has no
  // leader to fall back on.
  if (ok && record.quarantined && job_.spec().parent.empty()) {
    confirmation_->ReportDisturbed(index);
    ++disturbed_in_round_;
  } else {
    confirmation_->Report(index, record.result);
  }
  ++reported_;
  if (job_.spec().revalidate > 0) CountConfirmed();
  if (confirmation_->RoundIsComplete()) return NextRound();
  ShowRound();
}

void ConfirmPhase::CountConfirmed() {
  job_.state().trials = 0;
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    if (confirmation_->HasResult(static_cast<int>(i))) ++job_.state().trials;
  }
}

void ConfirmPhase::OnError(int index, const absl::Status& status) {
  if (job_.state().state != JobState::kConfirming) return;
  if (absl::IsResourceExhausted(status)) return waiting_.push_back({index, job_.Steady()});
  Finalist& finalist = finalists_.list[index];
  if (!absl::IsNotFound(status) || finalist.rebuilt) return Fail(status);
  finalist.artifact_digest.clear();
  finalist.rebuilt = true;
  Submit(index);
}

void ConfirmPhase::ReportOnly() {
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    record::Record record = finalists_.list[i].last;
    const bool measured = confirmation_->HasResult(static_cast<int>(i));
    if (!measured || !task_.IsOnly(record.candidate) || !job_.state().given) continue;
    const record::BuildFacts facts = job_.state().given->record.result.facts;  // of the build
    record.result = confirmation_->Combined(static_cast<int>(i));
    record.result.facts = facts;
    job_.state().given = task_.MakeBest(record);
  }
}

void ConfirmPhase::ReportOwn() {
  // Takes the job's first candidate in the ranking, or else the fastest that dropped out.
  std::optional<record::Record> best;
  const auto consider = [&](int index) {
    const Finalist& finalist = finalists_.list[index];
    if (!finalist.is_own || finalist.is_wrong || finalist.last.result.latency_ns <= 0 ||
        !confirmation_->HasResult(index)) {
      return;
    }
    record::Record record = finalist.last;
    record.result = confirmation_->Combined(index);
    if (!best || record::SteadyLatencyNs(record.result) < record::SteadyLatencyNs(best->result)) {
      best = std::move(record);
    }
  };
  for (size_t rank = 0; rank < ranking_.size() && !best; ++rank) consider(ranking_[rank]);
  if (!best) {
    for (size_t i = 0; i < finalists_.list.size(); ++i) consider(static_cast<int>(i));
  }
  job_.state().own_best.reset();
  if (best) job_.state().own_best = task_.MakeBest(*best);
}

void ConfirmPhase::ReportDefault() {
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const Finalist& finalist = finalists_.list[i];
    if (!finalist.is_default || !job_.state().default_schedule ||
        finalist.last.result.latency_ns <= 0 || !confirmation_->HasResult(static_cast<int>(i))) {
      continue;
    }
    record::Record record = job_.state().default_schedule->record;
    record.policy = finalist.last.policy;
    record.result = confirmation_->Combined(static_cast<int>(i));
    job_.state().default_schedule = task_.MakeBest(record);
  }
}

void ConfirmPhase::Tick() {
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    job_.Steady() >= waiting.until ? Submit(waiting.finalist) : waiting_.push_back(waiting);
  }
  if (!ranking_.empty()) return Publish();
  if (confirmation_ && !confirmation_->RoundIsComplete()) CutLateRound();
}

bool ConfirmPhase::KeepsIncumbent() const {
  const int index = ranking_[0];
  if (index != finalists_.incumbent) return false;
  // A revalidated incumbent is published with its new results.
  if (job_.spec().revalidate > 0 && conflicts_ == 0) return false;
  const bool outgrown = job_.services().artifacts->Has(finalists_.list[index].artifact_digest) &&
                        confirmation_->Combined(index).latency_ns <
                            finalists_.incumbent_record->result.latency_ns * (1 - kOutgrown);
  return !outgrown;
}

void ConfirmPhase::Publish() {
  job_.SetDoing("publishing the best candidate");
  if (publishing_) return;
  if (KeepsIncumbent()) return Finish(*finalists_.incumbent_record);
  // Waits for the winner's artifact. After the deadline, publishes the first finalist whose
  // artifact has arrived.
  const JobServices& services = job_.services();
  for (const int index : ranking_) {
    const Finalist& finalist = finalists_.list[index];
    if (services.artifacts->Has(finalist.artifact_digest)) {
      if (Check(index) == SpotCheck::Verdict::kConfirmed) PublishFinalist(index);
      return;
    }
    // This is repeated because the worker may have been restarted.
    services.fleet->KeepArtifact(finalist.artifact_digest, finalist.worker_id);
    if (job_.Steady() < artifact_deadline_) {
      return job_.SetPhase("waiting for the winner's artifact");
    }
    spdlog::warn("job {}: the artifact of trial {} did not arrive; the next finalist is published",
                 job_.id(), finalist.trial);
  }
  job_.End(JobState::kFailed,
           absl::FailedPreconditionError("no worker sent the artifact of a confirmed finalist"));
}

SpotCheck::Verdict ConfirmPhase::Check(int index) {
  const Finalist& finalist = finalists_.list[index];
  SpotCheck& check = checks_
                         .try_emplace(index, finalist.worker_id,
                                      record::SteadyLatencyNs(confirmation_->Combined(index)))
                         .first->second;
  if (check.verdict() != SpotCheck::Verdict::kOpen || check.IsWaiting(job_.Steady())) {
    return check.verdict();
  }
  if (check.IsLate(job_.Steady())) {
    spdlog::warn("job {}: no other worker checked trial {} in time", job_.id(), finalist.trial);
    check.Close();
  } else {
    const std::string other =
        job_.services().fleet->AnotherRunner(job_.spec().target_key, check.asked());
    if (other.empty()) {
      check.Close();
    } else {
      AskWorker(index, check, other);
    }
  }
  if (check.verdict() == SpotCheck::Verdict::kRejected) {
    Discard(index, check);
    return SpotCheck::Verdict::kRejected;
  }
  return check.verdict();
}

void ConfirmPhase::AskWorker(int index, SpotCheck& check, const std::string& worker) {
  const Finalist& finalist = finalists_.list[index];
  fleet::WorkItem item = task_.MakeItem(finalist.candidate, finalist.space);
  item.policy = finalist.last.policy;
  item.best_latency_ns = nullptr;
  item.artifact_digest = finalist.artifact_digest;
  item.builder = finalist.builder;
  item.worker_id = worker;
  item.avoid = check.asked();
  check.Ask(worker, job_.Steady() + job_.options().spot_check_limit);
  job_.SetPhase(absl::StrCat("worker ", worker, " checks the winner"));
  job_.ShowState();
  task_.Measure(
      std::move(item), task_.MakeRecord(finalist.candidate, finalist.trial), /*event=*/-1,
      [this, index](const record::Record& record, const std::string& by) {
        OnSpotCheck(index, record, by);
      },
      [](const absl::Status&) {});  // after the deadline, others are asked
}

void ConfirmPhase::OnSpotCheck(int index, const record::Record& record,
                               const std::string& worker_id) {
  if (job_.state().state != JobState::kConfirming) return;
  SpotCheck& check = checks_.at(index);
  if (check.verdict() != SpotCheck::Verdict::kOpen) return;
  const std::string objection = check.objection();
  record::MeasureResult seen = record.result;
  if (record.quarantined) seen.latency_ns = 0;  // its output counts, its latency does not
  check.Report(job_.Steady(), worker_id, seen);
  if (check.objection() != objection) {
    spdlog::warn("job {}: trial {}: {}", job_.id(), finalists_.list[index].trial,
                 check.objection());
  }
  if (check.verdict() == SpotCheck::Verdict::kRejected) return Discard(index, check);
  if (const std::string outvoted = check.Outvoted(); !outvoted.empty()) {
    job_.services().fleet->Flag(outvoted, check.objection());
  }
  Publish();
}

void ConfirmPhase::Discard(int index, const SpotCheck& check) {
  const std::string why = check.objection();
  job_.services().fleet->Flag(check.claimant(),
                              absl::StrCat("another worker found its result wrong: ", why));
  task_.Quarantine(finalists_.list[index].candidate, finalists_.list[index].last.id,
                   absl::StrCat("another worker disagrees: ", why));
  finalists_.list[index].is_wrong = true;
  std::erase(ranking_, index);
  if (conflicts_ == 0) ReportOwn();
  if (ranking_.empty()) job_.state().own_best.reset();
  artifact_deadline_ = job_.Steady() + job_.options().artifact_limit;
  if (!ranking_.empty()) return Publish();
  job_.End(JobState::kFailed, absl::FailedPreconditionError(
                                  absl::StrCat("a second worker rejected every finalist: ", why)));
}

void ConfirmPhase::PublishFinalist(int index) {
  const Finalist& finalist = finalists_.list[index];
  const std::shared_ptr<const std::string> bytes =
      job_.services().artifacts->Get(finalist.artifact_digest);
  if (bytes == nullptr) return;  // evicted between two calls; the next tick retries
  publishing_ = true;
  record::Record record = finalist.last;
  record.id = 0;
  record.result = confirmation_->Combined(index);
  // The last process may have been disturbed; the result is that of the others.
  record.quarantined = false;
  record.quarantine_reason.clear();
  record.created_unix_ms = absl::ToUnixMillis(job_.Now());
  const auto self = job_.shared_from_this();
  auto published = [this, index, self](absl::StatusOr<record::Record> stored) {
    self->Post([this, index, stored = std::move(stored)] { OnPublished(index, stored); });
  };
  const int64_t incumbent = finalists_.incumbent_record ? finalists_.incumbent_record->id : 0;
  store::Store* const store = job_.services().store;
  // These writes may ignore errors, because publishing fails without the text and the artifact.
  store->PutText(finalist.candidate.space_digest, finalist.space, [](absl::Status) {});
  store->PutArtifact(finalist.artifact_digest, *bytes, [](absl::Status) {});
  store->Append(std::move(record), job_.Fence(),
                [this, index, self, store, published, incumbent,
                 fence = job_.Fence()](absl::StatusOr<record::Record> stored) mutable {
                  if (!stored.ok()) return published(std::move(stored));
                  self->Post([this, index, record = *stored] { OnStored(index, record); });
                  const int64_t id = stored->id;
                  store->PublishBest(
                      id, incumbent, fence,
                      [published, stored = std::move(stored)](absl::Status status) mutable {
                        if (!status.ok()) return published(std::move(status));
                        published(std::move(stored));
                      });
                });
}

void ConfirmPhase::OnStored(int index, const record::Record& record) {
  if (job_.state().state != JobState::kConfirming || !finalists_.list[index].is_own) return;
  // The record with the results of all rounds, which hone pin can publish if this job must not.
  job_.state().own_best = task_.MakeBest(record);
}

void ConfirmPhase::OnPublished(int index, const absl::StatusOr<record::Record>& record) {
  if (job_.state().state != JobState::kConfirming) return;
  if (absl::IsAlreadyExists(record.status())) return ConfirmAgain(index, record.status());
  if (!record.ok()) return job_.OnNotStored(record.status());
  finalists_.pin = store::Pin();  // a pinned best is not replaced
  Finish(*record);
}

void ConfirmPhase::ConfirmAgain(int winner, const absl::Status& conflict) {
  job_.SetDoing("confirming the winner again");
  publishing_ = false;
  FindIncumbent(job_, task_, finalists_);
  const bool gives_up = ++conflicts_ > kMostConflicts || finalists_.pin.unix_ms > 0;
  spdlog::info("job {}: {}", job_.id(), std::string(conflict.message()));
  if (finalists_.incumbent < 0) {  // it was withdrawn
    return gives_up ? Fail(conflict) : Publish();
  }
  if (gives_up || finalists_.incumbent == winner) return Finish(*finalists_.incumbent_record);
  ranking_.clear();
  confirmation_->BeginAgain(winner, finalists_.incumbent);
  NextRound();
}

void ConfirmPhase::Finish(const record::Record& best) {
  job_.state().best = task_.MakeBest(best, finalists_.pin);
  job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kDone);
}

void ConfirmPhase::Fail(const absl::Status& why) {
  job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kFailed, why);
}

}  // namespace hone::task

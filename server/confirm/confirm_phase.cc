#include "server/confirm/confirm_phase.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/disturbed.h"
#include "common/record/processes.h"
#include "server/confirm/confirm_policy.h"
#include "server/job/actor/unmeasured.h"
#include "server/job/search/search_options.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// An incumbent that wins is published again if it is faster than its record by this share; the
// machine was probably disturbed when the record was measured. So is one that was known to be.
constexpr double kOutgrown = 0.05;
// Users are told if the best that they know is replaced, and was this much slower than its record
// when it was measured again.
constexpr double kOverrated = 0.1;

// The rounds of a finalist on a disturbed machine are measured again after a while, at most this
// often in all. Each wait is twice as long as the one before. After that, a disturbed finalist has
// no result in the round, and the round goes on.
constexpr int kNoisyRounds = 3;
constexpr absl::Duration kCalmDown = absl::Seconds(1);
// A wait may take this share of the time that is left, because other processes have to measure,
// too.
constexpr double kTimeToCalmDown = 0.1;
// If other jobs publish this many bests during the confirmation, the job keeps the last of these.
constexpr int kMostConflicts = 3;
// A disturbed finalist wins if it took at most this share of the winner's time.
constexpr double kSurelyFaster = 0.8;

}  // namespace

void ReportOwnBest(JobActor& job, const JobTask& task, const Finalists& finalists,
                   const Confirmation& results, const std::vector<int>& ranking) {
  // Takes the job's first candidate in the ranking, or else the fastest that dropped out.
  std::optional<record::Record> best;
  const auto consider = [&](int index) {
    const Finalist& finalist = finalists.list[index];
    if (!finalist.is_own || finalist.is_wrong || finalist.last.result.latency_ns <= 0 ||
        !results.HasResult(index)) {
      return;
    }
    record::Record record = finalist.last;
    record.result = results.Combined(index);
    // The last process may have been disturbed. The result then combines the other processes, and
    // no record in the store has it.
    if (record.quarantined) {
      record.id = 0;
      record.quarantined = false;
      record.quarantine_reason.clear();
    }
    if (!best || record::SteadyLatencyNs(record.result) < record::SteadyLatencyNs(best->result)) {
      best = std::move(record);
    }
  };
  for (size_t rank = 0; rank < ranking.size() && !best; ++rank) consider(ranking[rank]);
  if (!best) {
    for (size_t i = 0; i < finalists.list.size(); ++i) consider(static_cast<int>(i));
  }
  job.state().own_best.reset();
  if (best) job.state().own_best = task.MakeBest(*best);
}

void Publication::Begin(std::vector<int> ranking, const Confirmation& results, bool rematch) {
  ranking_ = std::move(ranking);
  results_ = &results;
  rematch_ = rematch;
  AddNotes();
  artifact_deadline_ = job_.Steady() + job_.options().artifact_limit;
  Continue();
}

bool Publication::KeepsIncumbent() const {
  const int index = ranking_[0];
  if (index != finalists_.incumbent) return false;
  // A revalidated incumbent is published with its new results.
  if (job_.spec().revalidate > 0 && !rematch_) return false;
  const Finalist& finalist = finalists_.list[index];
  const record::MeasureResult& stored = finalists_.incumbent_record->result;
  // Its record says what it was measured on.
  const bool outgrown =
      !task_.HasSameInputs(*finalists_.incumbent_record) ||
      results_->Combined(index).latency_ns < stored.latency_ns * (1 - kOutgrown) ||
      (record::IsOnlyDisturbed(stored) && finalist.is_quiet);
  return !outgrown || !job_.services().artifacts->Has(finalist.artifact_digest);
}

void Publication::AddNotes() {
  if (rematch_ || job_.spec().revalidate > 0) return;
  std::string& note = job_.state().note;
  const std::string of_search = std::exchange(note, "");
  NoteDisturbance();
  if (of_search.empty()) return;
  job_.AddNote(std::exchange(note, of_search));
}

void Publication::NoteDisturbance() {
  if (!KeepsIncumbent()) {
    NoteSlowerThanLeader();
    NoteOverratedIncumbent();
    return NoteUnconfirmedFastest();
  }
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const bool own = finalists_.list[i].is_own && static_cast<int>(i) != finalists_.incumbent;
    if (own && results_->HasResult(static_cast<int>(i))) return;
  }
  if (!results_->AnyIsDisturbed()) return;
  job_.state().note = absl::StrCat(
      "other work disturbed every measurement of this run's finalists, so that none could be "
      "confirmed; the last: ",
      job_.state().disturbance);
}

void Publication::NoteSlowerThanLeader() {
  const std::optional<Best>& leader = job_.state().best;
  if (!leader || leader->record.id > 0 || leader->record.job_id != job_.id()) return;
  const std::optional<Best>& own = job_.state().own_best;
  if (!own) return;
  const double now_ns = record::SteadyLatencyNs(own->record.result);
  const double shown_ns = record::SteadyLatencyNs(leader->record.result);
  if (now_ns < shown_ns * (1 + kOverrated)) return;
  job_.state().note = absl::StrFormat(
      "the search measured trial %d at %.4g us; in the confirmation, the best candidate of this "
      "job "
      "took %.4g us, probably because the machine was slower by then",
      leader->record.trial, shown_ns / 1e3, now_ns / 1e3);
}

void Publication::NoteOverratedIncumbent() {
  if (finalists_.incumbent < 0 || !task_.HasSameInputs(*finalists_.incumbent_record)) return;
  const record::Record& last = finalists_.list[finalists_.incumbent].last;
  if (last.job_id != job_.id() || last.quarantined) return;  // it was not measured now
  const double now_ns = record::SteadyLatencyNs(last.result);
  const double before_ns = record::SteadyLatencyNs(finalists_.incumbent_record->result);
  if (now_ns < before_ns * (1 + kOverrated)) return;
  job_.state().note = absl::StrFormat(
      "the earlier best, of job %s, was measured again: it took %.4g us, and not %.4g us as before",
      finalists_.incumbent_record->job_id, now_ns / 1e3, before_ns / 1e3);
}

void Publication::NoteUnconfirmedFastest() {
  const Finalist& winner = finalists_.list[ranking_[0]];
  if (winner.is_own && winner.is_disturbed && !winner.is_quiet) {
    job_.state().note =
        absl::StrCat("other work disturbed every measurement of trial ", winner.trial,
                     ", which was faster than the other finalists even so");
    return;
  }
  int index = -1;
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const Finalist& finalist = finalists_.list[i];
    if (!finalist.is_own || finalist.is_default) continue;
    if (index >= 0 && finalist.screened_ns >= finalists_.list[index].screened_ns) continue;
    index = static_cast<int>(i);
  }
  const double winner_ns = record::SteadyLatencyNs(results_->Combined(ranking_[0]));
  if (index < 0 || !results_->IsUnmeasured(index)) return;
  const Finalist& fastest = finalists_.list[index];
  if (fastest.screened_ns > winner_ns) return;
  job_.state().note = absl::StrCat("trial ", fastest.trial,
                                   " was the fastest of the search, but it could not be confirmed");
  if (const std::string why = WhyNoWorker(job_); !why.empty()) {
    absl::StrAppend(&job_.state().note, "; ", why);
  } else if (!job_.state().disturbance.empty()) {
    absl::StrAppend(&job_.state().note, "; other work disturbed the measurements: the last time, ",
                    job_.state().disturbance);
  } else {
    absl::StrAppend(&job_.state().note, "; its measurement did not end in time");
  }
}

void Publication::Continue() {
  job_.SetDoing("publishing the best candidate");
  if (publishing_) return;
  if (KeepsIncumbent()) return FinishWithIncumbent();
  // Waits for the winner's artifact. After the deadline, publishes the first finalist whose
  // artifact has arrived.
  const JobServices& services = job_.services();
  for (const int index : ranking_) {
    const Finalist& finalist = finalists_.list[index];
    // An incumbent that was compared by its published result stays as it is.
    const bool ran = finalist.last.result.latency_ns > 0;
    if (index == finalists_.incumbent && !ran) return FinishWithIncumbent();
    if (services.artifacts->Has(finalist.artifact_digest)) {
      if (Check(index) == SpotCheck::Verdict::kConfirmed) PublishFinalist(index);
      return;
    }
    // This is repeated because the worker may have been restarted.
    services.fleet->KeepArtifact(finalist.artifact_digest, finalist.worker_id);
    const bool may_arrive =
        services.fleet->Answers(finalist.worker_id) || job_.TimeLeft() > absl::ZeroDuration();
    if (may_arrive && job_.Steady() < artifact_deadline_) {
      return job_.SetPhase("waiting for the winner's artifact");
    }
    spdlog::warn("job {}: the artifact of {} did not arrive", job_.id(), NameOf(finalist));
  }
  EndUnpublished();
}

void Publication::EndUnpublished() {
  // Without its artifact, the best candidate can be neither published nor pinned.
  job_.state().own_best.reset();
  const std::string worker = WhyNoWorker(job_);
  const std::string why =
      absl::StrCat("no worker sent the artifact of a finalist, so that no best could be published",
                   worker.empty() ? "" : "; ", worker);
  if (!job_.state().cancelled) {
    return job_.End(JobState::kFailed, absl::FailedPreconditionError(why));
  }
  job_.AddNote(why);
  job_.End(JobState::kCancelled);
}

SpotCheck::Verdict Publication::Check(int index) {
  const Finalist& finalist = finalists_.list[index];
  SpotCheck& check = checks_
                         .try_emplace(index, finalist.worker_id,
                                      record::SteadyLatencyNs(results_->Combined(index)))
                         .first->second;
  if (check.verdict() != SpotCheck::Verdict::kOpen) return check.verdict();
  if (check.IsWaiting(job_.Steady()) && !job_.services().fleet->Answers(check.asked().back())) {
    spdlog::warn("job {}: worker {}, which checks {}, does not answer", job_.id(),
                 check.asked().back(), NameOf(finalist));
    check.StopWaiting();
  }
  const bool cut = job_.state().cancelled && job_.TimeLeft() <= absl::ZeroDuration();
  if (check.IsWaiting(job_.Steady()) && !cut) return check.verdict();
  if (cut || check.IsLate(job_.Steady())) {
    if (check.asked().size() > 1) {
      spdlog::warn("job {}: no other worker checked {} in time", job_.id(), NameOf(finalist));
    }
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

void Publication::AskWorker(int index, SpotCheck& check, const std::string& worker) {
  const Finalist& finalist = finalists_.list[index];
  fleet::WorkItem item = task_.MakeItem(finalist.candidate, finalist.space);
  item.policy = finalist.last.policy;
  item.best_latency_ns = nullptr;
  item.artifact_digest = finalist.artifact_digest;
  item.builder = finalist.builder;
  item.worker_id = worker;
  item.avoid = check.asked();
  check.Ask(worker, job_.Steady() + job_.options().spot_check_limit);
  const size_t asked = check.asked().size();
  job_.SetPhase(absl::StrCat("worker ", worker, " checks the winner"));
  job_.ShowState();
  task_.Measure(
      std::move(item), MakeRecord(task_, finalist), /*event=*/-1,
      /*earlier_ns=*/0,
      [this, index, asked](const record::Record& record, const std::string& by) {
        // A worker that was silent may answer after another one was asked.
        if (asked == checks_.at(index).asked().size()) OnSpotCheck(index, record, by);
      },
      [](const absl::Status&) {});  // after the deadline, others are asked
}

void Publication::OnSpotCheck(int index, const record::Record& record,
                              const std::string& worker_id) {
  // The publication may have been closed meanwhile, for another comparison.
  if (job_.state().state != JobState::kConfirming || !IsOpen()) return;
  SpotCheck& check = checks_.at(index);
  if (check.verdict() != SpotCheck::Verdict::kOpen) return;
  const std::string objection = check.objection();
  record::MeasureResult seen = record.result;
  if (record.quarantined) seen.latency_ns = 0;  // its output counts, its latency does not
  check.Report(job_.Steady(), worker_id, seen);
  if (check.objection() != objection) {
    spdlog::warn("job {}: {}: {}", job_.id(), NameOf(finalists_.list[index]), check.objection());
  }
  if (check.verdict() == SpotCheck::Verdict::kRejected) return Discard(index, check);
  if (const std::string outvoted = check.Outvoted(); !outvoted.empty()) {
    job_.services().fleet->Flag(outvoted, check.objection());
  }
  Continue();
}

void Publication::Discard(int index, const SpotCheck& check) {
  const std::string why = check.objection();
  job_.services().fleet->Flag(check.claimant(),
                              absl::StrCat("another worker found its result wrong: ", why));
  task_.Quarantine(finalists_.list[index].candidate, finalists_.list[index].last.id,
                   absl::StrCat("another worker disagrees: ", why));
  finalists_.list[index].is_wrong = true;
  std::erase(ranking_, index);
  if (!rematch_) ReportOwnBest(job_, task_, finalists_, *results_, ranking_);
  if (ranking_.empty()) job_.state().own_best.reset();
  artifact_deadline_ = job_.Steady() + job_.options().artifact_limit;
  if (!ranking_.empty()) return Continue();
  job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kFailed,
           absl::AbortedError(absl::StrCat("a second worker rejected every finalist: ", why)));
}

void Publication::PublishFinalist(int index) {
  const Finalist& finalist = finalists_.list[index];
  const std::shared_ptr<const std::string> bytes =
      job_.services().artifacts->Get(finalist.artifact_digest);
  if (bytes == nullptr) return;  // evicted between two calls; the next tick retries
  publishing_ = true;
  record::Record record = finalist.last;
  record.id = 0;
  record.result = results_->Combined(index);
  if (finalist.is_disturbed && !finalist.is_quiet) record.result.detail = record::kOnlyDisturbed;
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

void Publication::OnStored(int index, const record::Record& record) {
  if (job_.state().state != JobState::kConfirming || !finalists_.list[index].is_own) return;
  // The record with the results of all rounds, which hone pin can publish if this job must not.
  job_.state().own_best = task_.MakeBest(record);
}

void Publication::OnPublished(int index, const absl::StatusOr<record::Record>& record) {
  if (job_.state().state != JobState::kConfirming) return;
  if (absl::IsAlreadyExists(record.status())) {
    publishing_ = false;
    return on_conflict_(index, record.status());
  }
  if (!record.ok()) return job_.OnNotStored(record.status());
  finalists_.pin = store::Pin();  // a pinned best is not replaced
  Finish(*record);
}

void Publication::FinishWithIncumbent() {
  record::Record best = *finalists_.incumbent_record;
  // Another job may have published a faster one during the confirmation.
  absl::StatusOr<store::BestRow> row = task_.PublishedBest();
  if (row.ok()) {
    best = std::move(row->record);
    finalists_.pin = row->pin;
  }
  Finish(best);
}

void Publication::Finish(const record::Record& best) {
  JobSnapshot& state = job_.state();
  state.best = task_.MakeBest(best, finalists_.pin);
  // An own best that stays published keeps its latency. A pinned one may be another candidate.
  if (state.own_best && best.job_id == job_.id() &&
      state.own_best->record.candidate == best.candidate) {
    state.own_best = state.best;
  }
  job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kDone);
}

void ConfirmPhase::Begin(Found found) {
  job_.SetDoing("choosing the finalists");
  if (found.screened.empty()) return Fail(NothingRan(job_));
  if (found.untiled) screened_default_ = found.untiled->record;
  known_default_ = std::move(found.known_default);
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
    if (slow && !screened_default_->quarantined) {
      confirmation_->AddEarlier(finalists_.untiled, {screened_default_->result});
    }
  }
  if (job_.spec().revalidate == 0) AddStoredIncumbent();
  NextRound();
}

void ConfirmPhase::AddStoredIncumbent() {
  // A latency on other inputs says nothing about these: the incumbent is measured again.
  if (finalists_.incumbent < 0 || record::IsOnlyDisturbed(finalists_.incumbent_record->result) ||
      !task_.HasSameInputs(*finalists_.incumbent_record)) {
    return;
  }
  confirmation_->AddEarlier(finalists_.incumbent, {finalists_.incumbent_record->result});
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
  if (order.empty()) return EndRounds();
  in_round_ = static_cast<int>(order.size());
  reported_ = disturbed_in_round_ = 0;
  ShowRound();
  round_began_ = job_.Steady();
  for (const int index : order) Submit(index);
}

void ConfirmPhase::EndRounds() {
  std::vector<int> ranking = confirmation_->Ranking();
  PreferFasterDefault(ranking);
  PreferFasterDisturbed(ranking);
  const bool rematch = conflicts_ > 0;
  if (!rematch) {
    ReportOnly();
    ReportDefault(ranking);
    ReportOwnBest(job_, task_, finalists_, *confirmation_, ranking);
  }
  if (ranking.empty()) return EndUnconfirmed();
  if (job_.spec().revalidate > 0 && job_.spec().unpublished) {
    job_.state().best.reset();
    return job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kDone);
  }
  if (job_.spec().revalidate > 0 && finalists_.incumbent >= 0 &&
      confirmation_->IsUnmeasured(finalists_.incumbent)) {
    job_.AddNote(absl::StrCat("the best stays as it was, because it could not be measured again: ",
                              job_.state().disturbance.empty()
                                  ? "its measurement did not end in time"
                                  : job_.state().disturbance));
    return publication_.FinishWithIncumbent();
  }
  publication_.Begin(std::move(ranking), *confirmation_, rematch);
}

void ConfirmPhase::EndUnconfirmed() {
  if (!confirmation_->AnyIsDisturbed()) {
    return Fail(absl::FailedPreconditionError(
        "no finalist could be confirmed: each failed when it was measured again"));
  }
  if (finalists_.incumbent_record) return publication_.FinishWithIncumbent();
  EndUnconfirmed(absl::StrCat("other work disturbed every measurement of the finalists; the last: ",
                              job_.state().disturbance));
}

void ConfirmPhase::EndUnconfirmed(const std::string& reason) {
  const std::string why = absl::StrCat("no best could be confirmed: ", reason);
  if (job_.spec().revalidate > 0) return Fail(absl::FailedPreconditionError(why));
  if (finalists_.incumbent_record) {
    job_.AddNote(absl::StrCat("the best stays as it was: ", reason));
    return publication_.FinishWithIncumbent();
  }
  // The job ends with the fastest candidate of its search, which is shown as not confirmed.
  job_.state().best.reset();
  job_.AddNote(why);
  job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kDone);
}

void ConfirmPhase::PreferFasterDefault(std::vector<int>& ranking) {
  const int untiled = finalists_.untiled;
  if (untiled < 0 || ranking.empty() || ranking[0] == finalists_.incumbent) return;
  Finalist& finalist = finalists_.list[untiled];
  if (finalist.last.result.latency_ns <= 0 || !confirmation_->HasResult(untiled)) return;
  const record::MeasureResult own = confirmation_->Combined(untiled);
  const record::MeasureResult winner = confirmation_->Combined(ranking[0]);
  const int enough = std::min(record::ProcessesOf(winner), record::kProcesses);
  if (record::ProcessesOf(own) < enough ||
      record::SteadyLatencyNs(own) >= record::SteadyLatencyNs(winner)) {
    return;
  }
  finalist.is_own = true;
  std::erase(ranking, untiled);
  ranking.insert(ranking.begin(), untiled);
}

void ConfirmPhase::PreferFasterDisturbed(std::vector<int>& ranking) {
  if (ranking.empty() || job_.spec().revalidate > 0) return;
  double limit = kSurelyFaster * record::SteadyLatencyNs(confirmation_->Combined(ranking[0]));
  int fastest = -1;
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const Finalist& finalist = finalists_.list[i];
    if (!finalist.disturbed || !confirmation_->IsUnmeasured(static_cast<int>(i))) continue;
    // Not corrected for drift, because the correction may be too large on a disturbed machine.
    if (finalist.disturbed->latency_ns >= limit) continue;
    limit = finalist.disturbed->latency_ns;
    fastest = static_cast<int>(i);
  }
  if (fastest < 0) return;
  confirmation_->AddDisturbed(fastest, *finalists_.list[fastest].disturbed);
  finalists_.list[fastest].is_disturbed = true;
  ranking.insert(ranking.begin(), fastest);
}

void ConfirmPhase::ShowRound() {
  // Without the number of disturbed ones, because JobSnapshot::disturbed is another count of those.
  job_.SetPhase(absl::StrCat("round ", confirmation_->rounds(), ": ",
                             reported_ - disturbed_in_round_, " of ", in_round_, " measured"));
  job_.ShowState();
}

void ConfirmPhase::CutLateRound() {
  if (job_.TimeLeft() > absl::ZeroDuration()) return;
  if (LacksArtifacts() || !confirmation_->CutRound()) {
    if (const std::string why = WhyNotWait(); !why.empty()) EndUnconfirmed(why);
    return;
  }
  ++cuts_;
  waiting_.clear();
  job_.services().fleet->CancelJob(job_.id());
  NextRound();
}

bool ConfirmPhase::LacksArtifacts() const {
  bool lacks = false;
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const Finalist& finalist = finalists_.list[i];
    if (!confirmation_->HasResult(static_cast<int>(i))) continue;
    if (!finalist.worker_id.empty()) return false;
    if (job_.services().artifacts->Has(finalist.artifact_digest)) return false;
    lacks = true;
  }
  return lacks;
}

std::string ConfirmPhase::WhyNotWait() const {
  const bool cancelled = job_.state().cancelled;
  const bool limited = job_.spec().max_time > absl::ZeroDuration();
  if (!limited && !cancelled) return "";
  if (const std::string why = WhyNoWorker(job_); !why.empty()) return why;
  if (-job_.TimeLeft() < kFirstResultGrace) return "";
  return absl::StrCat("no finalist was measured in time",
                      cancelled ? "" : "; give it more time, or stop other work on that machine");
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
      std::move(item), MakeRecord(task_, finalist), /*event=*/-1, finalist.screened_ns,
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
    job_.SetPhase(absl::StrCat(kWaitingForQuiet, ": ", job_.state().disturbance));
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
      spdlog::warn("job {}: the stored records of {} are quarantined: {}", job_.id(),
                   NameOf(finalist), why);
      task_.Quarantine(finalist.candidate, last_stored_record_,
                       absl::StrCat("revalidation: ", why));
    }
  }
  if (!ok && task_.IsOnly(finalist.candidate)) {
    finalist.last = record::Record();
    job_.state().given = task_.MakeBest(record);
  }
  if (!ok || !record.quarantined) {
    confirmation_->Report(index, record.result);
    finalist.is_quiet = true;
  } else if (!job_.spec().parent.empty()) {
    // A task of a network needs a kernel even on a machine that is always disturbed, and has no
    // leader to fall back on.
    confirmation_->ReportDisturbed(index, record::WithFasterHalf(record.result));
    finalist.is_disturbed = true;
  } else {
    record::MeasureResult disturbed = record::WithFasterHalf(record.result);
    if (!finalist.disturbed || disturbed.latency_ns < finalist.disturbed->latency_ns) {
      finalist.disturbed = std::move(disturbed);
    }
    confirmation_->ReportDisturbed(index);
    ++disturbed_in_round_;
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

void ConfirmPhase::ReportDefault(const std::vector<int>& ranking) {
  bool confirmed = !ranking.empty() && ranking[0] == finalists_.untiled;
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const Finalist& finalist = finalists_.list[i];
    if (!finalist.is_default || !screened_default_ || finalist.last.result.latency_ns <= 0 ||
        !confirmation_->HasResult(static_cast<int>(i))) {
      continue;
    }
    record::Record record = *screened_default_;
    record.policy = finalist.last.policy;
    record.result = confirmation_->Combined(static_cast<int>(i));
    job_.state().default_schedule = task_.MakeBest(record);
    const bool enough = record::ProcessesOf(record.result) >= record::kProcesses;
    confirmed = confirmed || (enough && !finalist.is_disturbed);
  }
  const std::optional<Best>& own = job_.state().default_schedule;
  const bool failed = own && own->record.result.outcome != record::Outcome::kOk;
  if (confirmed || failed || !known_default_) return;
  job_.state().default_schedule = task_.MakeBest(*known_default_);
}

void ConfirmPhase::Tick() {
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    job_.Steady() >= waiting.until ? Submit(waiting.finalist) : waiting_.push_back(waiting);
  }
  if (publication_.IsOpen()) return publication_.Continue();
  if (confirmation_ && !confirmation_->RoundIsComplete()) CutLateRound();
}

bool ConfirmPhase::EndWhenPublished() {
  ends_ = publication_.IsPublishing();
  return ends_;
}

void ConfirmPhase::ConfirmAgain(int winner, const absl::Status& conflict) {
  job_.SetDoing("confirming the winner again");
  FindIncumbent(job_, task_, finalists_);
  const bool gives_up = ends_ || ++conflicts_ > kMostConflicts || finalists_.pin.unix_ms > 0;
  spdlog::info("job {}: {}", job_.id(), std::string(conflict.message()));
  if (finalists_.incumbent < 0) {  // it was withdrawn
    return gives_up ? Fail(conflict) : publication_.Continue();
  }
  if (gives_up || finalists_.incumbent == winner) return publication_.FinishWithIncumbent();
  publication_.Close();
  confirmation_->BeginAgain(winner, finalists_.incumbent);
  AddStoredIncumbent();
  NextRound();
}

void ConfirmPhase::Fail(const absl::Status& why) {
  job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kFailed, why);
}

}  // namespace hone::job

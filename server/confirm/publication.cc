#include "server/confirm/publication.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/processes.h"
#include "server/job/actor/job_actor.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// Interchangeable devices differ by less than this factor, even if one is disturbed.
constexpr double kApart = 3;

// An incumbent that wins is published again if it is faster than its record by this share; the
// machine was probably disturbed when the record was measured. So is one that was known to be.
constexpr double kOutgrown = 0.05;
// Users are told if the best that they know is replaced, and was this much slower than its record
// when it was measured again.
constexpr double kOverrated = 0.1;

// A candidate is built again so often, in case builds fail.
constexpr int kMostBuilds = 3;
// How long one worker may take before the next one is asked.
constexpr absl::Duration kPatience = absl::Seconds(30);
// How long a job that is over waits for a builder.
constexpr absl::Duration kLastBuild = absl::Seconds(5);

}  // namespace

BuildCheck::State BuildCheck::Check(const Finalist& built) {
  const absl::Time now = job_.Steady();
  if (built.artifact_digest != built_.artifact_digest) {
    built_ = built;
    state_ = State::kOpen;
    why_.clear();
    waits_ = false;
    attempts_ = 0;
    slow_.clear();
    began_ = now;
  }
  if (state_ != State::kOpen) return state_;
  const bool is_over = job_.state().cancelled && job_.TimeLeft() <= absl::ZeroDuration();
  const fleet::Fleet& fleet = *job_.services().fleet;
  if (waits_) {
    const absl::Time limit = asked_at_ + (is_over ? kLastBuild : kPatience);
    if (now < limit && fleet.Answers(worker_)) return state_;
    spdlog::warn("job {}: worker {}, which builds {} again, does not answer", job_.id(), worker_,
                 NameOf(built_));
    slow_.push_back(worker_);
    waits_ = false;
  }
  built_by_ = fleet.BuilderOf(built_.artifact_digest);
  if (built_by_.empty()) built_by_ = built_.worker_id;
  const auto rebuilder = [&] {
    return fleet.Rebuilder(job_.spec().target_key, built_.builder, built_by_, slow_);
  };
  std::string worker = rebuilder();
  if (worker.empty() && !slow_.empty()) {
    // All were asked; those that answer by now may be asked again.
    std::erase_if(slow_, [&](const std::string& slow) { return fleet.Answers(slow); });
    worker = rebuilder();
  }
  const absl::Duration patience = is_over ? kLastBuild : job_.options().spot_check_limit;
  if (!worker.empty() && attempts_ < kMostBuilds) {
    Ask(worker);
  } else if (attempts_ >= kMostBuilds || now >= began_ + patience) {
    state_ = State::kRefused;
    why_ = absl::StrCat("no builder of its version built ", NameOf(built_),
                        " again in time, so that its artifact could not be compared");
  }
  return state_;
}

void BuildCheck::Ask(const std::string& worker) {
  fleet::WorkItem item = task_.MakeItem(built_.candidate, built_.space);
  item.only_digest = true;
  item.worker_id = worker;
  worker_ = worker;
  waits_ = true;
  asked_at_ = job_.Steady();
  ++attempts_;
  job_.SetPhase({PhaseKind::kCheckingWinner, worker});
  job_.services().fleet->Submit(
      std::move(item),
      [this, asked = ++asked_, self = job_.shared_from_this()](
          absl::StatusOr<fleet::WorkResult> result, fleet::Acknowledge acknowledge) {
        if (result.ok()) std::move(acknowledge)();
        self->Post([this, asked, result = std::move(result)] { OnBuilt(asked, result); });
      });
}

void BuildCheck::OnBuilt(int asked, const absl::StatusOr<fleet::WorkResult>& result) {
  if (state_ != State::kOpen || asked != asked_ || !waits_) return;
  if (job_.state().state != JobState::kConfirming) return;
  waits_ = false;
  // A build that failed, or one of another version, says nothing about the artifact.
  if (!result.ok() || result->result.outcome != record::Outcome::kOk ||
      fleet::BuilderOf(result->environment) != built_.builder) {
    spdlog::warn("job {}: {} was not built again: {}", job_.id(), NameOf(built_),
                 result.ok() ? result->result.detail : std::string(result.status().message()));
    if (!absl::IsResourceExhausted(result.status())) return on_news_();
    --attempts_;  // the fleet had no room; the next tick asks again
    return;
  }
  const std::string& digest = result->result.artifact_digest;
  if (digest == built_.artifact_digest) {
    state_ = State::kSame;
    spdlog::info("job {}: {} built the artifact of {} again in {} ms, and it is the same",
                 job_.id(), result->worker_id, NameOf(built_),
                 absl::ToInt64Milliseconds(job_.Steady() - asked_at_));
  } else {
    state_ = State::kRefused;
    job_.services().fleet->NoteBuildMismatch();
    why_ = absl::StrCat("the artifact of ", NameOf(built_), " is not used: ", built_by_, " built ",
                        built_.artifact_digest, ", and ", result->worker_id, " built ", digest,
                        " from the same trace; one of the two is wrong");
    spdlog::warn("job {}: {}", job_.id(), why_);
  }
  on_news_();
}

void SpotCheck::Ask(std::string worker, absl::Time deadline) {
  asked_.push_back(std::move(worker));
  deadline_ = deadline;
}

void SpotCheck::Report(absl::Time now, const std::string& worker,
                       const record::MeasureResult& result) {
  if (verdict_ != Verdict::kOpen || !IsWaiting(now)) return;
  deadline_ = absl::InfinitePast();
  // A killed runner says nothing about the candidate, so another worker is asked.
  if (result.outcome == record::Outcome::kDeviceLost ||
      result.outcome == record::Outcome::kOutOfMemory) {
    return;
  }
  std::string objection;
  const double seen = record::SteadyLatencyNs(result);
  if (result.outcome != record::Outcome::kOk) {
    objection = absl::StrCat(claimant(), " says that it is right, and ", worker, " has ",
                             record::OutcomeName(result.outcome), ": ", result.detail);
  } else if (seen > kApart * claimed_) {
    objection = absl::StrFormat("%s says that it takes %.0f ns, and %s measures %.0f ns",
                                claimant(), claimed_, worker, seen);
  }
  if (objection.empty()) {
    verdict_ = Verdict::kConfirmed;
  } else if (!objector_.empty()) {
    verdict_ = Verdict::kRejected;
  } else {
    objector_ = worker;
    objection_ = std::move(objection);
  }
}

void SpotCheck::Close() { verdict_ = objector_.empty() ? Verdict::kConfirmed : Verdict::kRejected; }

std::string SpotCheck::Outvoted() const { return verdict_ == Verdict::kConfirmed ? objector_ : ""; }

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
  if (!rematch_ && job_.spec().revalidate == 0) job_.AddNote(NoteOfRounds());
  artifact_deadline_ = job_.Steady() + job_.options().artifact_limit;
  Continue();
}

bool Publication::KeepsIncumbent(int index) const {
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

std::string Publication::NoteOfRounds() const {
  if (!KeepsIncumbent(ranking_[0])) {
    std::string note = NoteUnconfirmedFastest();
    if (note.empty()) note = NoteOverratedIncumbent();
    return note.empty() ? NoteSlowerThanLeader() : note;
  }
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const bool own = finalists_.list[i].is_own && static_cast<int>(i) != finalists_.incumbent;
    if (own && results_->HasResult(static_cast<int>(i))) return "";
  }
  if (!results_->AnyIsDisturbed()) return "";
  return absl::StrCat(
      "other work disturbed every measurement of this run's finalists, so that none could be "
      "confirmed; the last: ",
      job_.state().disturbance);
}

std::string Publication::NoteSlowerThanLeader() const {
  const std::optional<Best>& leader = job_.state().best;
  const std::optional<Best>& own = job_.state().own_best;
  if (!leader || leader->record.id > 0 || leader->record.job_id != job_.id() || !own) return "";
  const double now_ns = record::SteadyLatencyNs(own->record.result);
  const double shown_ns = record::SteadyLatencyNs(leader->record.result);
  if (now_ns < shown_ns * (1 + kOverrated)) return "";
  return absl::StrFormat(
      "the search measured trial %d at %.4g us; in the confirmation, the best candidate of this "
      "job took %.4g us, probably because the machine was slower by then",
      leader->record.trial, shown_ns / 1e3, now_ns / 1e3);
}

std::string Publication::NoteOverratedIncumbent() const {
  if (finalists_.incumbent < 0 || !task_.HasSameInputs(*finalists_.incumbent_record)) return "";
  const record::Record& last = finalists_.list[finalists_.incumbent].last;
  if (last.job_id != job_.id() || last.quarantined) return "";  // it was not measured now
  const double now_ns = record::SteadyLatencyNs(last.result);
  const double before_ns = record::SteadyLatencyNs(finalists_.incumbent_record->result);
  if (now_ns < before_ns * (1 + kOverrated)) return "";
  return absl::StrFormat(
      "the earlier best, of job %s, was measured again: it took %.4g us, and not %.4g us as before",
      finalists_.incumbent_record->job_id, now_ns / 1e3, before_ns / 1e3);
}

std::string Publication::NoteUnconfirmedFastest() const {
  const Finalist& winner = finalists_.list[ranking_[0]];
  if (winner.is_own && winner.is_disturbed && !winner.is_quiet) {
    return absl::StrCat("other work disturbed every measurement of trial ", winner.trial,
                        ", which was faster than the other finalists even so");
  }
  int index = -1;
  for (size_t i = 0; i < finalists_.list.size(); ++i) {
    const Finalist& finalist = finalists_.list[i];
    if (!finalist.is_own || finalist.is_default) continue;
    if (index >= 0 && finalist.screened_ns >= finalists_.list[index].screened_ns) continue;
    index = static_cast<int>(i);
  }
  const double winner_ns = record::SteadyLatencyNs(results_->Combined(ranking_[0]));
  if (index < 0 || !results_->IsUnmeasured(index)) return "";
  const Finalist& fastest = finalists_.list[index];
  if (fastest.screened_ns > winner_ns) return "";
  const std::string worker = WhyNoWorker(job_);
  const std::string& disturbance = job_.state().disturbance;
  return absl::StrCat(
      "trial ", fastest.trial, " was the fastest of the search, but it could not be confirmed; ",
      !worker.empty() ? worker
      : !disturbance.empty()
          ? absl::StrCat("other work disturbed the measurements: the last time, ", disturbance)
          : "its measurement did not end in time");
}

void Publication::Continue() {
  job_.SetDoing("publishing the best candidate");
  if (publishing_) return;
  // Waits for the winner's artifact. After the deadline, publishes the first finalist whose
  // artifact has arrived.
  const JobServices& services = job_.services();
  for (const int index : ranking_) {
    const Finalist& finalist = finalists_.list[index];
    // An incumbent that was compared by its published result stays as it is.
    const bool ran = finalist.last.result.latency_ns > 0;
    if (KeepsIncumbent(index) || (index == finalists_.incumbent && !ran)) {
      return EndWithIncumbent();
    }
    if (services.artifacts->Has(finalist.artifact_digest)) {
      // Both checks run at the same time.
      const BuildCheck::State build = CheckBuild(index);
      if (build == BuildCheck::State::kRefused) return;
      if (Check(index) != SpotCheck::Verdict::kConfirmed) return;
      if (build == BuildCheck::State::kSame) PublishFinalist(index);
      return;
    }
    // This is repeated because the worker may have been restarted.
    services.fleet->KeepArtifact(finalist.artifact_digest, finalist.worker_id);
    const bool may_arrive =
        services.fleet->Answers(finalist.worker_id) || job_.TimeLeft() > absl::ZeroDuration();
    if (may_arrive && job_.Steady() < artifact_deadline_) {
      return job_.SetPhase({PhaseKind::kWaitingForArtifact});
    }
    spdlog::warn("job {}: the artifact of {} did not arrive", job_.id(), NameOf(finalist));
  }
  EndUnpublished();
}

BuildCheck::State Publication::CheckBuild(int index) {
  const Finalist& finalist = finalists_.list[index];
  if (index == finalists_.incumbent &&
      finalist.artifact_digest == finalists_.incumbent_record->result.artifact_digest) {
    return BuildCheck::State::kSame;
  }
  BuildCheck& check = builds_
                          .try_emplace(index, job_, task_,
                                       [this] {
                                         // It may have been closed, for another comparison.
                                         if (IsOpen()) Continue();
                                       })
                          .first->second;
  const BuildCheck::State state = check.Check(finalist);
  if (state == BuildCheck::State::kRefused) Withhold(index, check.why());
  return state;
}

void Publication::Withhold(int index, const std::string& why) {
  withheld_ = why;
  job_.AddNote(why);
  std::erase(ranking_, index);
  if (!rematch_) ReportOwnBest(job_, task_, finalists_, *results_, ranking_);
  artifact_deadline_ = job_.Steady() + job_.options().artifact_limit;
  if (!ranking_.empty()) return Continue();
  EndUnpublished();
}

void Publication::EndUnpublished() {
  // Without its artifact, the best candidate can be neither published nor pinned.
  job_.state().own_best.reset();
  if (!withheld_.empty()) return job_.Fail(absl::AbortedError(withheld_));
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
  const bool is_over = job_.state().cancelled && job_.TimeLeft() <= absl::ZeroDuration();
  if (check.IsWaiting(job_.Steady()) && !is_over) return check.verdict();
  if (is_over || check.IsLate(job_.Steady())) {
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
  if (check.verdict() == SpotCheck::Verdict::kRejected) Discard(index, check);
  return check.verdict();
}

void Publication::AskWorker(int index, SpotCheck& check, const std::string& worker) {
  const Finalist& finalist = finalists_.list[index];
  fleet::WorkItem item = task_.MakeItem(finalist.candidate, finalist.space);
  item.policy = finalist.last.policy;
  item.artifact_digest = finalist.artifact_digest;
  item.builder = finalist.builder;
  item.worker_id = worker;
  item.avoid = check.asked();
  check.Ask(worker, job_.Steady() + job_.options().spot_check_limit);
  const size_t asked = check.asked().size();
  job_.SetPhase({PhaseKind::kCheckingWinner, worker});
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
  job_.Fail(absl::AbortedError(absl::StrCat("a second worker rejected every finalist: ", why)));
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
  store->Append(std::move(record), job_.Step(),
                [this, index, self, store, published,
                 incumbent](absl::StatusOr<record::Record> stored) mutable {
                  if (!stored.ok()) return published(std::move(stored));
                  self->Post([this, index, record = *stored] { OnStored(index, record); });
                  const int64_t id = stored->id;
                  store->PublishBest(
                      id, incumbent,
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

void Publication::EndWithIncumbent() {
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
  job_.Finish();
}

}  // namespace hone::job

#include "server/confirm/confirm_phase.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/record/processes.h"
#include "server/confirm/finalist.h"
#include "server/job/actor/job_actor.h"
#include "server/job/search/task_search.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

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
// A process that took more than this many times as long as the search measured is repeated at once,
// without a wait, if this much time is left.
constexpr double kContradiction = 2;
constexpr absl::Duration kRunAgain = absl::Seconds(1);

// Whether a process of a finalist took much longer than the search measured.
bool Contradicts(const Finalist& finalist, const record::Record& record) {
  return finalist.screened_ns > 0 && record.result.outcome == record::Outcome::kOk &&
         record::SteadyLatencyNs(record.result) > kContradiction * finalist.screened_ns;
}

// Whether the machine may have caused such a failure of a finalist that has run before.
bool IsOfTheMachine(record::Outcome outcome) {
  return outcome == record::Outcome::kDeviceLost || outcome == record::Outcome::kOutOfMemory ||
         outcome == record::Outcome::kRunTimeout;
}

}  // namespace

void ConfirmPhase::Begin(Found found, const ConfirmationOptions& options) {
  job_.SetDoing("choosing the finalists");
  options_ = options;
  if (found.screened.empty()) return job_.Fail(NothingRan(job_));
  if (found.untiled) screened_default_ = found.untiled->record;
  known_default_ = std::move(found.known_default);
  StartRounds(ChooseFinalists(job_, task_, std::move(found), options_), PhaseKind::kConfirming);
}

void ConfirmPhase::BeginRevalidation() {
  job_.SetDoing("choosing the schedules to measure again");
  absl::StatusOr<Finalists> stored = FindStoredFinalists(job_, task_);
  if (!stored.ok()) return job_.End(JobState::kFailed, stored.status());
  StartRounds(*std::move(stored), PhaseKind::kBuildingStored);
}

void ConfirmPhase::StartRounds(Finalists finalists, PhaseKind phase) {
  finalists_ = std::move(finalists);
  job_.state().state = JobState::kConfirming;
  job_.SetPhase({phase});
  job_.Save();
  job_.ShowState();
  for (const Finalist& finalist : finalists_.list) {
    if (!finalist.artifact_digest.empty() && !finalist.worker_id.empty()) {
      job_.services().fleet->KeepArtifact(finalist.artifact_digest, finalist.worker_id);
    }
  }
  ChooseDevice();
  confirmation_.emplace(static_cast<int>(finalists_.list.size()), finalists_.incumbent,
                        job_.spec().seed, options_);
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
    return job_.Finish();
  }
  if (job_.spec().revalidate > 0 && finalists_.incumbent >= 0 &&
      confirmation_->IsUnmeasured(finalists_.incumbent)) {
    job_.AddNote(absl::StrCat("the best stays as it was, because it could not be measured again: ",
                              job_.state().disturbance.empty()
                                  ? "its measurement did not end in time"
                                  : job_.state().disturbance));
    return publication_.EndWithIncumbent();
  }
  publication_.Begin(std::move(ranking), *confirmation_, rematch);
}

void ConfirmPhase::EndUnconfirmed() {
  if (!confirmation_->AnyIsDisturbed()) {
    return job_.Fail(absl::FailedPreconditionError(
        "no finalist could be confirmed: each failed when it was measured again"));
  }
  if (finalists_.incumbent_record) return publication_.EndWithIncumbent();
  EndUnconfirmed(absl::StrCat("other work disturbed every measurement of the finalists; the last: ",
                              job_.state().disturbance));
}

void ConfirmPhase::EndUnconfirmed(const std::string& reason) {
  const std::string why = absl::StrCat("no best could be confirmed: ", reason);
  if (job_.spec().revalidate > 0) return job_.Fail(absl::FailedPreconditionError(why));
  if (finalists_.incumbent_record) {
    job_.AddNote(absl::StrCat("the best stays as it was: ", reason));
    return publication_.EndWithIncumbent();
  }
  // The job ends with the fastest candidate of its search, which is shown as not confirmed.
  job_.state().best.reset();
  job_.state().unconfirmed = true;
  job_.AddNote(why);
  job_.Finish();
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
  job_.SetPhase({.kind = PhaseKind::kRound,
                 .done = reported_ - disturbed_in_round_,
                 .whole = in_round_,
                 .round = confirmation_->rounds()});
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
    item.policy = ConfirmPolicy(options_.repeats);
  }
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
    job_.SetPhase({PhaseKind::kWaitingForQuiet, job_.state().disturbance});
    return job_.ShowState();
  }
  // The search may have been wrong, so that one that does not seem to be disturbed is repeated
  // once.
  const int most_repeats = record.quarantined ? kNoisyRounds : 1;
  if (Contradicts(finalist, record) && finalist.noisy_rounds < most_repeats &&
      job_.TimeLeft() > kRunAgain) {
    ++finalist.noisy_rounds;
    return waiting_.push_back({index, job_.Steady()});
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
      task_.Quarantine(finalist.candidate, finalists_.last_record,
                       absl::StrCat("revalidation: ", why));
    }
  }
  const bool is_excused = !ok && confirmation_->HasRun(index) &&
                          IsOfTheMachine(record.result.outcome) &&
                          !std::exchange(finalist.was_excused, true);
  if (!ok && !is_excused && task_.IsOnly(finalist.candidate)) {
    finalist.last = record::Record();
    job_.state().given = task_.MakeBest(record);
  }
  if (is_excused) {
    confirmation_->ReportDisturbed(index);
    ++disturbed_in_round_;
  } else if (!ok || !record.quarantined) {
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
  if (!absl::IsNotFound(status) || finalist.rebuilt) return job_.Fail(status);
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
    return gives_up ? job_.Fail(conflict) : publication_.Continue();
  }
  if (gives_up || finalists_.incumbent == winner) return publication_.EndWithIncumbent();
  publication_.Close();
  confirmation_->BeginAgain(winner, finalists_.incumbent);
  AddStoredIncumbent();
  NextRound();
}

void DeliverPhase::Begin(std::vector<Screened> screened) {
  job_.SetDoing("choosing the best candidate");
  if (screened.empty()) return job_.Fail(NothingRan(job_));
  best_ = *std::min_element(
      screened.begin(), screened.end(),
      [this](const Screened& a, const Screened& b) { return ComesBefore(task_, a, b); });
  job_.state().state = JobState::kConfirming;
  job_.SetPhase({PhaseKind::kWaitingForKernel});
  job_.Save();
  job_.ShowState();
  deadline_ = job_.Steady() + job_.options().artifact_limit;
  Tick();
}

void DeliverPhase::Rebuild() {
  rebuilt_ = true;
  deadline_ = job_.Steady() + job_.options().artifact_limit;
  const record::Candidate& candidate = best_.record.candidate;
  fleet::WorkItem item = task_.MakeItem(candidate, task_.SpaceText(candidate.space_digest));
  task_.Measure(
      std::move(item), task_.MakeRecord(candidate, best_.record.trial), /*event=*/-1,
      /*earlier_ns=*/0,
      [this](const record::Record& record, const std::string& worker_id) {
        if (job_.state().state != JobState::kConfirming) return;
        if (record.result.outcome == record::Outcome::kOk) best_ = ScreenedOf(record, worker_id);
        Tick();
      },
      [](const absl::Status&) {});  // after the deadline, the job fails
}

void DeliverPhase::Tick() {
  if (job_.state().state != JobState::kConfirming) return;
  const std::string& artifact = best_.record.result.artifact_digest;
  if (job_.services().artifacts->Has(artifact)) {
    const record::Candidate& candidate = best_.record.candidate;
    const BuildCheck::State state =
        build_check_.Check({.candidate = candidate,
                            .space = task_.SpaceText(candidate.space_digest),
                            .trial = best_.record.trial,
                            .artifact_digest = artifact,
                            .worker_id = best_.worker_id,
                            .builder = fleet::BuilderOf(best_.record.environment)});
    if (state == BuildCheck::State::kOpen) return;
    if (state == BuildCheck::State::kRefused) {
      return job_.Fail(absl::AbortedError(build_check_.why()));
    }
    job_.state().best = task_.MakeBest(best_.record);
    return job_.Finish();
  }
  // This is repeated because the worker may have been started again since.
  if (!best_.worker_id.empty()) job_.services().fleet->KeepArtifact(artifact, best_.worker_id);
  const bool late = job_.Steady() >= deadline_;
  if (!rebuilt_ && (late || best_.worker_id.empty())) return Rebuild();
  if (late) {
    job_.End(JobState::kFailed,
             absl::FailedPreconditionError("the kernel did not arrive from a worker in time"));
  }
}

}  // namespace hone::job


#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/counted.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "server/job/actor/executor.h"
#include "server/job/job_book.h"
#include "server/job/search/task_search.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// After this many consecutive Proposes without a new candidate, the spaces count as exhausted.
constexpr int kMaxFruitless = 5;
// Each of the first results is published to readers at once, later ones at the next tick, because
// publishing a state copies it.
constexpr int64_t kShownAtOnce = 256;
// The trial number of the default schedule, which is not a candidate of the search.
constexpr int64_t kDefaultTrial = 0;

// Whether a screened candidate is shown instead of another one. A disturbed measurement is shown
// only if there is no other.
bool IsBetterToShow(const record::Record& record, const record::Record& than) {
  if (record.quarantined != than.quarantined) return than.quarantined;
  return record::SteadyLatencyNs(record.result) < record::SteadyLatencyNs(than.result);
}

}  // namespace

absl::Status SearchPhase::Restore() {
  const JobSpec& spec = job_.spec();
  HONE_ASSIGN_OR_RETURN(const std::vector<store::JobEvent> events,
                        job_.services().store->Events(job_.id()));
  TaskSearchOptions options = SearchOptionsOf(spec);
  options.prior_record = -1;
  for (const store::JobEvent& event : events) {
    if (event.kind == kExternalKind) {
      HONE_ASSIGN_OR_RETURN(const ExternalEvent external, DecodeExternal(event));
      options.first_trial = std::max(options.first_trial, external.proposal.trial + 1);
    }
    if (event.kind != kProposeKind) continue;
    HONE_ASSIGN_OR_RETURN(const ProposeEvent propose, DecodePropose(event));
    if (options.prior_record < 0) options.prior_record = propose.prior_record;
    for (const Proposal& proposal : propose.proposals) {
      if (proposal.trial < 0) continue;
      trials_[proposal.trial] = {.candidate = proposal.candidate, .event = propose.number};
      options.first_trial = std::max(options.first_trial, proposal.trial + 1);
    }
  }
  HONE_ASSIGN_OR_RETURN(EarlierResults earlier,
                        ReadEarlierResults(job_, task_, options.prior_record));
  if (options.prior_record < 0) options.prior_record = earlier.last_record;
  for (const search::Measured& measured : earlier.prior) {
    if (measured.outcome == record::Outcome::kOk) task_.LowerBestLatency(measured.latency_ns);
  }
  trials_[kDefaultTrial] = {.candidate = task_.spaces().default_schedule()};
  HONE_RETURN_IF_ERROR(RestoreExternal(events, earlier.own));
  JobSnapshot& state = job_.state();
  state.allowance = std::max(state.allowance, Proposed());
  known_default_ = earlier.default_schedule.Confirmed();
  const std::map<int64_t, record::Record> own = earlier.own;
  const std::vector<record::Record> again = std::move(earlier.again);
  const std::vector<record::Candidate> foreign = std::move(earlier.foreign);
  HONE_RETURN_IF_ERROR(Replay(events, std::move(options), std::move(earlier)));
  for (const record::Candidate& candidate : foreign) search_->Know(candidate);
  KeepConfirmed();
  CountAgain(own);
  if (HasLeader()) {
    challenges_.Restore(again);
    ShowLeader();
  }
  const auto untold = std::count_if(trials_.begin(), trials_.end(), [](const auto& trial) {
    return trial.first != kDefaultTrial && !trial.second.told && !trial.second.waits;
  });
  state.unmeasured = Unmeasured() + untold;  // until Begin submits them
  return absl::OkStatus();
}

absl::Status SearchPhase::RestoreExternal(const std::vector<store::JobEvent>& events,
                                          const std::map<int64_t, record::Record>& own) {
  JobSnapshot& state = job_.state();
  state.proposers.clear();
  for (const store::JobEvent& event : events) {
    if (event.kind != kExternalKind) continue;
    HONE_ASSIGN_OR_RETURN(const ExternalEvent external, DecodeExternal(event));
    const auto& [candidate, number] = external.proposal;
    if (task_.SpaceText(candidate.space_digest).empty()) {
      HONE_ASSIGN_OR_RETURN(const std::string text,
                            job_.services().store->GetText(candidate.space_digest));
      task_.AddSpace(candidate.space_digest, text);
    }
    task_.SetProposer(number, external.proposer);
    ++state.proposers[external.proposer].accepted;
    const bool waits = !own.contains(number);
    trials_[number] = {.candidate = candidate, .event = external.number, .waits = waits};
    if (waits) waiting_.Add(number, external.proposer, /*stored=*/true);
  }
  return absl::OkStatus();
}

absl::Status SearchPhase::Replay(const std::vector<store::JobEvent>& events,
                                 TaskSearchOptions options, EarlierResults earlier) {
  const TaskEnvironment* const environment = job_.services().environment;
  TaskSearchOptions fresh = options;
  fresh.first_trial = TaskSearchOptions().first_trial;
  HONE_ASSIGN_OR_RETURN(search_,
                        TaskSearch::Create(environment, &task_.spaces(), fresh, earlier.prior));
  const absl::Status replayed = search_->Replay(events, task_.spaces().default_schedule());
  if (replayed.ok()) {
    for (const store::JobEvent& event : events) {
      if (event.kind != kTellKind) continue;
      HONE_ASSIGN_OR_RETURN(const TellEvent tells, DecodeTell(event));
      for (const TellEvent::Told& told : tells.told) trials_[told.trial].told = true;
    }
    return absl::OkStatus();
  }
  if (!absl::IsAborted(replayed)) return replayed;
  // Another version of the program searches differently. The search starts again with the measured
  // results.
  spdlog::warn("job {}: the search starts again with the existing measurements: {}", job_.id(),
               replayed.ToString());
  for (const auto& [trial, record] : earlier.own) earlier.prior.push_back(MeasuredOf(record));
  options.first_event = static_cast<int64_t>(events.size());
  HONE_ASSIGN_OR_RETURN(search_, TaskSearch::Create(environment, &task_.spaces(),
                                                    std::move(options), std::move(earlier.prior)));
  for (auto& [trial, entry] : trials_) {
    entry.told = earlier.own.contains(trial);
    search_->Know(entry.candidate);
  }
  return absl::OkStatus();
}

void SearchPhase::KeepConfirmed() {
  store::Store& store = *job_.services().store;
  JobSnapshot& state = job_.state();
  if (!IsStillConfirmed(store, state.own_best)) state.own_best.reset();
  // A running job may have shown its leader last, which is not confirmed.
  if (IsStillConfirmed(store, state.best)) confirmed_ = state.best;
  // As for a new job, the best that another job has published says nothing about this search.
  const bool is_own = confirmed_ && confirmed_->record.job_id == job_.id();
  if (state.own_best && !is_own) confirmed_ = state.own_best;
  if (IsStillConfirmed(store, state.default_schedule)) confirmed_default_ = state.default_schedule;
}

bool SearchPhase::KeepsShown(const std::map<int64_t, record::Record>& own) const {
  const std::optional<Best>& shown = job_.state().best;
  if (!HasLeader() || !shown || record::IsConfirmed(shown->record)) return false;
  const auto stored = own.find(shown->record.trial);
  return stored != own.end() && stored->second.candidate == shown->record.candidate &&
         stored->second.quarantined == shown->record.quarantined;
}

void SearchPhase::CountAgain(const std::map<int64_t, record::Record>& own) {
  JobSnapshot& state = job_.state();
  state.trials = 0;
  state.outcomes.clear();
  if (confirmed_ || !KeepsShown(own)) state.best = confirmed_;
  state.default_schedule = confirmed_default_;
  state.given.reset();
  for (const auto& [trial, record] : own) {
    const auto entry = trials_.find(trial);
    if (entry == trials_.end()) continue;
    if (entry->second.told) {
      Count(record, "");
    } else {
      Tell(record, "");
    }
  }
}

void SearchPhase::Begin() {
  began_ = job_.Steady();
  trials_.emplace(kDefaultTrial, Trial{.candidate = task_.spaces().default_schedule()});
  // A new job measures the default schedule together with its first candidates. Its result could
  // otherwise come before the first proposal and change it.
  // A job that is resumed with a lower limit does not measure all that was proposed. The rest does
  // not count as dropped, because a restarted job would count it again.
  int64_t left = job_.spec().max_trials == 0 ? std::numeric_limits<int64_t>::max()
                                             : job_.spec().max_trials - job_.state().trials;
  for (auto& [trial, entry] : trials_) {
    if (entry.told || entry.waits || (Proposed() == 0 && !IsExternal())) continue;
    if (trial != kDefaultTrial && left-- <= 0) {
      entry.told = true;
      continue;
    }
    ++outstanding_;
    Submit(trial);
  }
  // The model learns earlier results while the first candidates are measured.
  first_model_pending_ = search_->TrainingIsDue();
  MaybeTrain();
  Pump();
}

int SearchPhase::BatchSize() const { return BatchSizeOf(job_.spec(), job_.options()); }

int SearchPhase::NextBatch() const {
  return static_cast<int>(std::min<int64_t>(BatchSize(), Room()));
}

int64_t SearchPhase::Room() const {
  int64_t room = std::numeric_limits<int64_t>::max();
  if (job_.spec().max_trials > 0) room = job_.spec().max_trials - Proposed();
  if (job_.spec().parent.empty()) return room;
  return std::min(room, job_.state().allowance - Proposed());
}

bool SearchPhase::IsOutOfAllowance() const {
  return !job_.spec().parent.empty() && !stopping_ && !exhausted_ &&
         Proposed() >= job_.state().allowance;
}

absl::Duration SearchPhase::ReservedTime() const {
  const absl::Duration step = results_ == 0 ? absl::ZeroDuration() : (last_ - began_) / results_;
  return ConfirmationTime(job_.spec().max_time, step);
}

bool SearchPhase::ProposingIsLate() const {
  const absl::Duration left = job_.TimeLeft() - ReservedTime();
  return Proposed() > 0 && left < propose_took_;
}

int64_t SearchPhase::Unmeasured() const {
  if (job_.spec().parent.empty()) return 0;
  return job_.state().allowance - Proposed() + outstanding_;
}

void SearchPhase::Settle() {
  JobSnapshot& state = job_.state();
  if (std::exchange(state.unmeasured, 0) == 0) return;
  job_.SetPhase({PhaseKind::kWaitingForTurn});
  job_.Save();
  job_.ShowState();
}

void SearchPhase::Pump() {
  JobSnapshot& state = job_.state();
  if (closing_ || state.state != JobState::kRunning) return;
  if (first_model_pending_ || job_.IsStepPending()) return;
  const int64_t limit = job_.spec().max_trials;
  const bool has_room = !stopping_ && !ProposingIsLate() && Room() > 0;
  const bool may_propose = has_room && (!exhausted_ || IsExternal() || waiting_.size() > 0);
  state.queued = outstanding_;
  if (HasLeader() && (may_propose || outstanding_ > 0)) challenges_.Continue();
  if (IsIdle()) return Settle();
  state.unmeasured = Unmeasured();
  if (!may_propose && outstanding_ == 0) {
    if (exhausted_ && !IsExternal() && !task_.IsDecided() && (limit == 0 || state.trials < limit)) {
      state.note =
          absl::StrCat("the design spaces are exhausted: all of their candidates are known after ",
                       Counted(state.trials, "trial"));
    }
    return on_done_();
  }
  const JobPhase before = state.phase;
  const bool is_idle = IsExternal() && outstanding_ == 0 && waiting_.size() == 0;
  job_.SetPhase(stopping_           ? JobPhase{PhaseKind::kFinishing}
                : is_idle           ? JobPhase{PhaseKind::kWaitingForProposals}
                : state.trials == 0 ? JobPhase{PhaseKind::kWaitingForResult}
                : LacksLeader()     ? JobPhase{PhaseKind::kMeasuringFirstAgain}
                                    : job_.silent_work());
  // Proposing may take long and publishes nothing, so the state is published first.
  if (state.trials <= kShownAtOnce || state.phase != before) job_.ShowState();
  if (!may_propose || outstanding_ > BatchSize()) return;
  if (exhausted_ || IsExternal()) return SubmitWaiting(NextBatch());
  job_.EnterStep(kProposing, [this] { Propose(); });
}

void SearchPhase::Propose() {
  job_.SetDoing(kProposing);
  if (closing_) return;
  if (stopping_) {  // Stop was called while the step was being stored
    job_.LeaveStep();
    return Pump();
  }
  LogTells();
  const int batch = NextBatch();
  const int given = std::min(waiting_.Ready(), ShareOfProposals(batch, Proposed()));
  if (given == batch) {
    job_.LeaveStep();
    return SubmitWaiting(given);
  }
  const bool first = Proposed() + outstanding_ == 0 && !trials_.at(kDefaultTrial).told;
  absl::StatusOr<ProposeEvent> event;
  const absl::Time began = job_.Steady();
  {
    const HostShare share(job_.options().respect_timing_lock);
    event = search_->Propose(batch - given);
  }
  propose_took_ = std::max(propose_took_, job_.Steady() - began);
  if (absl::IsCancelled(event.status()) || absl::IsDeadlineExceeded(event.status()))
    return job_.LeaveStep();  // the message or the tick that ends the search follows
  if (!event.ok()) return job_.End(JobState::kFailed, event.status());
  std::vector<int64_t> trials;
  for (const Proposal& proposal : event->proposals) {
    if (proposal.trial < 0) {
      ++job_.state().dropped;
      continue;
    }
    trials_[proposal.trial] = {.candidate = proposal.candidate, .event = event->number};
    trials.push_back(proposal.trial);
  }
  fruitless_ = trials.empty() ? fruitless_ + 1 : 0;
  // If the search has too few candidates, other programs' take their places.
  const std::vector<int64_t> taken = TakeWaiting(batch - static_cast<int>(trials.size()));
  trials.insert(trials.end(), taken.begin(), taken.end());
  if (first && job_.TimeLeft() <= absl::ZeroDuration()) late_submission_ = job_.Steady();
  if (first && !skips_default_) trials.insert(trials.begin(), kDefaultTrial);
  outstanding_ += static_cast<int>(trials.size());
  // Candidates are submitted only when the event is durable, because a restarted job must know
  // them.
  job_.Log(Encode(job_.id(), *event), [this, trials = std::move(trials)] { Submit(trials); });
  job_.LeaveStep();
  if (event->proposals.empty() || fruitless_ >= kMaxFruitless) exhausted_ = true;
  job_.Post([this] { Pump(); });  // after results that arrived meanwhile
}

std::vector<int64_t> SearchPhase::TakeWaiting(int n) {
  std::vector<int64_t> taken = waiting_.Take(std::min(n, waiting_.Ready()));
  for (const int64_t trial : taken) trials_.at(trial).waits = false;
  return taken;
}

void SearchPhase::SubmitWaiting(int n) {
  const std::vector<int64_t> trials = TakeWaiting(n);
  outstanding_ += static_cast<int>(trials.size());
  Submit(trials);
}

Verdict SearchPhase::Judge(const std::string& proposer, const GivenCandidate& given) const {
  if (given.refusal != Refusal::kNone) return {.refusal = given.refusal, .why = given.why};
  if (given.candidate == task_.spaces().default_schedule()) {
    return {.refusal = Refusal::kKnown, .why = "it is the default schedule, which is trial 0"};
  }
  if (search_->IsKnown(given.candidate)) {
    const auto own = std::find_if(trials_.begin(), trials_.end(), [&](const auto& each) {
      return each.second.candidate == given.candidate;
    });
    return {.refusal = Refusal::kKnown,
            .why = own == trials_.end() ? "an earlier job has measured it"
                                        : absl::StrCat("it is trial ", own->first)};
  }
  if (Room() <= static_cast<int64_t>(waiting_.size()) && job_.spec().parent.empty()) {
    return {.refusal = Refusal::kFull,
            .why = absl::StrCat("the job has no trials left of its ", job_.spec().max_trials,
                                "; create a job with more")};
  }
  const bool is_new_space = task_.SpaceText(given.candidate.space_digest).empty();
  std::string full =
      waiting_.WhyFull(proposer, is_new_space ? task_.added_bytes() + given.space.size() : 0);
  return {.refusal = full.empty() ? Refusal::kNone : Refusal::kFull, .why = std::move(full)};
}

void SearchPhase::Accept(const Proposals& proposals, std::vector<GivenCandidate> given,
                         ProposalAnswer answer) {
  const std::string& proposer = proposals.proposer;
  Verdicts verdicts;
  std::map<std::string, ProposerState>& known = job_.state().proposers;
  if (!known.contains(proposer)) {
    absl::Status may = names_.Check(job_.id(), known.size(), proposals.caller);
    if (!may.ok()) return answer(std::move(may));
  }
  std::vector<store::JobEvent> events;
  std::vector<int64_t> accepted;
  for (GivenCandidate& each : given) {
    Verdict& verdict = verdicts.each.emplace_back(Judge(proposer, each));
    if (verdict.refusal != Refusal::kNone) continue;
    task_.AddSpace(each.candidate.space_digest, each.space);
    const ExternalEvent event = search_->AddExternal(proposer, each.candidate);
    verdict.trial = event.proposal.trial;
    trials_[verdict.trial] = {
        .candidate = std::move(each.candidate), .event = event.number, .waits = true};
    waiting_.Add(verdict.trial, proposer, /*stored=*/false);
    task_.SetProposer(verdict.trial, proposer);
    if (!known.contains(proposer)) names_.Add(proposals.caller);
    ++known[proposer].accepted;
    events.push_back(Encode(job_.id(), event));
    accepted.push_back(verdict.trial);
  }
  verdicts.waiting = static_cast<int64_t>(waiting_.size());
  if (events.empty()) return answer(std::move(verdicts));
  job_.ShowState();
  store::JobEvent last = std::move(events.back());
  events.pop_back();
  for (store::JobEvent& event : events) job_.Log(std::move(event));
  // The store keeps the order of writes.
  job_.Log(std::move(last), [this, accepted = std::move(accepted), answer = std::move(answer),
                             verdicts = std::move(verdicts)]() mutable {
    for (const int64_t trial : accepted) waiting_.SetStored(trial);
    answer(std::move(verdicts));
    Pump();
  });
}

void SearchPhase::Submit(const std::vector<int64_t>& trials) {
  if (job_.HasEnded()) return;
  for (const int64_t trial : trials) {
    if (!stopping_) {
      Submit(trial);
      continue;
    }
    --outstanding_;
    Drop(trials_.at(trial));
  }
  if (stopping_) Pump();
}

void SearchPhase::Drop(Trial& trial) {
  trial.told = true;
  ++job_.state().dropped;
}

void SearchPhase::Submit(int64_t trial) {
  const Trial& entry = trials_.at(trial);
  fleet::WorkItem item =
      task_.MakeItem(entry.candidate, task_.SpaceText(entry.candidate.space_digest));
  // These two are not stopped early: speed-ups are relative to the default schedule.
  if (trial != kDefaultTrial && !task_.IsOnly(entry.candidate)) {
    item.best_latency_ns = task_.best_latency();
  }
  task_.Measure(
      std::move(item), task_.MakeRecord(entry.candidate, trial), entry.event, /*earlier_ns=*/0,
      [this](const record::Record& record, const std::string& worker) { OnRecord(record, worker); },
      [this, trial](const absl::Status& status) { OnError(trial, status); });
}

void SearchPhase::OnRecord(const record::Record& record, const std::string& worker_id) {
  if (job_.HasEnded()) return;
  if (closing_) return CountLate(record);
  --outstanding_;
  ++results_;
  last_ = job_.Steady();
  Tell(record, worker_id);
  MaybeTrain();
  Pump();
}

void SearchPhase::CountLate(const record::Record& record) {
  Trial& trial = trials_.at(record.trial);
  if (std::exchange(trial.told, true) || record.trial == kDefaultTrial) return;
  CountTrial(record);
}

void SearchPhase::CountTrial(const record::Record& record) {
  JobSnapshot& state = job_.state();
  ++state.trials;
  ++state.outcomes[record.result.outcome];
  if (record.proposer.empty()) return;
  ProposerState& proposer = state.proposers[record.proposer];
  ++proposer.measured;
  const double latency_ns = record::SteadyLatencyNs(record.result);
  if (record.result.outcome != record::Outcome::kOk) return;
  if (proposer.latency_ns == 0 || latency_ns < proposer.latency_ns)
    proposer.latency_ns = latency_ns;
}

void SearchPhase::OnError(int64_t trial, const absl::Status& status) {
  if (job_.HasEnded()) return;
  if (absl::IsResourceExhausted(status) && !stopping_) {
    deferred_.push_back(trial);
    job_.SetPhase({PhaseKind::kWaitingForCapacity, std::string(status.message())});
    return job_.ShowState();
  }
  --outstanding_;
  if (!absl::IsCancelled(status) && !absl::IsResourceExhausted(status)) {
    return job_.End(JobState::kFailed, status);
  }
  Drop(trials_.at(trial));  // it was stopped before it was measured
  Pump();
}

void SearchPhase::Tell(const record::Record& record, const std::string& worker_id) {
  Trial& trial = trials_.at(record.trial);
  if (trial.told) return;
  trial.told = true;
  job_.SetDoing("passing a result to the search");
  search_->Tell(record.trial, MeasuredOf(record));
  if (job_.services().note_result != nullptr) job_.services().note_result(record.target);
  Count(record, worker_id);
}

void SearchPhase::Count(const record::Record& record, const std::string& worker_id) {
  JobSnapshot& state = job_.state();
  if (record.trial != kDefaultTrial) CountTrial(record);
  if (record.is_default && !confirmed_default_) state.default_schedule = task_.MakeBest(record);
  if (task_.IsOnly(record.candidate)) state.given = task_.MakeBest(record);
  if (record.result.outcome != record::Outcome::kOk) return;
  Screened screened = ScreenedOf(record, worker_id);
  const double latency = screened.latency_ns;
  // On a machine that was slowed down, the corrected latency may be lower than any real one.
  task_.LowerBestLatency(record.quarantined ? std::max(latency, record.result.latency_ns)
                                            : latency);
  if (record.is_default) untiled_ = screened;
  if (!fastest_ || IsBetterToShow(record, *fastest_)) fastest_ = record;
  if (!HasLeader()) Show(*fastest_);
  const bool may_lead = HasLeader() && !worker_id.empty() && !record.is_default;
  if (may_lead) challenges_.Add(screened, state.trials);
  screened_.Add(std::move(screened));
}

void SearchPhase::Show(const record::Record& record) {
  // A few processes of the confirmed candidate say less than its confirmation.
  const bool is_better =
      !confirmed_ ||
      (!record.quarantined && record.candidate != confirmed_->record.candidate &&
       record::SteadyLatencyNs(record.result) < record::SteadyLatencyNs(confirmed_->record.result));
  job_.state().best = is_better ? task_.MakeBest(record) : *confirmed_;
}

bool SearchPhase::LacksLeader() const {
  return HasLeader() && !challenges_.leader() && !confirmed_ &&
         job_.state().outcomes.contains(record::Outcome::kOk);
}

void SearchPhase::ShowLeader() {
  if (!challenges_.leader()) return;
  Show(*challenges_.leader());
  job_.ShowState();
}

Found SearchPhase::TakeFound() {
  // What the job shows is measured again, even if an earlier run has confirmed it.
  const std::optional<Best>& shown = job_.state().best;
  const bool is_own = HasLeader() && shown && shown->record.job_id == job_.id();
  return {.screened = screened_.Take(),
          .untiled = std::move(untiled_),
          .leader = is_own ? shown->record : challenges_.leader(),
          .known_default = std::move(known_default_)};
}

void SearchPhase::ShowUnconfirmed() {
  JobSnapshot& state = job_.state();
  if (state.best && record::IsConfirmed(state.best->record)) return;
  if (confirmed_) {
    state.best = confirmed_;
  } else if (fastest_ && !challenges_.leader()) {
    state.best = task_.MakeBest(*fastest_);
  }
}

void SearchPhase::Tick() {
  if (!deferred_.empty()) Submit(std::exchange(deferred_, {}));
  Pump();
}

void SearchPhase::LogTells() {
  if (search_ == nullptr) return;
  if (const std::optional<TellEvent> tells = search_->TakeTells()) {
    job_.Log(Encode(job_.id(), *tells));
  }
}

void SearchPhase::MaybeTrain() {
  if (job_.state().state != JobState::kRunning || stopping_ || !search_->TrainingIsDue()) return;
  // The work in the background keeps alive what it needs. The model returns in a message.
  job_.services().executor->Schedule([this, job = job_.shared_from_this(),
                                      trainer = search_->trainer(), spaces = task_.shared_spaces(),
                                      fresh = search_->TakeForTraining()] {
    absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> model;
    const absl::Status threw = CatchExceptions([&] {
      const HostShare share(job->options().respect_timing_lock);
      model = trainer->Train(fresh);
    });
    job->Post(
        [this, threw, model = std::move(model)]() mutable { OnTrained(threw, std::move(model)); });
  });
}

void SearchPhase::OnTrained(const absl::Status& threw,
                            absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> model) {
  if (search_ == nullptr) return;
  if (!threw.ok()) {
    job_.SetDoing("training the model");
    return job_.OnException(threw);
  }
  if (model.ok()) {
    search_->AdoptModel(*std::move(model));
  } else {
    spdlog::warn("job {}: training failed: {}", job_.id(), model.status().ToString());
    search_->AbandonTraining();
  }
  first_model_pending_ = false;
  MaybeTrain();
  Pump();
}

void SearchPhase::Close() {
  search_.reset();
  screened_.Take();
}

}  // namespace hone::job

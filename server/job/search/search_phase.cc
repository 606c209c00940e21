#include "server/job/search/search_phase.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/counted.h"
#include "common/base/digest.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "server/job/actor/executor.h"
#include "server/job/job_book.h"
#include "server/job/search/search_options.h"
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

search::Measured MeasuredOf(const record::Record& record) {
  return {record.candidate, record.result.outcome, record::SteadyLatencyNs(record.result)};
}

absl::StatusOr<EarlierResults> ReadEarlierResults(const JobActor& job, const JobTask& task,
                                                  int64_t up_to_record) {
  const JobSpec& spec = job.spec();
  EarlierResults earlier;
  std::set<Digest> seen;
  store::RecordQuery query{
      .workload_digest = task.workload().digest, .target = spec.target_key, .page_size = 1000};
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page,
                          job.services().store->Query(query));
    for (const record::Record& record : page) {
      query.after_id = record.id;
      if (record.tolerance != spec.tolerance) continue;
      // A job keeps its own results, also if the inputs that workers make have changed since.
      if (record.job_id != job.id() && !task.HasSameInputs(record)) continue;
      earlier.default_schedule.Add(record);
      if (record.policy.name != "screen") {
        const bool counts = record.job_id == job.id() && !record.quarantined &&
                            record.result.outcome == record::Outcome::kOk &&
                            record.result.processes == 0;
        if (counts) earlier.again.push_back(record);
        continue;
      }
      if (record.job_id == job.id()) {
        earlier.own.emplace(record.trial, record);
        continue;
      }
      if (up_to_record >= 0 && record.id > up_to_record) continue;
      if (record.quarantined || !task.spaces().IsSearched(record.candidate)) continue;
      if (task.IsOnly(record.candidate)) continue;  // otherwise it would not be measured again
      earlier.last_record = std::max(earlier.last_record, record.id);
      if (!seen.insert(CandidateDigest(record.candidate)).second) continue;
      earlier.prior.push_back(MeasuredOf(record));
    }
    if (static_cast<int>(page.size()) < query.page_size) break;
  }
  // A confirmation also measures the published best, which another job may have found.
  std::erase_if(earlier.again, [&](const record::Record& record) {
    const auto own = earlier.own.find(record.trial);
    return own == earlier.own.end() || own->second.candidate != record.candidate;
  });
  return earlier;
}

absl::Status SearchPhase::Restore() {
  const JobSpec& spec = job_.spec();
  HONE_ASSIGN_OR_RETURN(const std::vector<store::JobEvent> events,
                        job_.services().store->Events(job_.id()));
  TaskSearchOptions options = SearchOptionsOf(spec);
  options.prior_record = -1;
  for (const store::JobEvent& event : events) {
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
  JobSnapshot& state = job_.state();
  state.allowance = std::max(state.allowance, Proposed());
  known_default_ = earlier.default_schedule.Confirmed();
  const std::map<int64_t, record::Record> own = earlier.own;
  const std::vector<record::Record> again = std::move(earlier.again);
  HONE_RETURN_IF_ERROR(Replay(events, std::move(options), std::move(earlier)));
  KeepConfirmed();
  CountAgain(own);
  if (HasLeader()) {
    challenges_.Restore(again);
    ShowLeader();
  }
  const auto untold = std::count_if(trials_.begin(), trials_.end(), [](const auto& trial) {
    return trial.first != kDefaultTrial && !trial.second.told;
  });
  state.unmeasured = Unmeasured() + untold;  // until Begin submits them
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
  for (auto& [trial, entry] : trials_) entry.told = earlier.own.contains(trial);
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
    if (entry.told || Proposed() == 0) continue;
    if (trial != kDefaultTrial && left-- <= 0) {
      entry.told = true;
      continue;
    }
    ++outstanding_;
    Submit(trial);
  }
  // The model learns results of other workloads while the first candidates are measured.
  first_model_pending_ = search_->KnowsResults() && search_->TrainingIsDue();
  MaybeTrain();
  Pump();
}

int SearchPhase::BatchSize() const { return BatchSizeOf(job_.spec(), job_.options()); }

int SearchPhase::NextBatch() const {
  const int batch = NextBatchOf(job_.spec(), job_.options(), Proposed());
  if (job_.spec().parent.empty()) return batch;
  return static_cast<int>(std::min<int64_t>(batch, job_.state().allowance - Proposed()));
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
  const bool may_propose = !stopping_ && !exhausted_ && !IsOutOfAllowance() && !ProposingIsLate() &&
                           (limit == 0 || Proposed() < limit);
  state.queued = outstanding_;
  if (HasLeader() && (may_propose || outstanding_ > 0)) challenges_.Continue();
  if (IsIdle()) return Settle();
  state.unmeasured = Unmeasured();
  if (!may_propose && outstanding_ == 0) {
    if (exhausted_ && !task_.IsDecided() && (limit == 0 || state.trials < limit)) {
      state.note =
          absl::StrCat("the design spaces are exhausted: all of their candidates are known after ",
                       Counted(state.trials, "trial"));
    }
    return on_done_();
  }
  const JobPhase before = state.phase;
  job_.SetPhase(stopping_           ? JobPhase{PhaseKind::kFinishing}
                : state.trials == 0 ? JobPhase{PhaseKind::kWaitingForResult}
                : LacksLeader()     ? JobPhase{PhaseKind::kMeasuringFirstAgain}
                                    : job_.silent_work());
  // Proposing may take long and publishes nothing, so the state is published first.
  if (state.trials <= kShownAtOnce || state.phase != before) job_.ShowState();
  if (!may_propose || outstanding_ > BatchSize() * job_.options().low_water) return;
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
  const bool first = Proposed() + outstanding_ == 0 && !trials_.at(kDefaultTrial).told;
  absl::StatusOr<ProposeEvent> event;
  const absl::Time began = job_.Steady();
  {
    const HostShare share(job_.options().respect_timing_lock);
    event = search_->Propose(NextBatch());
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
  if (first && job_.TimeLeft() <= absl::ZeroDuration()) late_submission_ = job_.Steady();
  if (first) trials.insert(trials.begin(), kDefaultTrial);
  outstanding_ += static_cast<int>(trials.size());
  // Candidates are submitted only when the event is durable, because a restarted job must know
  // them.
  job_.Log(Encode(job_.id(), *event), [this, trials = std::move(trials)] { Submit(trials); });
  job_.LeaveStep();
  if (event->proposals.empty() || fruitless_ >= kMaxFruitless) exhausted_ = true;
  job_.Post([this] { Pump(); });  // after results that arrived meanwhile
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
  if (trial == kDefaultTrial || task_.IsOnly(entry.candidate)) item.best_latency_ns = nullptr;
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
  ++job_.state().trials;
  ++job_.state().outcomes[record.result.outcome];
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
  if (record.trial != kDefaultTrial) {
    ++state.trials;
    ++state.outcomes[record.result.outcome];
  }
  if (record.is_default && !confirmed_default_) state.default_schedule = task_.MakeBest(record);
  if (task_.IsOnly(record.candidate)) state.given = task_.MakeBest(record);
  if (record.result.outcome != record::Outcome::kOk) return;
  Screened screened = ScreenedOf(record, worker_id);
  const double latency = screened.latency_ns;
  task_.LowerBestLatency(latency);
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

// The search phase of a job: propose, submit, commit, tell, train.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/host_share.h"
#include "server/task/exceptions.h"
#include "server/task/first_work.h"
#include "server/task/job.h"
#include "server/task/job_messages.h"
#include "spdlog/spdlog.h"

namespace hone::task {
namespace {

// Proposals in a row that are all known: the strategy has nothing new.
constexpr int kMaxFruitless = 5;
// Readers see each of so many results at once, and further ones at the next tick: showing a state
// copies it.
constexpr int64_t kShownAtOnce = 256;
// Candidates that are kept for the confirmation, whose finalists are some of the best of them:
// equal programs are one.
constexpr size_t kMaxScreened = 256;

}  // namespace

void Job::Pump() {
  if (state_.state != JobState::kRunning || first_model_pending_ || step_pending_) return;
  const int64_t assigned = static_cast<int64_t>(trials_.size());
  const int64_t left = spec_.max_trials > 0 ? spec_.max_trials - assigned : options_.max_batch;
  const bool may_propose = !stopping_ && !exhausted_ && left > 0;
  state_.queued = outstanding_;
  if (!may_propose && outstanding_ == 0) return StartConfirming();
  SetPhase(stopping_ ? "finishing what is under way"
                     : (state_.trials == 0 ? "waiting for the first result" : ""));
  if (state_.trials <= kShownAtOnce) ShowState();
  if (!may_propose) return;
  const int64_t eighth = spec_.max_trials > 0 ? spec_.max_trials / 8 : options_.max_batch;
  const int batch =
      static_cast<int>(std::clamp<int64_t>(eighth, options_.min_batch, options_.max_batch));
  if (outstanding_ > batch * options_.low_water) return;
  ProposeBatch();
}

void Job::ProposeBatch() {
  EnterStep(kProposing, [](Job& job) { job.Propose(); });
}

void Job::Propose() {
  doing_ = kProposing;
  if (stopping_) {  // since the step was stored
    LeaveStep();
    return Pump();
  }
  const int64_t eighth = spec_.max_trials > 0 ? spec_.max_trials / 8 : options_.max_batch;
  int64_t count = std::clamp<int64_t>(eighth, options_.min_batch, options_.max_batch);
  if (spec_.max_trials > 0) {
    count = std::min(count, spec_.max_trials - static_cast<int64_t>(trials_.size()));
  }
  LogTells();
  absl::StatusOr<ProposeEvent> event;
  {
    const HostShare share(options_.respect_timing_lock);
    event = search_->Propose(static_cast<int>(count));
  }
  if (!event.ok()) return End(JobState::kFailed, event.status());
  std::vector<int64_t> trials;
  for (const Proposal& proposal : event->proposals) {
    if (proposal.trial < 0) {
      ++state_.dropped;
      continue;
    }
    trials_[proposal.trial] = {.candidate = proposal.candidate, .event = event->number};
    trials.push_back(proposal.trial);
  }
  fruitless_ = trials.empty() ? fruitless_ + 1 : 0;
  outstanding_ += static_cast<int>(trials.size());
  // Nobody measures what a restarted job would not know of.
  Log(Encode(id_, *event), [trials = std::move(trials)](Job& job) { job.SubmitTrials(trials); });
  LeaveStep();
  if (event->proposals.empty() || fruitless_ >= kMaxFruitless) exhausted_ = true;
  Post(&Job::Pump);  // results that came meanwhile go first
}

void Job::SubmitTrials(const std::vector<int64_t>& trials) {
  if (HasEnded(state_.state)) return;
  for (const int64_t trial : trials) {
    if (!stopping_) {
      SubmitTrial(trial);
      continue;
    }
    --outstanding_;
    ++state_.dropped;
    trials_.at(trial).told = true;
  }
  if (stopping_) Pump();
}

void Job::SubmitTrial(int64_t trial) {
  const record::Candidate& candidate = trials_.at(trial).candidate;
  fleet::WorkItem item = MakeItem(candidate, SpaceText(candidate.space_digest));
  if (IsOnly(candidate)) item.best_latency_ns = nullptr;  // nothing stops early
  services_.fleet->Submit(
      std::move(item),
      [self = shared_from_this(), trial, proposed = trials_.at(trial).event,
       record = MakeRecord(candidate, trial)](absl::StatusOr<fleet::WorkResult> result,
                                              fleet::Acknowledge acknowledge) mutable {
        if (!result.ok()) {
          self->PostCall(
              [trial, status = result.status()](Job& job) { job.OnTrialError(trial, status); });
          return;
        }
        self->Commit(std::move(record), proposed, *std::move(result), std::move(acknowledge),
                     [](Job& job, const record::Record& stored, const std::string& worker) {
                       job.OnTrialRecord(stored, worker);
                     });
      });
}

void Job::OnTrialRecord(const record::Record& record, const std::string& worker_id) {
  if (HasEnded(state_.state)) return;
  --outstanding_;
  TellRecord(record, worker_id);
  MaybeTrain();
  Pump();
}

void Job::TellRecord(const record::Record& record, const std::string& worker_id) {
  Trial& trial = trials_.at(record.trial);
  if (trial.told) return;
  trial.told = true;
  doing_ = "telling the search a result";
  search_->Tell(record.trial,
                {record.candidate, record.result.outcome, record::SteadyLatencyNs(record.result)});
  CountRecord(record, worker_id);
}

void Job::OnTrialError(int64_t trial, const absl::Status& status) {
  if (HasEnded(state_.state)) return;
  if (absl::IsResourceExhausted(status) && !stopping_) {
    deferred_trials_.push_back(trial);
    SetPhase(absl::StrCat("waiting for room: ", status.message()));
    return ShowState();
  }
  --outstanding_;
  if (!absl::IsCancelled(status) && !absl::IsResourceExhausted(status))
    return End(JobState::kFailed, status);
  // It was stopped before it was measured: as if it had not been proposed.
  ++state_.dropped;
  trials_.at(trial).told = true;
  Pump();
}

void Job::Resubmit() {
  if (!deferred_trials_.empty()) SubmitTrials(std::exchange(deferred_trials_, {}));
  for (const int index : std::exchange(deferred_finalists_, {})) SubmitFinalist(index);
}

void Job::CountRecord(const record::Record& record, const std::string& worker_id) {
  ++state_.trials;
  ++state_.outcomes[record.result.outcome];
  if (record.is_default) state_.default_schedule = MakeBest(record);
  if (IsOnly(record.candidate)) state_.given = MakeBest(record);
  if (record.result.outcome != record::Outcome::kOk) return;
  Screen({record, worker_id});
  const double latency = record::SteadyLatencyNs(record.result);
  if (const double best = best_latency_->load(); best == 0 || latency < best) {
    best_latency_->store(latency);
  }
  if (!state_.best || latency < record::SteadyLatencyNs(state_.best->record.result)) {
    state_.best = MakeBest(record);
  }
}

void Job::Screen(Screened screened) {
  screened_.push_back(std::move(screened));
  if (screened_.size() < 2 * kMaxScreened) return;
  // The slow half cannot become finalists any more.
  const auto only_first = [this](const Screened& a, const Screened& b) {
    const bool only_a = IsOnly(a.record.candidate), only_b = IsOnly(b.record.candidate);
    if (only_a != only_b) return only_a;
    return record::SteadyLatencyNs(a.record.result) < record::SteadyLatencyNs(b.record.result);
  };
  std::nth_element(screened_.begin(), screened_.begin() + kMaxScreened, screened_.end(),
                   only_first);
  screened_.resize(kMaxScreened);
}

void Job::MaybeTrain() {
  if (state_.state != JobState::kRunning || stopping_ || !search_->TrainingIsDue()) return;
  // What the background needs lives as long as it runs; the model comes back by a message.
  services_.executor->Schedule([self = shared_from_this(), trainer = search_->trainer(),
                                spaces = spaces_, fresh = search_->TakeForTraining()] {
    absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> model;
    const absl::Status threw = CatchExceptions([&] {
      const HostShare share(self->options_.respect_timing_lock);
      model = trainer->Train(fresh);
    });
    self->PostCall([threw, model = std::move(model)](Job& job) mutable {
      if (job.search_ == nullptr) return;
      if (!threw.ok()) {
        job.doing_ = "training the model";
        return job.OnException(threw);
      }
      if (model.ok()) {
        job.search_->AdoptModel(*std::move(model));
      } else {
        spdlog::warn("job {}: training failed: {}", job.id_, model.status().ToString());
        job.search_->AbandonTraining();
      }
      job.first_model_pending_ = false;
      job.MaybeTrain();
      job.Pump();
    });
  });
}

}  // namespace hone::task

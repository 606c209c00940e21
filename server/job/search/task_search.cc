#include "server/job/search/task_search.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "server/job/search/model_work.h"

namespace hone::job {
namespace {

// A model is trained again when there are at least this many new results, and at least an eighth as
// many as it knows.
constexpr size_t kTrainingStep = 16;

// Without a time limit, the confirmation may take this part of the time of the search, or
// kLeastConfirmation for each task if that is longer.
constexpr double kConfirmationShare = 0.25;
constexpr absl::Duration kLeastConfirmation = absl::Seconds(20);
// The time of a limited confirmation suffices for this many measurements of the search. The one
// that is in progress has to end first, and that of a finalist takes longer.
constexpr int kLeastSteps = 3;

}  // namespace

absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> Trainer::Train(
    absl::Span<const search::Measured> fresh) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost_model::CostModel> model,
                        environment_->CreateModel(model_, options_));
  const std::string feature_set(model->feature_set());
  for (const search::Measured& measured : fresh) {
    const bool ok = measured.outcome == record::Outcome::kOk;
    if (ok && !IsPlausibleLatency(measured.latency_ns)) continue;
    if (!spaces_->AppendFeatures(feature_set, measured.candidate, &features_).ok()) continue;
    latencies_.push_back(ok ? measured.latency_ns : 0);
  }
  double best = 0;
  for (double latency : latencies_) {
    if (latency > 0 && (best == 0 || latency < best)) best = latency;
  }
  std::vector<double> throughput;
  for (double latency : latencies_) throughput.push_back(latency > 0 ? best / latency : 0);
  HONE_RETURN_IF_ERROR(model->Update(features_, throughput));
  return std::shared_ptr<const cost_model::CostModel>(std::move(model));
}

Digest CandidateDigest(const record::Candidate& candidate) {
  DigestBuilder builder;
  builder.Add(absl::string_view(candidate.space_digest));
  builder.Add(static_cast<int64_t>(candidate.decisions.size()));
  for (int64_t decision : candidate.decisions) builder.Add(decision);
  return builder.Finish();
}

absl::StatusOr<std::unique_ptr<TaskSearch>> TaskSearch::Create(
    const TaskEnvironment* environment, const TaskSpaces* spaces, TaskSearchOptions options,
    std::vector<search::Measured> prior) {
  auto search = std::unique_ptr<TaskSearch>(new TaskSearch(spaces, std::move(options)));
  const TaskSearchOptions& kept = search->options_;
  if (kept.strategy != kExternalStrategy) {
    HONE_ASSIGN_OR_RETURN(search->strategy_,
                          spaces->CreateStrategy(kept.strategy, kept.seed, kept.quick_start));
  }
  // One thread, because a model depends on the number of threads and must be the same on every
  // machine.
  const cost_model::CostModelOptions model_options{
      .seed = kept.seed, .feature_set = kept.feature_set, .threads = 1};
  HONE_ASSIGN_OR_RETURN(search->model_, environment->CreateModel(kept.cost_model, model_options));
  HONE_RETURN_IF_ERROR(spaces->CheckFeatureSet(std::string(search->model_->feature_set())));
  if (!search->model_->feature_set().empty()) {
    search->trainer_ =
        std::make_shared<Trainer>(environment, spaces, kept.cost_model, model_options);
  }
  search->next_event_ = kept.first_event;
  search->next_trial_ = kept.first_trial;
  // Continues after the steps of the earlier search, so no draw is repeated.
  search->step_ = kept.first_event + kept.first_trial - TaskSearchOptions().first_trial;
  for (const search::Measured& measured : prior) {
    search->known_.insert(CandidateDigest(measured.candidate));
    if (search->strategy_ != nullptr && spaces->IsSearched(measured.candidate)) {
      search->tells_.push_back(measured);
    }
  }
  if (!search->tells_.empty()) search->strategy_->Tell(search->tells_);
  return search;
}

absl::StatusOr<ProposeEvent> TaskSearch::Propose(int n) {
  ProposeEvent event{.number = next_event_,
                     .asked = n,
                     .model_version = model_version_,
                     .model_tells = static_cast<int64_t>(trained_tells_),
                     .prior_record = options_.prior_record};
  HONE_ASSIGN_OR_RETURN(std::vector<record::Candidate> candidates,
                        strategy_->Propose(n, static_cast<uint64_t>(step_), model_.get()));
  ++next_event_;
  ++step_;
  for (record::Candidate& candidate : candidates) {
    Proposal proposal{.candidate = std::move(candidate)};
    if (spaces_->IsLegal(proposal.candidate) &&
        known_.insert(CandidateDigest(proposal.candidate)).second) {
      proposal.trial = next_trial_++;
      trials_[proposal.trial] = proposal.candidate;
    }
    event.proposals.push_back(std::move(proposal));
  }
  return event;
}

ExternalEvent TaskSearch::AddExternal(std::string proposer, record::Candidate candidate) {
  known_.insert(CandidateDigest(candidate));
  trials_[next_trial_] = candidate;
  return {.number = next_event_++,
          .proposer = std::move(proposer),
          .proposal = {.candidate = std::move(candidate), .trial = next_trial_++}};
}

bool TaskSearch::IsKnown(const record::Candidate& candidate) const {
  return known_.contains(CandidateDigest(candidate));
}

void TaskSearch::Tell(int64_t trial, const search::Measured& measured) {
  known_.insert(CandidateDigest(measured.candidate));
  TellStrategy(measured);
  untaken_.push_back({trial, measured.outcome, measured.latency_ns});
  ++step_;
}

std::optional<TellEvent> TaskSearch::TakeTells() {
  if (untaken_.empty()) return std::nullopt;
  return TellEvent{.number = next_event_++, .told = std::exchange(untaken_, {})};
}

void TaskSearch::TellStrategy(const search::Measured& measured) {
  if (strategy_ == nullptr || !spaces_->IsSearched(measured.candidate)) return;
  strategy_->Tell(absl::MakeConstSpan(&measured, 1));
  tells_.push_back(measured);
}

bool TaskSearch::TrainingIsDue() const {
  if (trainer_ == nullptr || training_) return false;
  return tells_.size() - taken_tells_ >= std::max(kTrainingStep, taken_tells_ / 8);
}

std::vector<search::Measured> TaskSearch::TakeForTraining() {
  std::vector<search::Measured> fresh(tells_.begin() + taken_tells_, tells_.end());
  taken_tells_ = tells_.size();
  training_ = true;
  return fresh;
}

void TaskSearch::AdoptModel(std::shared_ptr<const cost_model::CostModel> model) {
  model_ = std::move(model);
  trained_tells_ = taken_tells_;
  ++model_version_;
  training_ = false;
}

absl::Status TaskSearch::ReplayPropose(const ProposeEvent& event) {
  if (static_cast<size_t>(event.model_tells) > tells_.size()) {
    return absl::AbortedError(
        absl::StrCat("event ", event.number, ": the model knew more results than were told"));
  }
  if (trainer_ != nullptr && static_cast<size_t>(event.model_tells) != trained_tells_) {
    const size_t begin = taken_tells_;
    taken_tells_ = static_cast<size_t>(event.model_tells);
    absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> model =
        trainer_->Train(absl::MakeConstSpan(tells_).subspan(begin, taken_tells_ - begin));
    if (!model.ok()) return absl::AbortedError(model.status().message());
    AdoptModel(*std::move(model));
  }
  model_version_ = event.model_version;
  HONE_ASSIGN_OR_RETURN(const ProposeEvent again, Propose(event.asked));
  if (again.number != event.number || again.proposals != event.proposals) {
    return absl::AbortedError(
        absl::StrCat("event ", event.number, ": the search proposes other candidates now"));
  }
  return absl::OkStatus();
}

absl::Status TaskSearch::ReplayExternal(const ExternalEvent& event) {
  const ExternalEvent again = AddExternal(event.proposer, event.proposal.candidate);
  if (again.number == event.number && again.proposal == event.proposal) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("event ", event.number, " is out of order"));
}

absl::Status TaskSearch::Replay(absl::Span<const store::JobEvent> events,
                                const record::Candidate& default_schedule) {
  for (const store::JobEvent& event : events) {
    if (event.kind == kProposeKind) {
      HONE_ASSIGN_OR_RETURN(const ProposeEvent propose, DecodePropose(event));
      HONE_RETURN_IF_ERROR(ReplayPropose(propose));
      continue;
    }
    if (event.kind == kExternalKind) {
      HONE_ASSIGN_OR_RETURN(const ExternalEvent external, DecodeExternal(event));
      HONE_RETURN_IF_ERROR(ReplayExternal(external));
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const TellEvent tells, DecodeTell(event));
    HONE_RETURN_IF_ERROR(ReplayTells(tells, default_schedule));
  }
  return absl::OkStatus();
}

absl::Status TaskSearch::ReplayTells(const TellEvent& event,
                                     const record::Candidate& default_schedule) {
  for (const TellEvent::Told& told : event.told) {
    search::Measured measured{.outcome = told.outcome, .latency_ns = told.latency_ns};
    if (told.trial == 0) {
      measured.candidate = default_schedule;
    } else if (auto trial = trials_.find(told.trial); trial != trials_.end()) {
      measured.candidate = trial->second;
    } else {
      return absl::AbortedError(
          absl::StrCat("event ", event.number, ": trial ", told.trial, " was never proposed"));
    }
    Tell(told.trial, measured);
  }
  if (TakeTells()->number != event.number) {
    return absl::AbortedError(absl::StrCat("event ", event.number, " is out of order"));
  }
  return absl::OkStatus();
}

TaskSearchOptions SearchOptionsOf(const JobSpec& spec) {
  return {.strategy = spec.strategy,
          .cost_model = spec.cost_model,
          .feature_set = spec.feature_set,
          .seed = spec.seed,
          .quick_start = !spec.parent.empty()};
}

int BatchSizeOf(const JobSpec& spec, const JobOptions& options) {
  if (spec.max_trials == 0) {
    if (spec.max_time == absl::ZeroDuration()) return options.max_batch;
    // A search of seconds must not spend them on proposing many candidates at once.
    const int64_t seconds = absl::ToInt64Seconds(spec.max_time);
    return static_cast<int>(std::clamp<int64_t>(seconds, options.min_batch, options.max_batch));
  }
  return static_cast<int>(
      std::clamp<int64_t>(spec.max_trials / 8, options.min_batch, options.max_batch));
}

absl::Duration ConfirmationTime(absl::Duration max_time, absl::Duration step) {
  const absl::Duration usual = std::clamp(max_time / 4, absl::Seconds(1), absl::Seconds(20));
  return std::min(max_time / 2, std::max(usual, kLeastSteps * step));
}

absl::Duration ConfirmationLimit(absl::Duration searched, bool cancelled, int64_t tasks) {
  const absl::Duration limit = std::max(kLeastConfirmation * tasks, searched * kConfirmationShare);
  return cancelled ? std::min(limit, kConfirmationAfterCancel) : limit;
}

search::Measured MeasuredOf(const record::Record& record) {
  return {record.candidate, record.result.outcome, record::SteadyLatencyNs(record.result)};
}

absl::StatusOr<EarlierResults> ReadEarlierResults(const JobActor& job, const JobTask& task,
                                                  int64_t up_to_record) {
  const JobSpec& spec = job.spec();
  EarlierResults earlier;
  std::set<Digest> seen;
  const auto add = [&](const record::Record& record) {
    if (record.tolerance != spec.tolerance) return;
    // A job keeps its own results, also if the inputs that workers make have changed since.
    if (record.job_id != job.id() && !task.HasSameInputs(record)) return;
    earlier.default_schedule.Add(record);
    if (record.policy.name != "screen") {
      const bool counts = record.job_id == job.id() && !record.quarantined &&
                          record.result.outcome == record::Outcome::kOk &&
                          record.result.processes == 0;
      if (counts) earlier.again.push_back(record);
      return;
    }
    if (record.job_id == job.id()) {
      earlier.own.emplace(record.trial, record);
      return;
    }
    if (record.quarantined) return;
    if (!task.spaces().IsSearched(record.candidate)) {
      if (!record.proposer.empty()) earlier.foreign.push_back(record.candidate);
      return;
    }
    if (up_to_record >= 0 && record.id > up_to_record) return;
    if (task.IsOnly(record.candidate)) return;  // otherwise it would not be measured again
    earlier.last_record = std::max(earlier.last_record, record.id);
    if (!seen.insert(CandidateDigest(record.candidate)).second) return;
    earlier.prior.push_back(MeasuredOf(record));
  };
  HONE_RETURN_IF_ERROR(job.services().store->ForEachRecord(
      {.workload_digest = task.workload().digest, .target = spec.target_key}, add));
  // A confirmation also measures the published best, which another job may have found.
  std::erase_if(earlier.again, [&](const record::Record& record) {
    const auto own = earlier.own.find(record.trial);
    return own == earlier.own.end() || own->second.candidate != record.candidate;
  });
  return earlier;
}

}  // namespace hone::job

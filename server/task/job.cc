// Start, restart and end of a job; the search phase is in job_search.cc, the confirmation in
// job_confirm.cc.

#include "server/task/job.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/task/first_work.h"
#include "server/task/job_codec.h"
#include "server/task/job_messages.h"
#include "spdlog/spdlog.h"

namespace hone::task {
namespace {

// A job in whose risky steps servers ended so often is not resumed by itself.
constexpr int kMostCrashes = 2;

absl::Status WhyGivenUp(const JobSnapshot& job, const std::string& crashed_while) {
  return absl::AbortedError(absl::StrCat(
      "the server ended abnormally ", job.crashes, " times while it worked on this job",
      crashed_while.empty() ? "" : absl::StrCat(", the last time while ", crashed_while),
      "; \"hone jobs resume ", job.id, "\" tries once more"));
}

}  // namespace

Job::Job(const JobServices& services, const JobOptions& options, JobSnapshot snapshot)
    : services_(services),
      options_(options),
      id_(snapshot.id),
      spec_(snapshot.spec),
      strand_(services.executor),
      state_(std::move(snapshot)),
      resumed_(services.SteadyNow()),
      earlier_wall_(state_.wall) {
  if (state_.risky_step.has_value()) {  // of an earlier server, and counted
    crashed_while_ = state_.risky_step->name;
    state_.risky_step.reset();
  }
  shown_ = std::make_shared<const JobSnapshot>(state_);
}

void Job::Start() { Post(&Job::Initialize); }

void Job::Cancel(bool confirm) {
  PostCall([confirm](Job& job) { job.OnCancel(confirm); });
}

void Job::Tick() {
  if (tick_posted_.exchange(true)) return;  // the strand is busy: one tick is enough
  Post(&Job::OnTick);
}

std::shared_ptr<const JobSnapshot> Job::snapshot() const {
  absl::MutexLock lock(&mutex_);
  return shown_;
}

void Job::Post(void (Job::*method)()) {
  PostCall([method](Job& job) { (job.*method)(); });
}

absl::Duration Job::Wall() const { return earlier_wall_ + (Steady() - resumed_); }

void Job::ShowState() {
  ++state_.version;
  shown_at_ = Steady();
  auto shown = std::make_shared<const JobSnapshot>(state_);
  absl::MutexLock lock(&mutex_);
  shown_ = std::move(shown);
}

store::JobRow Job::MakeRow(const JobSnapshot& state) const {
  return {.id = id_,
          .request_id = spec_.request_id,
          .request = EncodeSpec(spec_),
          .state = std::string(JobStateName(state.state)),
          .error = state.error,
          .summary = EncodeSnapshot(state),
          .created_unix_ms = state.created_unix_ms,
          .updated_unix_ms = absl::ToUnixMillis(Now()),
          .owner = spec_.owner,
          .priority = spec_.priority,
          .fence = state.fence};
}

void Job::Save(absl::AnyInvocable<void(const absl::Status&) &&> done) {
  LogTells();
  saved_ = Steady();
  const bool last = HasEnded(state_.state);
  absl::MutexLock lock(&save_mutex_);
  if (suspended_ && !last) return;
  at_shutdown_.reset();
  if (!last && (state_.risky_step.has_value() || state_.crashes > 0)) {
    at_shutdown_ = state_;
    at_shutdown_->risky_step.reset();
    at_shutdown_->crashes = 0;
  }
  services_.store->PutJob(MakeRow(state_), [self = shared_from_this(), last,
                                            done = std::move(done)](absl::Status status) mutable {
    if (!status.ok()) {
      spdlog::error("job {}: its state could not be stored: {}", self->id_, status.ToString());
    }
    if (absl::IsAborted(status)) self->PostCall([status](Job& job) { job.OnNotStored(status); });
    if (last && status.ok()) self->over_ = true;
    std::move(done)(status);
  });
}

void Job::Log(store::JobEvent event) {
  event.fence = state_.fence;
  services_.store->AppendEvent(std::move(event), [self = shared_from_this()](absl::Status status) {
    if (status.ok()) return;
    self->PostCall([status](Job& job) { job.OnNotStored(status); });
  });
}

void Job::LogTells() {
  if (search_ == nullptr) return;
  if (const std::optional<TellEvent> tells = search_->TakeTells()) Log(Encode(id_, *tells));
}

void Job::OnNotStored(const absl::Status& status) {
  if (!absl::IsAborted(status)) return End(JobState::kFailed, status);
  spdlog::warn("job {}: is left to another server: {}", id_, std::string(status.message()));
  Suspend();
  services_.fleet->CancelJob(id_);  // the other one has its workers measure
  over_ = true;
}

void Job::Initialize() {
  if (HasEnded(state_.state)) return;  // cancelled while it waited for its turn
  if (state_.crashes >= kMostCrashes)
    return End(JobState::kFailed, WhyGivenUp(state_, crashed_while_));
  state_.state = JobState::kRunning;
  SetPhase(kMakingSpaces);
  ShowState();
  Save();
  if (services_.preflight == nullptr) return OnChecked(absl::OkStatus());
  services_.preflight->Check(spec_, [self = shared_from_this()](const absl::Status& checked) {
    self->PostCall([checked](Job& job) { job.OnChecked(checked); });
  });
}

void Job::OnChecked(const absl::Status& checked) {
  if (HasEnded(state_.state)) return;
  if (absl::IsCancelled(checked)) return;  // the next server goes on
  if (!checked.ok()) return End(JobState::kFailed, checked);
  EnterStep(kMakingSpaces, [](Job& job) { job.Begin(); });
}

void Job::Begin() {
  doing_ = kMakingSpaces;
  if (absl::Status status = OpenTask(); !status.ok()) return End(JobState::kFailed, status);
  if (spec_.revalidate > 0) {
    LeaveStep();
    begun_ = true;
    return StartRevalidating();
  }
  doing_ = "taking up the search";
  if (absl::Status status = RestoreSearch(); !status.ok()) return End(JobState::kFailed, status);
  LeaveStep();
  begun_ = true;
  if (state_.cancelled) {
    // Before the server went away: what was measured is confirmed.
    cancelled_ = stopping_ = true;
    drain_deadline_ = Steady();
    return Pump();
  }
  // The default schedule first: what tuning is compared with.
  trials_.emplace(0, Trial{.candidate = spaces_->default_schedule()});
  for (const auto& [trial, entry] : trials_) {
    if (entry.told) continue;
    ++outstanding_;
    SubmitTrial(trial);
  }
  // Results of other workloads are learnt while the first candidates are measured.
  first_model_pending_ = search_->KnowsResults() && search_->TrainingIsDue();
  MaybeTrain();
  Pump();
}

absl::Status Job::OpenTask() {
  HONE_ASSIGN_OR_RETURN(workload_, services_.environment->Describe(spec_.workload));
  HONE_ASSIGN_OR_RETURN(spaces_, services_.environment->Open(spec_.workload, spec_.target,
                                                             spec_.space, spec_.tolerance));
  only_ = spaces_->only_candidate();
  state_.workload_digest = workload_.digest;
  auto keep = [this](const std::string& digest, const std::string& text) {
    services_.store->PutText(digest, text, [self = shared_from_this()](absl::Status status) {
      if (status.ok()) return;
      self->PostCall([status](Job& job) { job.End(JobState::kFailed, status); });
    });
  };
  keep(workload_.digest, workload_.text);
  for (const SpaceInfo& space : spaces_->spaces()) {
    space_texts_[space.digest] = space.text;
    keep(space.digest, space.text);
  }
  return absl::OkStatus();
}

absl::Status Job::RestoreSearch() {
  HONE_ASSIGN_OR_RETURN(const std::vector<store::JobEvent> events, services_.store->Events(id_));
  TaskSearchOptions options{.strategy = spec_.strategy,
                            .cost_model = spec_.cost_model,
                            .feature_set = spec_.feature_set,
                            .seed = spec_.seed,
                            .prior_record = -1,
                            .transfer_record = -1,
                            .transfer_model = -1};
  for (const store::JobEvent& event : events) {
    if (event.kind != kProposeKind) continue;
    HONE_ASSIGN_OR_RETURN(const ProposeEvent propose, DecodePropose(event));
    if (options.prior_record < 0) options.prior_record = propose.prior_record;
    if (options.transfer_record < 0) options.transfer_record = propose.transfer_record;
    if (options.transfer_model < 0) options.transfer_model = propose.transfer_model;
    for (const Proposal& proposal : propose.proposals) {
      if (proposal.trial < 0) continue;
      trials_[proposal.trial] = {.candidate = proposal.candidate, .event = propose.number};
      options.first_trial = std::max(options.first_trial, proposal.trial + 1);
    }
  }

  // Everything that the store knows of this task: earlier jobs' results, and those of this job.
  std::vector<search::Measured> prior;
  std::map<int64_t, record::Record> own;
  std::set<Digest> seen;
  int64_t last_record = 0;
  store::RecordQuery query{
      .workload_digest = workload_.digest, .target = spec_.target_key, .page_size = 1000};
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, services_.store->Query(query));
    for (const record::Record& record : page) {
      query.after_id = record.id;
      if (record.policy.name != "screen" || record.tolerance != spec_.tolerance) continue;
      if (record.job_id == id_) {
        own.emplace(record.trial, record);
        continue;
      }
      if (options.prior_record >= 0 && record.id > options.prior_record) continue;
      if (record.quarantined || !spaces_->IsSearched(record.candidate)) continue;
      if (IsOnly(record.candidate)) continue;  // or it would not be measured again
      last_record = std::max(last_record, record.id);
      if (!seen.insert(CandidateDigest(record.candidate)).second) continue;
      prior.push_back(
          {record.candidate, record.result.outcome, record::SteadyLatencyNs(record.result)});
    }
    if (static_cast<int>(page.size()) < query.page_size) break;
  }
  if (options.prior_record < 0) options.prior_record = last_record;
  for (const search::Measured& measured : prior) {
    if (measured.outcome != record::Outcome::kOk) continue;
    const double best = best_latency_->load();
    if (best == 0 || measured.latency_ns < best) best_latency_->store(measured.latency_ns);
  }

  HONE_ASSIGN_OR_RETURN(options.transfer,
                        FindTransfer(options.transfer_record, options.transfer_model));
  options.transfer_record = options.transfer == nullptr ? 0 : options.transfer->last_record;
  options.transfer_model = options.transfer == nullptr ? 0 : options.transfer->model_id;
  TaskSearchOptions fresh = options;
  fresh.first_trial = TaskSearchOptions().first_trial;
  HONE_ASSIGN_OR_RETURN(search_,
                        TaskSearch::Create(services_.environment, spaces_.get(), fresh, prior));
  trials_[0] = {.candidate = spaces_->default_schedule()};
  if (absl::Status replayed = search_->Replay(events, spaces_->default_schedule());
      absl::IsAborted(replayed)) {
    // A newer program searches differently: it goes on from what was measured.
    spdlog::warn("job {}: its search is begun anew with what was measured: {}", id_,
                 replayed.ToString());
    for (const auto& [trial, record] : own) {
      prior.push_back(
          {record.candidate, record.result.outcome, record::SteadyLatencyNs(record.result)});
    }
    options.first_event = static_cast<int64_t>(events.size());
    HONE_ASSIGN_OR_RETURN(search_, TaskSearch::Create(services_.environment, spaces_.get(), options,
                                                      std::move(prior)));
    for (auto& [trial, entry] : trials_) entry.told = own.contains(trial);
  } else {
    HONE_RETURN_IF_ERROR(replayed);
    for (const store::JobEvent& event : events) {
      if (event.kind != kTellKind) continue;
      HONE_ASSIGN_OR_RETURN(const TellEvent tells, DecodeTell(event));
      for (const TellEvent::Told& told : tells.told) trials_[told.trial].told = true;
    }
  }

  // Counts are made again from the records; one that was committed but not told yet is told now.
  state_.trials = 0;
  state_.outcomes.clear();
  state_.best.reset();
  state_.default_schedule.reset();
  state_.given.reset();
  for (const auto& [trial, record] : own) {
    auto entry = trials_.find(trial);
    if (entry == trials_.end()) continue;
    if (entry->second.told) {
      CountRecord(record, "");
    } else {
      TellRecord(record, "");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Transfer>> Job::FindTransfer(int64_t up_to_record,
                                                                  int64_t model_id) const {
  // A decided space has one candidate; and a search that began from nothing goes on so.
  if (!spec_.transfer || only_.has_value() || (up_to_record == 0 && model_id == 0)) return nullptr;
  HONE_ASSIGN_OR_RETURN(Transfer transfer,
                        GatherTransfer(*services_.store, *services_.environment, *spaces_,
                                       {.workload = workload_,
                                        .target_key = spec_.target_key,
                                        .tolerance = spec_.tolerance,
                                        .up_to_record = up_to_record,
                                        .cost_model = spec_.cost_model,
                                        .feature_set = spec_.feature_set,
                                        .model_id = model_id}));
  if (transfer.empty()) return nullptr;
  spdlog::info("job {}: starts from {} results of {} other workloads{} and {} adapted candidates",
               id_, transfer.results, transfer.workloads,
               transfer.model == nullptr ? "" : absl::StrCat(", stored model ", transfer.model_id),
               transfer.seeds.size());
  return std::make_shared<const Transfer>(std::move(transfer));
}

std::string Job::SpaceText(const std::string& digest) const {
  auto found = space_texts_.find(digest);
  return found == space_texts_.end() ? "" : found->second;
}

Best Job::MakeBest(const record::Record& record) const {
  Best best = BestOf(record, workload_.flops, peak_gflops_);
  best.read_gbps = read_gbps_;
  best.workload = workload_.text;
  best.record.result.samples_ns.clear();  // clients that want them list the records
  std::string space = SpaceText(record.candidate.space_digest);
  if (space.empty()) {
    absl::StatusOr<std::string> stored = services_.store->GetText(record.candidate.space_digest);
    if (stored.ok()) space = *std::move(stored);
  }
  absl::StatusOr<std::string> trace =
      services_.environment->TraceText(workload_.text, space, record.candidate.decisions);
  if (trace.ok()) best.trace = *std::move(trace);
  return best;
}

fleet::WorkItem Job::MakeItem(const record::Candidate& candidate, const std::string& space) const {
  return {.job_id = id_,
          .owner = spec_.owner,
          .priority = PriorityOf(spec_.priority),
          .workload = workload_.text,
          .workload_digest = workload_.digest,
          .space = space,
          .space_digest = candidate.space_digest,
          .decisions = candidate.decisions,
          .target = spec_.target,
          .target_key = spec_.target_key,
          .tolerance = spec_.tolerance,
          .best_latency_ns = best_latency_,
          .least_operations = spec_.tolerance > 0 ? workload_.least_operations_tolerant
                                                  : workload_.least_operations};
}

record::Record Job::MakeRecord(const record::Candidate& candidate, int64_t trial) const {
  return {.workload_digest = workload_.digest,
          .op = workload_.op,
          .target = spec_.target_key,
          .tolerance = spec_.tolerance,
          .candidate = candidate,
          .job_id = id_,
          .trial = trial,
          .is_default = trial == 0};
}

void Job::OnCancel(bool confirm) {
  if (HasEnded(state_.state)) return;
  cancelled_ = true;
  if (!confirm) {
    services_.fleet->CancelJob(id_);
    return End(JobState::kCancelled);
  }
  if (state_.state == JobState::kPending) {
    state_.cancelled = true;  // it ends when it has begun
    return Save();
  }
  if (state_.state != JobState::kRunning || stopping_) return;
  stopping_ = true;
  drain_deadline_ = Steady() + options_.drain_limit;
  state_.cancelled = true;
  Save();
  services_.fleet->CancelWaiting(id_);
  Pump();
}

void Job::OnTick() {
  tick_posted_ = false;
  if (HasEnded(state_.state)) {
    // An end that could not be stored – the disk was full – is stored when that has passed: only
    // then can the job be resumed.
    if (!over_ && Steady() >= saved_ + options_.save_interval) Save();
    return;
  }
  state_.wall = Wall();
  if (state_.state == JobState::kRunning && !stopping_ && spec_.max_time > absl::ZeroDuration() &&
      state_.wall >= spec_.max_time) {
    stopping_ = true;
    drain_deadline_ = Steady() + options_.drain_limit;
    services_.fleet->CancelWaiting(id_);
  }
  if (stopping_ && Steady() >= drain_deadline_) {
    drain_deadline_ = absl::InfiniteFuture();
    services_.fleet->CancelJob(id_);
  }
  Resubmit();
  if (state_.state == JobState::kConfirming) {
    if (!ranking_.empty()) Publish();
  } else {
    Pump();
  }
  if (!HasEnded(state_.state) && Steady() >= saved_ + options_.save_interval) Save();
  if (Steady() >= shown_at_ + options_.show_interval) ShowState();
}

void Job::End(JobState state, absl::Status why) {
  if (HasEnded(state_.state)) return;
  state_.state = state;
  state_.wall = Wall();
  state_.queued = 0;
  state_.phase.clear();
  state_.risky_step.reset();
  state_.crashes =
      state_.crashes >= kMostCrashes ? kMostCrashes - 1 : 0;  // resumed, it has one try
  begun_ = true;
  if (state == JobState::kFailed) {
    state_.error = std::string(why.message());
    spdlog::warn("job {}: failed: {}", id_, why.ToString());
  }
  services_.fleet->CancelJob(id_);  // what is left: nobody waits for it
  spdlog::info("job {}: {} after {} trials", id_, std::string(JobStateName(state)), state_.trials);
  Save();
  ShowState();
  search_.reset();
  screened_.clear();
  confirmation_.reset();
}

}  // namespace hone::task

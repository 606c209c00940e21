#include "server/job/actor/job_task.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/record/given_inputs.h"
#include "server/job/search/draft_work.h"

namespace hone::job {
namespace {

struct Limits {
  double drift;
  double steal;
  double dispersion;
  double over_fastest;  // the median over the fastest sample
  double over_earlier;  // the latency over that of an earlier process
};
constexpr double kUnlimited = std::numeric_limits<double>::infinity();
// Screening takes few samples, and the candidates that it selects are measured again.
constexpr Limits kScreen = {.drift = 4,
                            .steal = 0.5,
                            .dispersion = kUnlimited,
                            .over_fastest = kUnlimited,
                            .over_earlier = kUnlimited};
// Latencies are corrected for the drift of the probe's kernel, but other kernels may be slowed down
// more or less than the probe. A published latency must not depend on a large correction.
// On a very busy machine, nearly all samples may be slow, and about equally so: then only the
// fastest shows that the kernel is not.
constexpr Limits kConfirm = {
    .drift = 1.5, .steal = 0.3, .dispersion = 0.5, .over_fastest = 2, .over_earlier = 5};
// Two processes that agree within this factor were not disturbed, even if the machine is slow: on a
// virtual machine it may stay so, for example because its cores are threads of cores that others
// use, too. Other programs that take time would slow some processes more than others.
constexpr double kAgreement = 1.15;
constexpr double kAgreeingDrift = 2.5;
constexpr double kHottestC = 98;  // processors throttle at 95 to 105

double OverFastest(const std::vector<double>& samples_ns) {
  if (samples_ns.empty()) return 1;
  return Median(samples_ns) / *std::min_element(samples_ns.begin(), samples_ns.end());
}

}  // namespace

absl::Status JobTask::Open(StopCheck check) {
  const JobSpec& spec = job_.spec();
  const TaskEnvironment& environment = *job_.services().environment;
  HONE_ASSIGN_OR_RETURN(workload_, environment.Describe(spec.workload));
  HONE_ASSIGN_OR_RETURN(
      spaces_, environment.Open(
                   spec.workload, spec.target, spec.space, spec.tolerance, std::move(check),
                   LoadDraft(job_.services().store, environment, spec.draft_model, spec.target)));
  only_ = spaces_->only_candidate();
  JobSnapshot& state = job_.state();
  for (const std::optional<Best>* known : {&state.best, &state.default_schedule, &state.given}) {
    if (known->has_value()) RaisePeaks((*known)->peak_gflops, (*known)->read_gbps);
  }
  Keep(workload_.digest, workload_.text);
  for (const SpaceInfo& space : spaces_->spaces()) {
    space_texts_[space.digest] = space.text;
    Keep(space.digest, space.text);
  }
  return absl::OkStatus();
}

void JobTask::Keep(const std::string& digest, const std::string& text) {
  job_.services().store->PutText(
      digest, text, [&job = job_, self = job_.shared_from_this()](absl::Status status) {
        if (status.ok()) return;
        self->Post([&job, status] { job.OnNotStored(status); });
      });
}

std::string JobTask::SpaceText(const std::string& digest) const {
  const auto found = space_texts_.find(digest);
  return found == space_texts_.end() ? "" : found->second;
}

void JobTask::AddSpace(const std::string& digest, const std::string& text) {
  if (!space_texts_.emplace(digest, text).second) return;
  added_bytes_ += text.size();
  Keep(digest, text);
}

void JobTask::RaisePeaks(double gflops, double read_gbps) {
  peak_gflops_ = std::max(peak_gflops_, gflops);
  read_gbps_ = std::max(read_gbps_, read_gbps);
}

bool JobTask::HasSameInputs(const record::Record& record) const {
  const std::string& given = job_.spec().inputs_digest;
  return record.result.inputs == (given.empty() ? record::kSeededInputs : given);
}

void JobTask::LowerBestLatency(double latency_ns) {
  const double best = best_latency_->load();
  if (best == 0 || latency_ns < best) best_latency_->store(latency_ns);
}

fleet::WorkItem JobTask::MakeItem(const record::Candidate& candidate,
                                  const std::string& space) const {
  const JobSpec& spec = job_.spec();
  return {.job_id = job_.id(),
          .owner = spec.owner,
          .priority = PriorityOf(spec.priority),
          .workload = workload_.text,
          .workload_digest = workload_.digest,
          .op = workload_.op,
          .space = space,
          .space_digest = candidate.space_digest,
          .decisions = candidate.decisions,
          .target = spec.target,
          .target_key = spec.target_key,
          .tolerance = spec.tolerance,
          .inputs_digest = spec.inputs_digest,
          // With a tolerance, a kernel may need fewer operations, as Winograd kernels do.
          .fixed_flops = spec.tolerance > 0 ? 0 : workload_.fixed_flops};
}

record::Record JobTask::MakeRecord(const record::Candidate& candidate, int64_t trial) const {
  const auto proposer = proposers_.find(trial);
  return {.workload_digest = workload_.digest,
          .op = workload_.op,
          .target = job_.spec().target_key,
          .tolerance = job_.spec().tolerance,
          .candidate = candidate,
          .job_id = job_.id(),
          .trial = trial,
          .is_default = trial == 0,
          .proposer = proposer == proposers_.end() ? "" : proposer->second};
}

absl::StatusOr<store::BestRow> JobTask::PublishedBest() const {
  return job_.services().store->LookupBest({.workload_digest = workload_.digest,
                                            .target = job_.spec().target_key,
                                            .tolerance = job_.spec().tolerance});
}

Best JobTask::MakeBest(const record::Record& record, const store::Pin& pin) const {
  const bool has_peak = workload_.has_fma_peak && peak_gflops_ > 0;
  Best best = BestOf(record, workload_.flops,
                     has_peak ? std::max(peak_gflops_, LeastPeakOf(workload_, record)) : 0);
  best.read_gbps = read_gbps_;
  best.pinned_by = pin.by;
  best.pinned_unix_ms = pin.unix_ms;
  best.workload = workload_.text;
  best.record.result.samples_ns.clear();  // clients that need them list the records
  std::string space = SpaceText(record.candidate.space_digest);
  if (space.empty()) {
    absl::StatusOr<std::string> stored =
        job_.services().store->GetText(record.candidate.space_digest);
    if (stored.ok()) space = *std::move(stored);
  }
  absl::StatusOr<std::string> trace =
      job_.services().environment->TraceText(space, record.candidate.decisions);
  if (trace.ok()) best.trace = *std::move(trace);
  return best;
}

// The way of one candidate. Its steps follow each other in the order below; each keeps this object,
// and with it the job, alive for the next one.
class JobTask::Measurement : public std::enable_shared_from_this<Measurement> {
 public:
  Measurement(JobTask& task, record::Record record, int64_t event, double earlier_ns,
              OnRecord on_record, OnError on_error)
      : task_(task),
        job_(task.job_.shared_from_this()),
        record_(std::move(record)),
        event_(event),
        earlier_ns_(earlier_ns),
        on_record_(std::move(on_record)),
        on_error_(std::move(on_error)) {}

  // On the strand.
  void Submit(fleet::WorkItem item) {
    job_->services().fleet->Submit(
        std::move(item), [self = shared_from_this()](absl::StatusOr<fleet::WorkResult> result,
                                                     fleet::Acknowledge acknowledge) {
          self->acknowledge_ = std::move(acknowledge);
          result.ok() ? self->Complete(*std::move(result)) : self->Refuse(result.status());
        });
  }

 private:
  // In any thread. The fleet has no result.
  void Refuse(const absl::Status& why) {
    job_->Post([self = shared_from_this(), why] { std::move(self->on_error_)(why); });
  }

  // In any thread. Decides what the result is worth.
  void Complete(fleet::WorkResult result) {
    record_.result = std::move(result.result);
    record_.environment = std::move(result.environment);
    record_.created_unix_ms = absl::ToUnixMillis(job_->Now());
    worker_ = std::move(result.worker_id);
    peak_gflops_ = result.peak_gflops;
    read_gbps_ = result.read_gbps;
    const bool ok = record_.result.outcome == record::Outcome::kOk;
    const std::string& given = job_->spec().inputs_digest;
    if (ok && !(record_.result.latency_ns > 0)) {
      record_.result.outcome = record::Outcome::kCrash;
      record_.result.detail = "the worker reported no latency";
    } else if (ok && !given.empty() && record_.result.inputs != given) {
      record_.result.outcome = record::Outcome::kDeviceLost;
      record_.result.detail =
          absl::StrCat("worker ", worker_, " did not measure on the given data");
    }
    record_.quarantine_reason = WhyOutOfPolicy(record_, earlier_ns_);
    record_.quarantined = !record_.quarantine_reason.empty();
    Store();
  }

  // In any thread.
  void Store() {
    job_->services().store->Append(
        std::move(record_), job_->Step(event_),
        [self = shared_from_this()](absl::StatusOr<record::Record> stored) {
          self->Acknowledge(std::move(stored));
        });
  }

  // In the store's thread. The worker keeps the result until it is durable.
  void Acknowledge(absl::StatusOr<record::Record> stored) {
    if (stored.ok()) std::move(acknowledge_)();
    job_->Post([self = shared_from_this(), stored = std::move(stored)] { self->Report(stored); });
  }

  // On the strand.
  void Report(const absl::StatusOr<record::Record>& stored) {
    if (!stored.ok()) return job_->OnNotStored(stored.status());
    if (stored->quarantined) {
      ++job_->state().disturbed;
      job_->state().disturbance =
          absl::StrCat("on worker ", worker_, ", ", stored->quarantine_reason);
    }
    task_.RaisePeaks(peak_gflops_, read_gbps_);
    std::move(on_record_)(*stored, worker_);
  }

  JobTask& task_;  // a member of the job
  const std::shared_ptr<JobActor> job_;
  record::Record record_;
  const int64_t event_;
  const double earlier_ns_;
  OnRecord on_record_;
  OnError on_error_;
  fleet::Acknowledge acknowledge_;
  std::string worker_;  // that measured it
  double peak_gflops_ = 0;
  double read_gbps_ = 0;
};

void JobTask::Measure(fleet::WorkItem item, record::Record record, int64_t event, double earlier_ns,
                      OnRecord on_record, OnError on_error) {
  record.policy = item.policy;
  std::make_shared<Measurement>(*this, std::move(record), event, earlier_ns, std::move(on_record),
                                std::move(on_error))
      ->Submit(std::move(item));
}

void JobTask::Quarantine(const record::Candidate& candidate, int64_t last_record,
                         const std::string& why) {
  ++job_.state().quarantined;
  job_.services().store->Quarantine(workload_.digest, job_.spec().target_key, candidate,
                                    last_record, why,
                                    [this, self = job_.shared_from_this()](absl::Status status) {
                                      if (status.ok()) return;
                                      self->Post([this, status] { job_.OnNotStored(status); });
                                    });
}

std::string WhyOutOfPolicy(const record::Record& record, double earlier_ns) {
  const record::MeasureResult& result = record.result;
  if (result.outcome != record::Outcome::kOk) return "";
  Limits limits = record.policy.name == "confirm" ? kConfirm : kScreen;
  const double over_earlier = earlier_ns > 0 ? record::SteadyLatencyNs(result) / earlier_ns : 1;
  if (earlier_ns > 0 && over_earlier < kAgreement && over_earlier > 1 / kAgreement) {
    limits.drift = std::max(limits.drift, kAgreeingDrift);
    limits.steal = std::max(limits.steal, kScreen.steal);
  }
  if (result.reference_drift > limits.drift) {
    return absl::StrFormat(
        "the machine was %.1f times as slow as when its worker registered (%g times are "
        "tolerated)",
        result.reference_drift, limits.drift);
  }
  if (result.machine.steal > limits.steal) {
    return absl::StrFormat("the host took away %.0f %% of the time (%.0f %% are tolerated)",
                           100 * result.machine.steal, 100 * limits.steal);
  }
  if (!result.stopped_early && result.dispersion > limits.dispersion) {
    return absl::StrFormat(
        "repeated runs differed by %.0f %% of their median (%.0f %% are tolerated)",
        100 * result.dispersion, 100 * limits.dispersion);
  }
  if (const double times = OverFastest(result.samples_ns); times > limits.over_fastest) {
    return absl::StrFormat(
        "half of the runs took at least %.1f times as long as the fastest (%g times are "
        "tolerated)",
        times, limits.over_fastest);
  }
  if (over_earlier > limits.over_earlier) {
    return absl::StrFormat(
        "the kernel took %.2g times as long as when it was measured first (%g times are tolerated)",
        over_earlier, limits.over_earlier);
  }
  if (result.machine.temperature_c > kHottestC) {
    return absl::StrFormat("the processor was at %.0f °C (%.0f °C are tolerated)",
                           result.machine.temperature_c, kHottestC);
  }
  return "";
}

}  // namespace hone::job

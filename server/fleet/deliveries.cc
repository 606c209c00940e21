#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/fleet/fleet_parts.h"

namespace hone::fleet {
namespace {

constexpr double kPeakMargin = 1.25;
constexpr double kLongestNs = 3.6e12;  // an hour
constexpr size_t kMostBuilders = 1 << 16;

// The peak of an accelerator is what a single kernel reached on it, and others may be faster.
bool BeatsPeak(const WorkItem& work, double latency_ns, const Capabilities& device) {
  return device.accelerator.empty() && work.fixed_flops > 0 && device.peak_gflops > 0 &&
         latency_ns * kPeakMargin * device.peak_gflops < work.fixed_flops;
}

}  // namespace

void DropImpossibleDrift(const WorkItem& work, const Capabilities& device,
                         record::MeasureResult* result) {
  if (result->outcome != record::Outcome::kOk || !(result->reference_drift > 1)) return;
  if (BeatsPeak(work, result->latency_ns, device) ||
      !BeatsPeak(work, record::SteadyLatencyNs(*result), device)) {
    return;
  }
  result->detail = absl::StrFormat(
      "the reference drift of %.2f is ignored, because the corrected latency would be faster than "
      "the device's peak",
      result->reference_drift);
  result->reference_drift = 1;
}

std::string WhyImpossible(const WorkItem& work, const record::MeasureResult& result,
                          const Capabilities& device) {
  if (result.outcome != record::Outcome::kOk) return "";
  if (!std::isfinite(result.latency_ns) || !(result.latency_ns > 0) ||
      result.latency_ns > kLongestNs) {
    return absl::StrFormat("a latency of %g ns", result.latency_ns);
  }
  for (const double sample : result.samples_ns) {
    if (!std::isfinite(sample) || sample < 0) return absl::StrFormat("a sample of %g ns", sample);
  }
  if (!BeatsPeak(work, record::SteadyLatencyNs(result), device)) return "";
  return absl::StrFormat(
      "%.0f ns for %.3g operations, on a device that was measured at %.4g operations per ns",
      result.latency_ns, work.fixed_flops, device.peak_gflops);
}

// Reports once how the commit of a result ended: the job calls End(true) when the result is
// durable, or destroys this object to drop the result.
class Deliveries::Commit {
 public:
  Commit(const CommitEnded* ended, std::string lease_id)
      : ended_(ended), lease_id_(std::move(lease_id)) {}
  Commit(Commit&& other) noexcept
      : ended_(other.ended_), lease_id_(std::exchange(other.lease_id_, "")) {}
  Commit& operator=(Commit&&) = delete;
  ~Commit() { End(false); }
  void End(bool durable) {
    if (!lease_id_.empty()) (*ended_)(std::exchange(lease_id_, ""), durable);
  }

 private:
  const CommitEnded* ended_;
  std::string lease_id_;  // "" once it has ended
};

std::string Deliveries::WhyRetried(const Worker& worker, const Lease& lease,
                                   const record::MeasureResult& result) {
  if (result.outcome == record::Outcome::kDeviceLost &&
      ++parts_.book.ItemOf(lease).device_errors < parts_.options.max_device_errors) {
    return absl::StrCat(worker.id, ": ", result.detail);  // the worker's failure
  }
  if (!lease.run && !parts_.book.ItemOf(lease).work->only_digest &&
      result.outcome == record::Outcome::kOk && !parts_.artifacts.Has(result.artifact_digest)) {
    return absl::StrCat("artifact ", result.artifact_digest, " of ", worker.id, " did not arrive");
  }
  return "";
}

std::string Deliveries::Take(Worker& worker, FinishedLease& finished) {
  const Lease* found = parts_.book.Find(finished.lease_id);
  if (found == nullptr || found->worker_id != worker.id) {
    auto commit = committing_.find(finished.lease_id);
    if (commit != committing_.end() && commit->second == worker.id) return "";
    worker.news.durable.push_back(finished.lease_id);  // already committed or refused
    ++refused_;
    return "";
  }
  const Lease lease = *found;
  const WorkItem& work = *parts_.book.ItemOf(lease).work;
  record::MeasureResult& result = finished.result;
  std::string wrong = finished.malformed;
  if (lease.run) DropImpossibleDrift(work, worker.capabilities, &result);
  if (wrong.empty() && lease.run) wrong = WhyImpossible(work, result, worker.capabilities);
  if (!wrong.empty()) {
    wrong = absl::StrCat("reported an impossible result: ", wrong);
    worker.news.durable.push_back(lease.id);
    ++refused_;
    EndLease(lease.id, {.why = absl::StrCat(worker.id, " ", wrong)});
    return absl::StrCat("it ", wrong);
  }
  const bool ok = result.outcome == record::Outcome::kOk;
  if (ok && lease.build && !work.only_digest) {
    if (builders_.size() >= kMostBuilders) builders_.clear();
    builders_[result.artifact_digest] = worker.id;
  }
  if (result.outcome == record::Outcome::kCrash || result.outcome == record::Outcome::kDeviceLost) {
    worker.last_error =
        absl::StrCat(absl::string_view(record::OutcomeName(result.outcome)), ": ", result.detail);
  }
  if (std::string why = WhyRetried(worker, lease, result); !why.empty()) {
    worker.news.durable.push_back(lease.id);
    EndLease(lease.id, {.why = std::move(why)});
    return "";
  }
  if (!lease.run && ok && !work.only_digest) {
    worker.news.durable.push_back(lease.id);
    parts_.book.EndBuild(lease, result, fleet::BuilderOf(worker.capabilities.environment));
    return "";
  }
  TrackedItem item = parts_.book.Remove(lease.item);
  record::Environment environment = worker.capabilities.environment;
  if (!lease.build) {
    environment.compiler = item.builder.compiler;
    environment.codegen_version = item.builder.codegen_version;
    result.artifact_digest = item.artifact_digest;
    if (result.facts.program_digest.empty()) result.facts = item.facts;
  }
  if (lease.run) worker.machine = result.machine;
  WorkResult answer{.result = std::move(result),
                    .worker_id = worker.id,
                    .environment = std::move(environment),
                    .peak_gflops = worker.capabilities.peak_gflops,
                    .read_gbps = worker.capabilities.read_gbps};
  committing_[lease.id] = worker.id;
  ++worker.commits.begun;
  ++results_;
  Deliver(std::move(item), std::move(answer), lease.id);
  return "";
}

std::string Deliveries::BuilderOf(const std::string& artifact) const {
  const auto found = builders_.find(artifact);
  return found == builders_.end() ? "" : found->second;
}

void Deliveries::Deliver(TrackedItem item, absl::StatusOr<WorkResult> result,
                         const std::string& lease_id) {
  parts_.deferred.Add(std::move(item.done), std::move(result),
                      [commit = Commit(&commit_ended_, lease_id)]() mutable { commit.End(true); });
}

Worker* Deliveries::EndCommit(const std::string& lease_id, bool durable) {
  const auto commit = committing_.extract(lease_id);
  Worker* worker = commit.empty() ? nullptr : parts_.registry.Find(commit.mapped());
  if (worker == nullptr) return nullptr;
  worker->commits.End();
  if (durable) {
    worker->news.durable.push_back(lease_id);
    worker->news.stored.push_back(lease_id);
  }
  return worker;
}

void Deliveries::Fail(int64_t item, absl::Status why) {
  Deliver(parts_.book.Remove(item), std::move(why), "");
}

void Deliveries::GiveUp(LeaseBook::GivenUp given_up) {
  WorkResult poisoned{
      .worker_id = given_up.worker_id,
      .environment = parts_.registry.At(given_up.worker_id).capabilities.environment};
  poisoned.result.outcome = record::Outcome::kDeviceLost;
  poisoned.result.detail = std::move(given_up.why);
  poisoned.result.facts = given_up.item.facts;
  Deliver(std::move(given_up.item), std::move(poisoned), "");
}

void Deliveries::EndLease(const std::string& lease_id, LeaseEnd end) {
  if (auto given_up = parts_.book.End(lease_id, std::move(end)); given_up.has_value()) {
    GiveUp(*std::move(given_up));
  }
}

void Deliveries::EndLeasesOf(const Worker& worker, const std::string& why) {
  for (LeaseBook::GivenUp& given_up : parts_.book.EndAllOf(worker.id, why))
    GiveUp(std::move(given_up));
}

void Deliveries::TakeBack(const std::string& lease_id) {
  parts_.registry.At(parts_.book.Find(lease_id)->worker_id).news.cancel.push_back(lease_id);
  EndLease(lease_id, {.counts = false});
}

}  // namespace hone::fleet

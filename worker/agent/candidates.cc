#include "worker/agent/candidates.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/given_inputs.h"
#include "common/record/proto_convert.h"

namespace hone::agent {
namespace {

using record::MeasureResult;
using record::Outcome;

MeasureResult Failure(Outcome outcome, absl::string_view detail) {
  return {.outcome = outcome, .detail = std::string(detail)};
}

std::optional<MeasureResult> Fetch(const std::string& digest, BoundedDir& artifacts,
                                   ServerLink& link) {
  if (!IsSha256(digest)) {
    return Failure(Outcome::kInvalid, "the lease names no artifact");
  }
  if (artifacts.Pin(digest)) {
    const absl::StatusOr<std::string> stored = ReadFile(artifacts.PathOf(digest));
    if (stored.ok() && Sha256Of(*stored) == digest) return std::nullopt;
    artifacts.Unpin(digest);  // a power loss has damaged it
  }
  const absl::StatusOr<std::string> bytes = link.Download(digest);
  const absl::Status kept = bytes.ok() ? artifacts.Put(digest, *bytes) : bytes.status();
  if (kept.ok() && artifacts.Pin(digest)) return std::nullopt;
  return Failure(Outcome::kDeviceLost, absl::StrCat("artifact ", digest, ": ", kept.message()));
}

constexpr absl::Duration kReferenceRetry = absl::Seconds(30);
// For making one. The runner computes for at most 5 minutes, and waits for at most as long and two
// patiences of the timing lock.
constexpr absl::Duration kReferenceLimit = absl::Minutes(15);
constexpr size_t kPinnedReferences = 16;  // more if the leases need more
constexpr size_t kRememberedBests = 4096;
constexpr int kFirstRunFactor = 6;  // times the run limit, while no best is known

// The outcome of a candidate that cannot be run at all.
Outcome OutcomeOf(const absl::Status& why) {
  if (absl::IsInvalidArgument(why)) return Outcome::kInvalid;
  if (absl::IsResourceExhausted(why)) return Outcome::kOutOfMemory;
  return Outcome::kDeviceLost;
}

}  // namespace

std::optional<MeasureResult> CandidatePreparer::Prepare(HeldWork& work) {
  const v1::Lease& lease = work.lease;
  if (!lease.build()) return Fetch(lease.artifact_digest(), artifacts, link);
  if (lease.run() && !references.Has(ReferenceKeyOf(lease))) {
    reference_kernels.BuildAhead(lease.workload_digest(), lease.workload());
  }
  BuilderClient fresh(builder_options);
  const record::BuildResponse built =
      (lease.only_digest() ? fresh : builder)
          .Build({.workload = lease.workload(),
                  .space = lease.space(),
                  .decisions = {lease.decisions().begin(), lease.decisions().end()},
                  .target = lease.target()},
                 artifacts);
  work.facts = built.facts;
  if (built.outcome != Outcome::kOk) return Failure(built.outcome, built.detail);
  work.artifact_digest = built.artifact_digest;
  if (lease.only_digest()) return MeasureResult{};
  if (!artifacts.Pin(built.artifact_digest)) {
    return Failure(Outcome::kDeviceLost, "the artifact is missing from the folder of artifacts");
  }
  if (lease.run()) return std::nullopt;
  // The server must have the reference before it learns of the candidate.
  reference_kernels.Offer(lease);
  const absl::Status sent = uploader.UploadArtifact(built.artifact_digest);
  artifacts.Unpin(built.artifact_digest);
  if (sent.ok()) return MeasureResult{};
  return Failure(Outcome::kDeviceLost, absl::StrCat("upload: ", sent.message()));
}

bool CandidateRunner::NeedsReference(const std::string& key, absl::Time connected) const {
  if (std::find(referenced_.begin(), referenced_.end(), key) != referenced_.end()) return false;
  const auto failure = failures_.find(key);
  return failure == failures_.end() || failure->second.time < connected ||
         SteadyNow() >= failure->second.time + kReferenceRetry;
}

void CandidateRunner::MakeReference(const std::string& workload_digest, const std::string& workload,
                                    const absl::flat_hash_set<std::string>& held,
                                    const std::string& inputs_digest) {
  const std::string key = record::ReferenceKey(workload_digest, inputs_digest);
  const absl::Status made = TryToMakeReference(key, workload_digest, workload, inputs_digest);
  if (!made.ok()) {
    spdlog::error("the reference of workload {} cannot be computed: {}", workload_digest,
                  std::string(made.message()));
    failures_[key] = {made, SteadyNow()};
    return;
  }
  failures_.erase(key);
  referenced_.push_back(key);
  while (referenced_.size() > kPinnedReferences) {
    const auto unused =
        std::find_if(referenced_.begin(), referenced_.end(),
                     [&](const std::string& other) { return !held.contains(other); });
    if (unused == referenced_.end()) break;
    references_->Unpin(*unused);
    referenced_.erase(unused);
  }
}

absl::Status CandidateRunner::AddInputs(const std::string& digest,
                                        record::RunRequest& request) const {
  if (digest.empty()) return absl::OkStatus();
  if (!IsSha256(digest)) {
    return absl::InvalidArgumentError("the digest of the lease's inputs is malformed");
  }
  HONE_RETURN_IF_ERROR(reference_kernels_->FetchInputs(digest));
  request.inputs_digest = digest;
  request.inputs_path = artifacts_->PathOf(digest);
  return absl::OkStatus();
}

absl::Status CandidateRunner::TryToMakeReference(const std::string& key,
                                                 const std::string& workload_digest,
                                                 const std::string& workload,
                                                 const std::string& inputs_digest) {
  if (!Digest::FromHex(workload_digest).ok()) {
    return absl::InvalidArgumentError("the lease's workload digest is malformed");
  }
  if (references_->Pin(key)) return absl::OkStatus();
  record::RunRequest request{.workload = workload, .workload_digest = workload_digest};
  HONE_RETURN_IF_ERROR(AddInputs(inputs_digest, request));
  const absl::StatusOr<std::string> kernel = reference_kernels_->Get(workload_digest, workload);
  // Without a kernel the interpreter makes the reference of a small workload.
  if (!kernel.ok() && !absl::IsNotFound(kernel.status())) return kernel.status();
  if (kernel.ok()) request.reference_path = artifacts_->PathOf(*kernel);
  // The kernel is code of another machine or of a client, so that it must not reach the other
  // references. Its process has ended when the file is moved.
  HONE_ASSIGN_OR_RETURN(const auto folder, OutputFolder::Make(options_.output_parent));
  const std::string name = "reference";
  request.reference_data = absl::StrCat(folder->path(), "/", name);
  const MeasureResult made = runner_.MakeReference(request, folder->path(), kReferenceLimit);
  if (made.outcome != Outcome::kOk) {
    if (!kernel.ok() && made.outcome != Outcome::kOutOfMemory) {
      return absl::InternalError(absl::StrCat(made.detail, "; and ", kernel.status().message()));
    }
    // An invalid workload, or one that is too large, is not the device's fault.
    if (made.outcome == Outcome::kInvalid) return absl::InvalidArgumentError(made.detail);
    if (made.outcome == Outcome::kOutOfMemory) return absl::ResourceExhaustedError(made.detail);
    return absl::InternalError(made.detail);
  }
  if (const absl::Status moved = folder->MoveTo(name, references_->PathOf(key)); !moved.ok()) {
    return absl::InternalError(
        absl::StrCat("the runner's reference is refused: ", moved.message()));
  }
  references_->Add(key);
  if (!references_->Pin(key)) {
    return absl::InternalError("the reference is missing from the folder of references");
  }
  return absl::OkStatus();
}

double& CandidateRunner::BestOf(const v1::Lease& lease) {
  const absl::StatusOr<record::Policy> policy = record::FromProto(lease.policy());
  if (best_ns_.size() >= kRememberedBests) best_ns_.clear();  // of jobs that mostly have ended
  return best_ns_[absl::StrCat(lease.job_id(), " ", ReferenceKeyOf(lease), " ",
                               policy.ok() ? policy->Key() : "")];
}

absl::StatusOr<record::RunRequest> CandidateRunner::RequestFor(const HeldWork& work) const {
  const v1::Lease& lease = work.lease;
  record::RunRequest request;
  HONE_ASSIGN_OR_RETURN(request.policy, record::FromProto(lease.policy()));
  const std::string key = ReferenceKeyOf(lease);
  if (const auto failure = failures_.find(key); failure != failures_.end()) {
    const absl::Status& why = failure->second.status;
    return absl::Status(
        why.code(),
        absl::StrCat("the reference of this workload cannot be computed: ", why.message()));
  }
  if (SteadyNow() > work.deadline) {
    return absl::DeadlineExceededError("its lease expired before it could be measured");
  }
  request.workload = lease.workload();
  request.workload_digest = lease.workload_digest();
  request.artifact_path = artifacts_->PathOf(work.artifact_digest);
  request.reference_data = references_->PathOf(key);
  HONE_RETURN_IF_ERROR(AddInputs(lease.inputs_digest(), request));
  request.tolerance = lease.tolerance();
  request.best_latency_ns = lease.best_latency_ns();
  request.peak_gflops = options_.peak_gflops;
  // Page offsets thus differ between processes and confirmations of a candidate, but are the same
  // if a lease is repeated.
  request.seed = DigestOf(lease.lease_id()).low;
  return request;
}

void CandidateRunner::Run(
    const std::vector<std::shared_ptr<HeldWork>>& batch,
    absl::FunctionRef<bool(const HeldWork&)> wanted, absl::FunctionRef<void(HeldWork&)> started,
    absl::FunctionRef<void(const std::shared_ptr<HeldWork>&, MeasureResult)> finished) {
  std::vector<std::shared_ptr<HeldWork>> runnable;
  std::vector<record::RunRequest> requests;
  for (const std::shared_ptr<HeldWork>& work : batch) {
    absl::StatusOr<record::RunRequest> request = RequestFor(*work);
    if (!request.ok()) {
      artifacts_->Unpin(work->artifact_digest);
      finished(work, {.outcome = OutcomeOf(request.status()),
                      .detail = std::string(request.status().message())});
      continue;
    }
    // The best seen here may be newer than the value in the lease; but a lease without one asks for
    // a measurement that does not stop early.
    double& best_ns = request->best_latency_ns;
    const double seen_ns = BestOf(work->lease);
    if (best_ns > 0 && seen_ns > 0) best_ns = std::min(best_ns, seen_ns);
    request->time_limit_ms =
        absl::ToInt64Milliseconds(options_.run_limit * (best_ns > 0 ? 1 : kFirstRunFactor));
    runnable.push_back(work);
    requests.push_back(*std::move(request));
  }
  runner_.Run(
      requests, [&](size_t i) { return wanted(*runnable[i]); },
      [&](size_t i) { started(*runnable[i]); },
      [&](size_t i, MeasureResult result) {
        artifacts_->Unpin(runnable[i]->artifact_digest);
        if (result.outcome == Outcome::kOk && !result.stopped_early && result.latency_ns > 0) {
          double& best_ns = BestOf(runnable[i]->lease);
          const double steady_ns = record::SteadyLatencyNs(result);
          if (best_ns == 0 || steady_ns < best_ns) best_ns = steady_ns;
        }
        finished(runnable[i], std::move(result));
      });
}

}  // namespace hone::agent

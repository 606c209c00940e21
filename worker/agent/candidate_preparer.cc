#include "worker/agent/candidate_preparer.h"

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"

namespace hone::agent {
namespace {

using record::MeasureResult;
using record::Outcome;

MeasureResult Failure(Outcome outcome, absl::string_view detail) {
  return {.outcome = outcome, .detail = std::string(detail)};
}

std::optional<MeasureResult> Fetch(const std::string& digest, BoundedDir& artifacts,
                                   ServerLink& link) {
  if (!Digest::FromHex(digest).ok()) {
    return Failure(Outcome::kInvalid, "the lease names no artifact");
  }
  if (artifacts.Pin(digest)) {
    const absl::StatusOr<std::string> stored = ReadFile(artifacts.PathOf(digest));
    if (stored.ok() && DigestOf(*stored).ToHex() == digest) return std::nullopt;
    artifacts.Unpin(digest);  // a power loss has damaged it
  }
  const absl::StatusOr<std::string> bytes = link.Download(digest);
  const absl::Status kept = bytes.ok() ? artifacts.Put(digest, *bytes) : bytes.status();
  if (kept.ok() && artifacts.Pin(digest)) return std::nullopt;
  return Failure(Outcome::kDeviceLost, absl::StrCat("artifact ", digest, ": ", kept.message()));
}

}  // namespace

std::optional<MeasureResult> CandidatePreparer::Prepare(HeldWork& work) {
  const v1::Lease& lease = work.lease;
  if (!lease.build()) return Fetch(lease.artifact_digest(), artifacts, link);
  const record::BuildResponse built =
      builder.Build({.workload = lease.workload(),
                     .space = lease.space(),
                     .decisions = {lease.decisions().begin(), lease.decisions().end()},
                     .target = lease.target(),
                     .artifact_dir = artifacts.path()});
  work.facts = built.facts;
  if (built.outcome != Outcome::kOk) return Failure(built.outcome, built.detail);
  work.artifact_digest = built.artifact_digest;
  artifacts.Add(built.artifact_digest);
  if (!artifacts.Pin(built.artifact_digest)) {
    return Failure(Outcome::kDeviceLost, "the builder's artifact is missing from its folder");
  }
  if (lease.run()) return std::nullopt;
  // The server must have the reference before it learns of the candidate.
  reference_kernels.Offer(lease);
  const absl::Status sent = uploader.UploadArtifact(built.artifact_digest);
  artifacts.Unpin(built.artifact_digest);
  if (sent.ok()) return MeasureResult{};
  return Failure(Outcome::kDeviceLost, absl::StrCat("upload: ", sent.message()));
}

}  // namespace hone::agent

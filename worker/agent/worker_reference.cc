// References, with which a candidate's output is compared. A machine with a builder makes the
// reference kernel itself; a machine without one downloads it from the server, where the builder of
// its candidates uploads it.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/steady_clock.h"
#include "common/record/reference_name.h"
#include "common/target/target.h"
#include "spdlog/spdlog.h"
#include "worker/agent/worker.h"

namespace hone::agent {
namespace {

using record::MeasureResult;
using record::Outcome;

// The server keeps references in memory and may have restarted, so they are uploaded again at
// intervals. Failed builds are also retried.
constexpr absl::Duration kOfferAgain = absl::Seconds(10);
constexpr absl::Duration kBuildAgain = absl::Minutes(1);
constexpr size_t kMaxOffers = 256;

}  // namespace

absl::StatusOr<std::string> Worker::BuildReference(const std::string& workload,
                                                   const std::string& target) {
  BuilderOptions patient = options_.builder;
  patient.cpu_limit = std::max(patient.cpu_limit, absl::Seconds(60));
  BuilderClient builder(patient);
  const record::BuildResponse built = builder.Build({.workload = workload,
                                                     .target = target,
                                                     .artifact_dir = artifacts_->path(),
                                                     .reference = true});
  if (built.outcome != Outcome::kOk) return absl::InternalError(built.detail);
  artifacts_->Add(built.artifact_digest);
  return built.artifact_digest;
}

absl::StatusOr<std::string> Worker::SendReference(const v1::Lease& lease, const std::string& name,
                                                  std::string digest) {
  absl::StatusOr<std::string> bytes = absl::NotFoundError("it was not built yet");
  if (!digest.empty()) bytes = ReadFile(artifacts_->PathOf(digest));
  if (!bytes.ok()) {
    HONE_ASSIGN_OR_RETURN(digest, BuildReference(lease.workload(), lease.target()));
    bytes = ReadFile(artifacts_->PathOf(digest));
  }
  HONE_RETURN_IF_ERROR(bytes.status());
  HONE_RETURN_IF_ERROR(Upload(name, *bytes));
  return digest;
}

void Worker::OfferReference(const v1::Lease& lease) {
  const absl::StatusOr<target::Target> target = target::Target::FromText(lease.target());
  if (!target.ok()) return;  // nothing can be built for it
  const std::string name = record::ReferenceName{lease.workload_digest(), target->Key()}.ToText();
  std::string digest;
  {
    absl::MutexLock lock(&mutex_);
    const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || !offering_.contains(name);
    };
    mutex_.Await(absl::Condition(&free));
    const auto known = offered_.find(name);
    if (stopping_ || (known != offered_.end() && SteadyNow() < known->second.again)) return;
    if (known != offered_.end()) digest = known->second.digest;
    offering_.insert(name);
  }
  const absl::StatusOr<std::string> sent = SendReference(lease, name, digest);
  {
    absl::MutexLock lock(&mutex_);
    offering_.erase(name);
    if (offered_.size() > kMaxOffers) offered_.clear();
    if (sent.ok()) {
      offered_[name] = {*sent, SteadyNow() + kOfferAgain};
    } else if (!absl::IsUnavailable(sent.status())) {  // otherwise retried with the next candidate
      offered_[name] = {"", SteadyNow() + kBuildAgain};
    }
  }
  // A small workload works without it: the runner's interpreter computes the reference.
  if (!sent.ok()) spdlog::warn("{} was not sent: {}", name, std::string(sent.status().message()));
}

absl::StatusOr<std::string> Worker::FetchReference(const std::string& workload_digest) {
  const record::ReferenceName name{workload_digest, options_.capabilities.target_key()};
  HONE_ASSIGN_OR_RETURN(const std::string bytes, link_->Download(name.ToText()));
  const std::string digest = DigestOf(bytes).ToHex();
  HONE_RETURN_IF_ERROR(artifacts_->Put(digest, bytes));
  return digest;
}

absl::Status Worker::MakeReference(const std::string& digest, const std::string& text,
                                   RunnerClient& runner) {
  if (!Digest::FromHex(digest).ok()) {
    return absl::InvalidArgumentError("the lease's workload digest is none");
  }
  if (references_->Pin(digest)) return absl::OkStatus();
  record::RunRequest request;
  request.workload = text;
  request.workload_digest = digest;
  request.reference_data = references_->PathOf(digest);
  const absl::StatusOr<std::string> kernel =
      options_.capabilities.can_build() ? BuildReference(text, options_.capabilities.target())
                                        : FetchReference(digest);
  // Without a kernel the interpreter makes the reference of a small workload.
  if (!kernel.ok() && !absl::IsNotFound(kernel.status())) return kernel.status();
  if (kernel.ok()) request.reference_path = artifacts_->PathOf(*kernel);
  const MeasureResult made = runner.RunOne(request, options_.reference_limit);
  if (made.outcome != Outcome::kOk) {
    return absl::InternalError(
        kernel.ok() ? made.detail : absl::StrCat(made.detail, "; and ", kernel.status().message()));
  }
  references_->Add(digest);
  if (!references_->Pin(digest)) return absl::InternalError("the runner made no reference file");
  return absl::OkStatus();
}

}  // namespace hone::agent

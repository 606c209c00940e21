#include "worker/agent/reference_kernels.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/reference_name.h"
#include "common/target/target.h"

namespace hone::agent {
namespace {

// The server keeps references in memory and may have restarted, so they are uploaded again at
// intervals. Failed builds are also retried.
constexpr absl::Duration kSendAgain = absl::Seconds(10);
constexpr absl::Duration kBuildAgain = absl::Minutes(1);
constexpr absl::Duration kBuildLimit = absl::Seconds(60);
constexpr size_t kMaxSent = 256;

// References are computed on a CPU: that of the target, or that of the machine with the GPU.
std::string ReferenceTarget(const v1::Capabilities& machine) {
  const absl::StatusOr<target::Target> target = target::Target::FromText(machine.target());
  const bool gpu = target.ok() && target->kind != target::Kind::kCpu;
  return gpu ? target::DetectHost().ToText() : machine.target();
}

BuilderOptions Patient(BuilderOptions options) {
  options.cpu_limit = std::max(options.cpu_limit, kBuildLimit);
  return options;
}

}  // namespace

ReferenceKernels::ReferenceKernels(const v1::Capabilities& machine, const BuilderOptions& builder,
                                   BoundedDir* artifacts, ServerLink* link, Uploader* uploader)
    : can_build_(machine.can_build()),
      target_(ReferenceTarget(machine)),
      target_key_(machine.target_key()),
      builder_(Patient(builder)),
      artifacts_(artifacts),
      link_(link),
      uploader_(uploader) {}

absl::StatusOr<std::string> ReferenceKernels::Get(const std::string& workload_digest,
                                                  const std::string& workload) {
  if (can_build_) {
    {
      absl::MutexLock lock(&mutex_);
      const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !building_.contains(workload_digest);
      };
      mutex_.Await(absl::Condition(&free));
      if (IsBuilt(workload_digest)) return built_.at(workload_digest).artifact;
      building_.insert(workload_digest);
    }
    return BuildOnce(workload_digest, workload);
  }
  const record::ReferenceName name{workload_digest, target_key_};
  HONE_ASSIGN_OR_RETURN(const std::string bytes, link_->Download(name.ToText()));
  const std::string digest = Sha256Of(bytes);
  HONE_RETURN_IF_ERROR(artifacts_->Put(digest, bytes));
  return digest;
}

void ReferenceKernels::BuildAhead(const std::string& workload_digest, const std::string& workload) {
  {
    absl::MutexLock lock(&mutex_);
    if (IsBuilt(workload_digest) || !building_.insert(workload_digest).second) return;
  }
  BuildOnce(workload_digest, workload).IgnoreError();  // Get returns it
}

bool ReferenceKernels::IsBuilt(const std::string& workload_digest) const {
  const auto known = built_.find(workload_digest);
  if (known == built_.end()) return false;
  const auto& [artifact, again] = known->second;
  return artifact.ok() ? artifacts_->Has(*artifact) : SteadyNow() < again;
}

absl::StatusOr<std::string> ReferenceKernels::BuildOnce(const std::string& workload_digest,
                                                        const std::string& workload) {
  absl::StatusOr<std::string> built = Build(workload, target_);
  absl::MutexLock lock(&mutex_);
  building_.erase(workload_digest);
  if (built_.size() >= kMaxSent) built_.clear();
  built_.insert_or_assign(workload_digest, Built{built, SteadyNow() + kBuildAgain});
  return built;
}

absl::Status ReferenceKernels::FetchInputs(const std::string& digest) {
  if (artifacts_->Has(digest)) return absl::OkStatus();
  const absl::StatusOr<std::string> bytes = link_->Download(digest);
  if (!bytes.ok()) {
    return absl::Status(
        bytes.status().code(),
        absl::StrCat("the data to measure on cannot be fetched: ", bytes.status().message()));
  }
  return artifacts_->Put(digest, *bytes);
}

absl::StatusOr<std::string> ReferenceKernels::Build(const std::string& workload,
                                                    const std::string& target) {
  BuilderClient builder(builder_);
  const record::BuildResponse built =
      builder.Build({.workload = workload, .target = target, .reference = true}, *artifacts_);
  if (built.outcome == record::Outcome::kInvalid) return absl::InvalidArgumentError(built.detail);
  if (built.outcome != record::Outcome::kOk) return absl::InternalError(built.detail);
  return built.artifact_digest;
}

absl::StatusOr<std::string> ReferenceKernels::Send(const v1::Lease& lease, const std::string& name,
                                                   std::string digest) {
  absl::StatusOr<std::string> bytes = absl::NotFoundError("it has not been built yet");
  if (!digest.empty()) bytes = ReadFile(artifacts_->PathOf(digest));
  if (!bytes.ok()) {
    HONE_ASSIGN_OR_RETURN(digest, Build(lease.workload(), lease.target()));
    bytes = ReadFile(artifacts_->PathOf(digest));
  }
  HONE_RETURN_IF_ERROR(bytes.status());
  HONE_RETURN_IF_ERROR(uploader_->Upload(name, *bytes));
  return digest;
}

void ReferenceKernels::Offer(const v1::Lease& lease) {
  const absl::StatusOr<target::Target> target = target::Target::FromText(lease.target());
  if (!target.ok()) return;  // nothing can be built for it
  // The CPU of the machine that has the GPU is not known here.
  if (target->kind != target::Kind::kCpu) return;
  const std::string name = record::ReferenceName{lease.workload_digest(), target->Key()}.ToText();
  std::string digest;
  {
    absl::MutexLock lock(&mutex_);
    const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !sending_.contains(name);
    };
    mutex_.Await(absl::Condition(&free));
    const auto known = sent_.find(name);
    if (known != sent_.end()) {
      if (SteadyNow() < known->second.again) return;
      digest = known->second.digest;
    }
    sending_.insert(name);
  }
  const absl::StatusOr<std::string> sent = Send(lease, name, digest);
  {
    absl::MutexLock lock(&mutex_);
    sending_.erase(name);
    if (sent_.size() > kMaxSent) sent_.clear();
    if (sent.ok()) {
      sent_[name] = {*sent, SteadyNow() + kSendAgain};
    } else if (!absl::IsUnavailable(sent.status()) &&
               // The lease has expired, or the server was started again.
               !absl::IsFailedPrecondition(sent.status())) {  // retried with the next candidate
      sent_[name] = {"", SteadyNow() + kBuildAgain};
    }
  }
  // A small workload needs no reference kernel: the runner's interpreter computes its reference.
  if (sent.ok()) return;
  // If the server is unreachable, the agent's own calls log that once.
  const auto level =
      absl::IsUnavailable(sent.status()) ? spdlog::level::debug : spdlog::level::warn;
  spdlog::log(level, "{} was not sent: {}", name, std::string(sent.status().message()));
}

void ReferenceKernels::ForgetOffers() {
  absl::MutexLock lock(&mutex_);
  sent_.clear();
}

}  // namespace hone::agent

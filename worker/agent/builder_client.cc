#include "worker/agent/builder_client.h"

#include <poll.h>
#include <signal.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/seconds_text.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"
#include "common/record/framing.h"
#include "common/record/proto_convert.h"

namespace hone::agent {
namespace {

using record::BuildResponse;
using record::Outcome;

constexpr int kPollMs = 20;
constexpr int kBuildFiles = 8;  // files of a build at the same time, with some to spare
constexpr double kWaits = 0.1;  // a share of the limit of processor time
constexpr absl::Duration kPipeLimit = absl::Seconds(10);  // for a message that has begun

BuildResponse BuildFailure(Outcome outcome, absl::string_view detail) {
  return {.outcome = outcome, .detail = std::string(detail)};
}

}  // namespace

BuildResponse BuilderClient::Died() {
  const ChildEnd end = child_->Wait(SteadyNow() + absl::Seconds(1));
  const std::string words(absl::StripAsciiWhitespace(child_->TakeErrorOutput()));
  child_.reset();
  const std::string detail =
      absl::StrCat("the builder died: ", end.ToString(),
                   end.signal == SIGSYS ? ", after a system call which its sandbox forbids" : "",
                   words.empty() ? "" : "\n", words);
  return BuildFailure(end.signal == SIGKILL ? Outcome::kOutOfMemory : Outcome::kCompileError,
                      detail);
}

absl::Status BuilderClient::StartChild() {
  folder_.reset();
  HONE_ASSIGN_OR_RETURN(folder_, OutputFolder::Make(options_.output_parent));
  std::vector<std::string> command = options_.command;
  command.insert(command.end(), {"--write", folder_->path()});
  HONE_ASSIGN_OR_RETURN(child_, ChildProcess::Start(command));
  return absl::OkStatus();
}

BuildResponse BuilderClient::Build(const record::BuildRequest& request, BoundedDir& artifacts) {
  BuildResponse response = Ask(request);
  if (response.outcome != Outcome::kOk) {
    if (folder_ != nullptr) folder_->Clear();
    return response;
  }
  const absl::Status taken = TakeArtifact(response.artifact_digest, artifacts);
  if (taken.ok()) return response;
  child_.reset();
  const bool by_candidate = absl::IsPermissionDenied(taken) || absl::IsDataLoss(taken) ||
                            absl::IsResourceExhausted(taken);
  return BuildFailure(by_candidate ? Outcome::kCompileError : Outcome::kDeviceLost,
                      absl::StrCat("the builder's artifact is refused: ", taken.message()));
}

absl::Status BuilderClient::TakeArtifact(const std::string& digest, BoundedDir& artifacts) {
  if (!IsSha256(digest)) {
    return absl::DataLossError(absl::StrCat("its digest is malformed: ", digest));
  }
  HONE_ASSIGN_OR_RETURN(const std::string bytes, folder_->Take(digest, record::kMaxArtifactBytes));
  if (Sha256Of(bytes) != digest) {
    return absl::DataLossError("it does not match its digest");
  }
  // A full disk is the machine's fault.
  const absl::Status kept = artifacts.Put(digest, bytes);
  return absl::IsResourceExhausted(kept) ? absl::UnavailableError(kept.message()) : kept;
}

BuildResponse BuilderClient::Ask(const record::BuildRequest& given) {
  const bool is_new = child_ == nullptr;
  if (is_new) {
    if (const absl::Status started = StartChild(); !started.ok()) {
      return BuildFailure(Outcome::kDeviceLost, started.message());
    }
  }
  record::BuildRequest request = given;
  request.artifact_dir = folder_->path();
  child_->TakeErrorOutput();
  const absl::Duration cpu_before = child_->CpuTime();
  const absl::Time wall_deadline = SteadyNow() + options_.wall_limit;
  if (!record::WriteFrame(child_->input(), record::ToProto(request).SerializeAsString(),
                          SteadyNow() + kPipeLimit)
           .ok()) {
    if (is_new) return Died();
    // The process died after its last request, which is not this candidate's fault.
    child_.reset();
    return Ask(given);
  }
  for (;;) {
    pollfd answer = {.fd = child_->output(), .events = POLLIN, .revents = 0};
    if (poll(&answer, 1, kPollMs) > 0) break;
    const absl::Duration cpu_used = child_->CpuTime() - cpu_before;
    if (OutputFolder::HasMoreThan(kBuildFiles, folder_->path())) {
      child_.reset();
      folder_->Clear();
      return BuildFailure(Outcome::kCompileError, "the builder wrote more files than a build has");
    }
    const bool cpu_used_up = cpu_used > options_.cpu_limit;
    if (!cpu_used_up && SteadyNow() < wall_deadline) continue;
    child_.reset();  // killed
    // A build that hardly computed was waiting, for the timing lock or a disk, which is not the
    // candidate's fault.
    const bool waited = cpu_used < kWaits * options_.cpu_limit;
    return BuildFailure(
        waited ? Outcome::kDeviceLost : Outcome::kCompileTimeout,
        absl::StrCat("the build did not end within ",
                     SecondsText(cpu_used_up ? options_.cpu_limit : options_.wall_limit),
                     cpu_used_up ? " of processor time" : ""));
  }
  const auto message = record::ReadFrame(child_->output(), SteadyNow() + kPipeLimit);
  if (!message.ok()) return Died();
  v1::BuildResponse proto;
  absl::StatusOr<BuildResponse> response = absl::DataLossError("it is malformed");
  if (proto.ParseFromString(*message)) response = record::FromProto(proto);
  if (response.ok()) return *std::move(response);
  child_.reset();
  return BuildFailure(Outcome::kDeviceLost, absl::StrCat("the builder's answer cannot be read: ",
                                                         response.status().message()));
}

}  // namespace hone::agent

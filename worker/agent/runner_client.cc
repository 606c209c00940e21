#include "worker/agent/runner_client.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/seconds_text.h"
#include "common/base/status_macros.h"
#include "common/record/framing.h"
#include "common/record/proto_convert.h"
#include "worker/agent/child_process.h"

namespace hone::agent {
namespace {

absl::Status TryToStart(std::vector<std::string> command) {
  command.push_back("--version");
  return OutputOf(command).status();
}

using record::MeasureResult;
using record::Outcome;
using record::RunRequest;

MeasureResult Failure(Outcome outcome, absl::string_view detail) {
  return {.outcome = outcome, .detail = std::string(detail)};
}

// Files in the folder of a process that makes a reference: the unfinished one and the other.
constexpr int kReferenceFiles = 2;
constexpr int kReferencePollMs = 100;

// The paths of the files that a request names.
std::vector<std::string*> PathsOf(RunRequest& request) {
  std::vector<std::string*> paths;
  for (std::string* const path : {&request.artifact_path, &request.reference_path,
                                  &request.reference_data, &request.inputs_path}) {
    if (!path->empty()) paths.push_back(path);
  }
  return paths;
}

void AddFiles(RunRequest request, std::vector<std::string>& files) {
  for (std::string* const path : PathsOf(request)) files.push_back(*path);
}

bool IsConfirmation(const RunRequest& request) { return request.policy.name == "confirm"; }

}  // namespace

absl::StatusOr<std::vector<std::string>> RunnerCommand(const std::string& program_dir) {
  const std::string runner = program_dir + "/hone-runner";
  if (access(runner.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("hone-runner is not in ", program_dir,
                                            "; name the programs' folder with --program-dir"));
  }
  std::vector<std::string> command = {runner};
  const std::string libc = program_dir + "/libc";
  const std::string loader = libc + "/ld.so";
  if (access(loader.c_str(), X_OK) != 0) return command;
  const absl::Status own = TryToStart(command);
  if (own.ok()) return command;
  command = {loader, "--library-path", libc, runner};
  const absl::Status bundled = TryToStart(command);
  if (bundled.ok()) return command;
  return absl::FailedPreconditionError(
      absl::StrCat("hone-runner works neither with the C library of this machine (", own.message(),
                   ") nor with that of the bundle (", bundled.message(), ")"));
}

absl::Status RunnerClient::MakeInputs() {
  if (inputs_ != nullptr || options_.input_parent.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(inputs_, InputFolder::Make(options_.input_parent));
  return absl::OkStatus();
}

RunRequest RunnerClient::AsGiven(RunRequest request) const {
  if (inputs_ == nullptr) return request;
  for (std::string* const path : PathsOf(request)) *path = inputs_->PathOf(*path);
  return request;
}

absl::Status RunnerClient::EnsureStarted(std::vector<std::string> command) {
  if (child_ != nullptr) return absl::OkStatus();
  if (inputs_ != nullptr) command.insert(command.end(), {"--read", inputs_->path()});
  HONE_ASSIGN_OR_RETURN(child_, ChildProcess::Start(command));
  return absl::OkStatus();
}

absl::Status RunnerClient::Send(const RunRequest& request) {
  return record::WriteFrame(child_->input(), record::ToProto(request).SerializeAsString(),
                            SteadyNow() + options_.patience);
}

MeasureResult RunnerClient::Died() {
  const ChildEnd end = child_->Wait(SteadyNow() + absl::Seconds(1));
  const std::string words(absl::StripAsciiWhitespace(child_->TakeErrorOutput()));
  child_.reset();
  // The runner reports forbidden system calls itself, unless the C library has blocked its signals,
  // as newer ones do in fork().
  return Failure(
      end.signal == SIGKILL ? Outcome::kOutOfMemory : Outcome::kCrash,
      absl::StrCat("the runner died: ", end.ToString(),
                   end.signal == SIGSYS ? ", after a system call which its sandbox forbids" : "",
                   words.empty() ? "" : "\n", words));
}

MeasureResult RunnerClient::Receive(const RunRequest& request, absl::Duration patience) {
  const absl::Duration limit = absl::Milliseconds(request.time_limit_ms) + patience;
  const auto message = record::ReadFrame(child_->output(), SteadyNow() + limit);
  if (absl::IsDeadlineExceeded(message.status())) {
    child_.reset();  // killed
    return Failure(Outcome::kRunTimeout,
                   absl::StrCat("the runner did not answer within ", SecondsText(limit)));
  }
  if (!message.ok()) return Died();
  v1::RunResponse proto;
  absl::StatusOr<MeasureResult> result = absl::DataLossError("it is malformed");
  if (proto.ParseFromString(*message)) result = record::FromProto(proto.result());
  if (!result.ok()) {
    child_.reset();
    return Failure(Outcome::kCrash,
                   absl::StrCat("the runner's answer cannot be read: ", result.status().message()));
  }
  // The runner exits by itself after a hang, a forbidden system call or the loss of its device.
  if (result->outcome == Outcome::kRunTimeout || result->outcome == Outcome::kCrash ||
      result->outcome == Outcome::kDeviceLost) {
    child_.reset();
  }
  return *std::move(result);
}

MeasureResult RunnerClient::MakeReference(const RunRequest& request, const std::string& folder,
                                          absl::Duration patience) {
  child_.reset();
  std::vector<std::string> command =
      options_.reference_command.empty() ? options_.command : options_.reference_command;
  command.insert(command.end(), {"--write", folder});
  RunRequest given = request;
  given.reference_data.clear();  // the process makes it
  std::vector<std::string> files;
  AddFiles(given, files);
  absl::Status ready = MakeInputs();
  if (ready.ok() && inputs_ != nullptr) ready = inputs_->Hold(files);
  if (ready.ok()) ready = EnsureStarted(std::move(command));
  if (!ready.ok()) return Failure(Outcome::kDeviceLost, ready.message());
  given = AsGiven(std::move(given));
  given.reference_data = request.reference_data;
  child_->TakeErrorOutput();
  MeasureResult result = Send(given).ok() ? ReceiveReference(given, folder, patience) : Died();
  child_.reset();
  if (inputs_ != nullptr) inputs_->Hold({}).IgnoreError();  // removes files only
  return result;
}

MeasureResult RunnerClient::ReceiveReference(const RunRequest& request, const std::string& folder,
                                             absl::Duration patience) {
  const absl::Time begin = SteadyNow();
  pollfd answer = {.fd = child_->output(), .events = POLLIN, .revents = 0};
  while (SteadyNow() - begin < patience && poll(&answer, 1, kReferencePollMs) <= 0) {
    if (!OutputFolder::HasMoreThan(kReferenceFiles, folder)) continue;
    child_.reset();
    return Failure(Outcome::kCrash, "the runner wrote other files than the reference");
  }
  const absl::Duration left = patience - (SteadyNow() - begin);
  if (left > absl::ZeroDuration()) return Receive(request, left);
  child_.reset();
  return Failure(Outcome::kRunTimeout, absl::StrCat("the runner did not make the reference within ",
                                                    SecondsText(patience)));
}

absl::StatusOr<bool> RunnerClient::SendToIdle(const RunRequest& request) {
  const bool is_new = child_ == nullptr;
  HONE_RETURN_IF_ERROR(EnsureStarted(options_.command));
  child_->TakeErrorOutput();
  if (Send(request).ok()) return true;
  if (is_new) return false;
  // The process died after its last request, which is not this candidate's fault.
  child_.reset();
  return SendToIdle(request);
}

void RunnerClient::Run(const std::vector<RunRequest>& requests,
                       absl::FunctionRef<bool(size_t)> wanted,
                       absl::FunctionRef<void(size_t)> started,
                       absl::FunctionRef<void(size_t, MeasureResult)> done) {
  const absl::Status has_folder = MakeInputs();
  std::vector<absl::Status> refused(requests.size());  // why a request is not sent
  // Called right before a request is sent to a process that works on another one, or on none.
  const auto admit = [&](size_t i, size_t running) -> absl::Status {
    HONE_RETURN_IF_ERROR(has_folder);
    if (!wanted(i)) return absl::CancelledError("cancelled");
    if (inputs_ == nullptr) return absl::OkStatus();
    std::vector<std::string> files;
    AddFiles(requests[i], files);
    if (running != i) AddFiles(requests[running], files);
    return inputs_->Hold(files);
  };
  size_t next = 0;  // the first request that the current process has not received or skipped
  for (size_t i = 0; i < requests.size(); ++i) {
    if (child_ == nullptr) next = i;
    if (next == i) refused[i] = admit(i, i);
    if (!refused[i].ok()) {
      next = std::max(next, i + 1);
      done(i, Failure(Outcome::kDeviceLost, refused[i].message()));
      continue;
    }
    started(i);
    const bool confirmation = IsConfirmation(requests[i]);
    if (confirmation) child_.reset();
    absl::StatusOr<bool> sent = true;
    if (next == i) {
      sent = SendToIdle(AsGiven(requests[i]));
      next = i + 1;
    } else {
      child_->TakeErrorOutput();
    }
    if (!sent.ok()) {
      done(i, Failure(Outcome::kDeviceLost, sent.status().message()));
      continue;
    }
    // Sends the next request that is wanted.
    bool looks_ahead = *sent && !confirmation;
    bool ends = confirmation;
    for (; looks_ahead && next < requests.size() && !IsConfirmation(requests[next]); ++next) {
      refused[next] = admit(next, i);
      if (!refused[next].ok()) continue;
      looks_ahead = false;
      // A process that takes no more requests may still have answered this one.
      ends = !Send(AsGiven(requests[next])).ok();
    }
    MeasureResult result = *sent ? Receive(requests[i], options_.patience) : Died();
    if (ends) child_.reset();
    done(i, std::move(result));
  }
  if (inputs_ != nullptr) inputs_->Hold({}).IgnoreError();  // removes files only
}

}  // namespace hone::agent

#include "client/cli/session.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/exit_code.h"
#include "client/cli/quiet_check.h"
#include "client/cli/terminal.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

// A worker measures this machine's peak before it registers.
constexpr absl::Duration kWorkerTimeout = absl::Seconds(120);
constexpr absl::Duration kPrivatePatience = absl::Seconds(30);
constexpr absl::Duration kWorkerPoll = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const Globals& globals, bool with_worker) {
  auto session = std::unique_ptr<Session>(new Session(globals.target));
  client::ConnectionOptions options;
  options.security = globals.security;
  std::string address = globals.server;
  if (address.empty()) {
    HONE_ASSIGN_OR_RETURN(session->private_server_,
                          client::PrivateServer::StartOrJoin({.with_worker = with_worker}));
    address = session->private_server_->address();
    // The keeper has started the server, which may be slow to answer while the machine is busy.
    options.retry.give_up_after = kPrivatePatience;
    options.call_timeout = kPrivatePatience;
    options.check = [session = session.get()] { return session->CheckPrivate(); };
  }
  session->target_.host = target::DetectHost();  // while the server starts
  if (session->private_server_ != nullptr)
    HONE_RETURN_IF_ERROR(session->private_server_->WaitUntilReady());
  HONE_ASSIGN_OR_RETURN(session->connection_, client::Connection::Open(address, options));
  return session;
}

absl::StatusOr<std::string> Session::GivenTargetKey() const {
  return target_.given.empty() ? std::string() : TargetKey();
}

absl::StatusOr<std::string> Session::TargetForTuning() const {
  if (private_server_ == nullptr) {
    return target_.IsNative() ? std::string("native") : TargetKey();
  }
  HONE_ASSIGN_OR_RETURN(std::string key, TargetKey());
  const std::string host_key = target_.host.Key();
  if (key == host_key) return key;
  return absl::InvalidArgumentError(
      absl::StrCat("--target ", target_.given, ": this machine is ", host_key,
                   ", and a private worker measures only this machine; use --server to name a "
                   "server that has a worker of the target, or omit --target"));
}

absl::Status Session::CheckPrivate() {
  if (private_server_ != nullptr) HONE_RETURN_IF_ERROR(private_server_->Check());
  // Only clients that asked for the worker are sent its failures.
  return with_worker_ != nullptr ? with_worker_->Check() : absl::OkStatus();
}

absl::Status Session::StartWorker() {
  if (private_server_ == nullptr || with_worker_ != nullptr) return absl::OkStatus();
  if (const std::string noise = NoiseNow(); !noise.empty()) {
    PrintWrapped(stderr, absl::StrCat("warning: ", noise));
  }
  // This process has threads by now, so it must not fork.
  HONE_ASSIGN_OR_RETURN(
      with_worker_, client::PrivateServer::StartOrJoin({.with_worker = true, .join_only = true}));
  return with_worker_->WaitUntilReady();
}

absl::Status Session::WaitForWorker(const std::function<bool()>& waiting) {
  if (private_server_ == nullptr) return absl::OkStatus();
  const absl::Time deadline = absl::Now() + kWorkerTimeout;
  while (absl::Now() < deadline) {
    HONE_ASSIGN_OR_RETURN(const std::vector<client::Worker> workers, connection_->ListWorkers());
    const bool there = std::any_of(workers.begin(), workers.end(),
                                   [](const client::Worker& w) { return w.connected; });
    if (there) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(CheckPrivate());
    if (!waiting()) return InterruptedError("interrupted while waiting for the worker");
    absl::SleepFor(kWorkerPoll);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the local hone-worker did not register within ", absl::FormatDuration(kWorkerTimeout),
      "; its log is ", private_server_->paths().worker_log));
}

}  // namespace hone::cli

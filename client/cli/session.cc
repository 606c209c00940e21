#include "client/cli/session.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/exit_code.h"
#include "client/cli/fleet/quiet_check.h"
#include "client/cli/output/terminal.h"
#include "client/cli/suggested_command.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

// Long, because a worker measures this machine's peak before it registers.
constexpr absl::Duration kWorkerTimeout = absl::Seconds(120);
constexpr absl::Duration kPrivatePatience = absl::Seconds(30);
constexpr absl::Duration kWorkerPoll = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const Globals& globals, bool with_worker) {
  auto session = std::unique_ptr<Session>(new Session(globals));
  if (!globals.locked.empty()) {
    HONE_ASSIGN_OR_RETURN(session->lock_, ReadLock(globals.locked));
  }
  client::ConnectionOptions options;
  options.security = globals.security;
  std::string address = globals.server;
  const absl::Status found = session->target_.FindDevice();
  if (address.empty()) {
    HONE_RETURN_IF_ERROR(found);
    HONE_ASSIGN_OR_RETURN(session->private_server_,
                          client::PrivateServer::StartOrJoin(
                              {.with_worker = with_worker, .device = session->DeviceName()}));
    address = session->private_server_->address();
    // The keeper has started the server, which may be slow to answer while the machine is busy.
    options.retry.give_up_after = kPrivatePatience;
    options.call_timeout = kPrivatePatience;
    options.check = [session = session.get()] { return session->CheckPrivate(); };
  }
  session->target_.host = target::DetectHost();  // while the server starts
  if (session->private_server_ != nullptr)
    HONE_RETURN_IF_ERROR(session->private_server_->WaitUntilReady());
  // Before the connection is tried, again and again: the server cannot accept this certificate, or
  // the clock is wrong, and then this machine does not accept the server's.
  if (session->private_server_ == nullptr) {
    const absl::Status own = rpc::CheckOwnLifetime(globals.security, absl::Now());
    if (!own.ok()) {
      return NameIgnoredConfig(
          globals, absl::UnavailableError(absl::StrCat("cannot talk to the server at ", address,
                                                       ": ", own.message())));
    }
  }
  auto connection = client::Connection::Open(address, options);
  HONE_RETURN_IF_ERROR(NameIgnoredConfig(globals, connection.status()));
  session->connection_ = *std::move(connection);
  if (!found.ok()) HONE_RETURN_IF_ERROR(session->UseGpuOfServer(found));
  if (session->private_server_ != nullptr) {
    const absl::StatusOr<std::string> key = session->TargetKey();
    if (key.ok() && !session->IsHere(*key)) NeedServerOfTarget();
  }
  return session;
}

Session::~Session() {
  if (!warns_of_store_ || connection_ == nullptr || connection_->LastStoreReport().damage.empty())
    return;
  PrintWrapped(stderr,
               absl::StrCat("warning: the server's store is damaged, so it is only read and no job "
                            "can start; ",
                            SuggestedCommand("doctor"), " says what to do"));
}

absl::Status Session::UseGpuOfServer(const absl::Status& why) {
  const target::GpuInterface* const interface = target::InterfaceOfDevice(target_.given);
  if (interface == nullptr || target_.given != interface->word) return why;
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::WorkerInfo> workers, connection_->ListWorkers());
  std::set<std::string> keys;
  for (const v1::WorkerInfo& worker : workers) {
    if (worker.can_run() && target::InterfaceOfKey(worker.target()) == interface)
      keys.insert(worker.target());
  }
  if (keys.empty()) {
    return absl::Status(why.code(),
                        absl::StrCat(why.message(), "; and no worker of the server has one"));
  }
  if (keys.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server's workers have several ", interface->name,
                     " targets; name one with --target: ", absl::StrJoin(keys, ", ")));
  }
  target_.given = *keys.begin();
  return absl::OkStatus();
}

absl::Status Session::UseTarget(const std::string& key) {
  if (key == target_.host.Key()) {
    target_.given = "";
    target_.device.reset();
    return absl::OkStatus();
  }
  target_.given = key;
  HONE_RETURN_IF_ERROR(target_.FindDevice());
  const target::GpuInterface* const interface = target::InterfaceOfKey(key);
  if (target_.device.has_value() || interface == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "no ", interface->name, " device of this machine is ", key,
      "; hone-worker --list-devices lists the devices, whose keys change with their drivers"));
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
  if (key == host_key || target_.device.has_value()) return key;
  return absl::InvalidArgumentError(absl::StrCat(
      "--target ", target_.given, ": this machine is ", host_key,
      ", and a private worker measures only this machine; use --server to name a "
      "server that has a worker of the target, or omit --target",
      target_.IsGpu() ? ", or name a GPU of this machine with --target cuda or --target opencl"
                      : ""));
}

bool Session::IsHere(const std::string& key) const {
  return key == target_.host.Key() || (target_.device && key == target_.device->target.Key());
}

absl::Status Session::CheckPrivate() {
  if (private_server_ != nullptr) HONE_RETURN_IF_ERROR(private_server_->Check());
  // The keeper reports failures of the worker only to clients that asked for it.
  return with_worker_ != nullptr ? with_worker_->Check() : absl::OkStatus();
}

absl::Duration Session::TakeStartTime() {
  const absl::Time started = std::exchange(started_, absl::InfiniteFuture());
  return std::max(absl::ZeroDuration(), absl::Now() - started);
}

absl::Status Session::StartWorker() {
  if (private_server_ == nullptr || with_worker_ != nullptr) return absl::OkStatus();
  // This process has threads by now, so it must not fork.
  HONE_ASSIGN_OR_RETURN(with_worker_,
                        client::PrivateServer::StartOrJoin(
                            {.with_worker = true, .device = DeviceName(), .join_only = true}));
  // Looking at a busy machine takes a while, in which the worker starts.
  if (const std::string noise = NoiseNow(); !noise.empty()) {
    PrintWrapped(stderr, absl::StrCat("warning: ", noise));
  }
  return with_worker_->WaitUntilReady();
}

absl::Status Session::WaitForWorker(const std::function<bool()>& waiting) {
  if (private_server_ == nullptr) return absl::OkStatus();
  const absl::Time deadline = absl::Now() + kWorkerTimeout;
  while (absl::Now() < deadline) {
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::WorkerInfo> workers, connection_->ListWorkers());
    // The private server may also have workers of other devices.
    const bool there = std::any_of(workers.begin(), workers.end(), [&](const v1::WorkerInfo& w) {
      return w.connected() && (target_.device ? w.target() == target_.device->target.Key()
                                              : target::InterfaceOfKey(w.target()) == nullptr);
    });
    if (there) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(CheckPrivate());
    if (!waiting()) return InterruptedError("interrupted while waiting for the worker");
    absl::SleepFor(kWorkerPoll);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the local hone-worker did not register within ", absl::FormatDuration(kWorkerTimeout),
      "; its log is ", private_server_->paths().WorkerLog(DeviceName())));
}

}  // namespace hone::cli

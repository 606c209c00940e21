#include "server/service/call_observer.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"
#include "google/protobuf/stubs/logging.h"
#include "nlohmann/json.hpp"
#include "server/service/gate.h"
#include "spdlog/spdlog.h"

namespace hone::service {
namespace {

using google::protobuf::Message;
using grpc::experimental::InterceptionHookPoints;

constexpr absl::string_view kOurs = "/hone.v1.";
constexpr absl::string_view kNoMethod = "/hone.v1/unknown";
constexpr absl::Duration kLogInterval = absl::Minutes(1);
constexpr size_t kMostLogged = 16;  // names in this time
// The longest request of an unknown caller that is parsed, because it names the worker.
constexpr size_t kMostOfUnknown = 64 << 10;
constexpr char kOtherPeers[] = "other peers";

// The field whose text was not UTF-8 in the last message that this thread parsed.
thread_local std::string not_utf8;
// Why the request of the last call that arrived on this thread is not to be parsed: its caller is
// unknown, or it is too long.
thread_local absl::Status not_parsed;

void KeepComplaint(google::protobuf::LogLevel, const char*, int, const std::string& message) {
  // String field 'hone.v1.CreateJobRequest.workload' contains invalid UTF-8 data when parsing …
  const size_t begin = message.find('\'');
  const size_t end = begin == std::string::npos ? begin : message.find('\'', begin + 1);
  if (!absl::StrContains(message, "UTF-8") || end == std::string::npos) return;
  const std::string name = message.substr(begin + 1, end - begin - 1);
  not_utf8 = name.substr(name.rfind('.') + 1);
}

std::string TextField(const Message& message, absl::string_view name) {
  const auto* field = message.GetDescriptor()->FindFieldByName(std::string(name));
  if (field == nullptr || field->is_repeated() ||
      field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
    return "";
  }
  return message.GetReflection()->GetString(message, field).substr(0, 256);
}

bool IsRefusal(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNAUTHENTICATED || code == grpc::StatusCode::PERMISSION_DENIED ||
         code == grpc::StatusCode::RESOURCE_EXHAUSTED;
}

std::string CodeName(grpc::StatusCode code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

}  // namespace

std::string ToJsonLine(const AuditEntry& entry) {
  nlohmann::ordered_json json;
  json["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", entry.time, absl::UTCTimeZone());
  json["who"] = entry.who;
  json["role"] = entry.role;
  json["peer"] = entry.peer;
  json["method"] = entry.method;
  json["resource"] = entry.resource;
  json["result"] = entry.result;
  if (!entry.reason.empty()) json["reason"] = entry.reason;
  if (entry.count > 1) json["count"] = entry.count;
  if (!entry.detail.empty()) json["detail"] = entry.detail;
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path, Options options) {
  auto log = std::unique_ptr<AuditLog>(new AuditLog(path, options));
  absl::MutexLock lock(&log->mutex_);
  HONE_RETURN_IF_ERROR(log->Reopen());
  return log;
}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&mutex_);
  WriteCounts(absl::InfiniteFuture());
  if (fd_ >= 0) close(fd_);
}

absl::Status AuditLog::Reopen() {
  if (fd_ >= 0) close(fd_);
  size_ = 0;
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd_ < 0) return ErrnoStatus(errno, absl::StrCat("opening the audit log ", path_));
  struct stat info;
  if (fstat(fd_, &info) == 0) size_ = info.st_size;
  return absl::OkStatus();
}

void AuditLog::ReopenOrLog() {
  const absl::Status opened = Reopen();
  if (!opened.ok()) spdlog::error("{}", std::string(opened.message()));
}

void AuditLog::Rotate() {
  for (int i = options_.kept; i > 0; --i) {
    const std::string from = i == 1 ? path_ : absl::StrCat(path_, ".", i - 1);
    rename(from.c_str(), absl::StrCat(path_, ".", i).c_str());
  }
  ReopenOrLog();
}

void AuditLog::Write(const AuditEntry& entry) {
  absl::MutexLock lock(&mutex_);
  WriteLine(entry);
}

void AuditLog::WriteRefusal(AuditEntry entry) {
  const absl::Time now = SteadyNow();
  absl::MutexLock lock(&mutex_);
  WriteCounts(now);
  auto known = refusals_.find({entry.reason, entry.peer});
  if (known == refusals_.end() && refusals_.size() >= kMostPeers) {
    entry.peer = kOtherPeers;
    known = refusals_.find({entry.reason, entry.peer});
  }
  if (known == refusals_.end()) {
    WriteLine(entry);
    refusals_[{entry.reason, entry.peer}] = {.due = now + options_.refusal_interval};
    return;
  }
  known->second.last = std::move(entry);
  ++known->second.count;
}

void AuditLog::Tick() {
  absl::MutexLock lock(&mutex_);
  WriteCounts(SteadyNow());
}

void AuditLog::WriteCounts(absl::Time now) {
  for (auto each = refusals_.begin(); each != refusals_.end();) {
    Refusals& refusals = each->second;
    if (refusals.due > now) {
      ++each;
      continue;
    }
    if (refusals.count > 0) {
      refusals.last.count = refusals.count;
      WriteLine(refusals.last);
    }
    each = refusals_.erase(each);
  }
}

void AuditLog::WriteLine(const AuditEntry& entry) {
  const std::string line = ToJsonLine(entry) + "\n";
  if (fd_ < 0) ReopenOrLog();
  if (fd_ >= 0 && size_ > 0 && size_ + static_cast<int64_t>(line.size()) > options_.max_bytes)
    Rotate();
  // A single write, so that lines of several servers do not mix and a crash truncates at most the
  // last line.
  const ssize_t written = fd_ < 0 ? -1 : write(fd_, line.data(), line.size());
  if (written > 0) size_ += written;
  if (written != static_cast<ssize_t>(line.size())) {
    spdlog::error("the audit log {} cannot be written: {}", path_, line);
  }
}

class CallObserver::Call final : public grpc::experimental::Interceptor {
 public:
  Call(CallObserver* owner, grpc::experimental::ServerRpcInfo* info)
      : owner_(owner),
        deps_(owner->deps_),
        info_(info),
        access_(FindAccess(info->method())),
        begin_(std::chrono::steady_clock::now()) {
    not_utf8.clear();
    not_parsed = access_ == nullptr || deps_.gate == nullptr
                     ? absl::OkStatus()
                     : deps_.gate->Identify(*info->server_context()).status();
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      Received(static_cast<const Message*>(methods->GetRecvMessage()));
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(
          kTimeHeader, absl::StrCat(absl::ToUnixMillis(deps_.clock->Now())));
      if (const absl::Status sound = deps_.store->CheckWritable(); !sound.ok()) {
        methods->GetSendInitialMetadata()->emplace(kStoreHeader, sound.message());
      } else if (deps_.store->IsBeingChecked()) {
        methods->GetSendInitialMetadata()->emplace(kStoreHeader, kStoreIsChecked);
      }
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      grpc::Status status = methods->GetSendStatus();
      if (!unread_.ok() && status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
        status = rpc::ToGrpc(unread_);
        methods->ModifySendStatus(status);
      }
      Ended(status);
    }
    methods->Proceed();
  }

 private:
  void Received(const Message* message) {
    if (info_->type() == grpc::experimental::ServerRpcInfo::Type::CLIENT_STREAMING) return;
    if (message == nullptr) {
      unread_ = !not_parsed.ok() ? not_parsed
                : not_utf8.empty()
                    ? absl::InvalidArgumentError(
                          "the request is not a message of this method, or nested too deep")
                    : absl::InvalidArgumentError(absl::StrCat(not_utf8, ": the text is not UTF-8"));
    } else if (access_ != nullptr && !access_->resource.empty()) {
      resource_ = TextField(*message, access_->resource);
    }
  }

  void Ended(const grpc::Status& status) {
    // All unknown methods are counted as one, because the observer stores every name.
    const absl::string_view counted = access_ == nullptr ? kNoMethod : info_->method();
    const bool is_refused = IsRefusal(status.error_code());
    std::string reason;
    if (is_refused) {
      reason = rpc::ReasonOf(rpc::FromGrpc(status));
      if (reason.empty()) reason = CodeName(status.error_code());
    }
    if (deps_.observer != nullptr) {
      deps_.observer->OnCall(counted, status.error_code(),
                             absl::FromChrono(std::chrono::steady_clock::now() - begin_));
      if (is_refused) deps_.observer->OnRefusal(counted, reason);
    }
    if (access_ == nullptr) return;
    // The worker's own log is on another machine.
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED &&
        access_->resource == "worker_id" && owner_->IsToBeLogged(resource_)) {
      spdlog::warn(
          "a call in the name of the worker '{}' from {} was refused: {}. hone worker-config makes "
          "a new configuration",
          absl::Utf8SafeCHexEscape(resource_), rpc::PeerHost(*info_->server_context()),
          status.error_message());
    }
    if (deps_.audit == nullptr) return;
    if (!access_->audited && !is_refused) return;
    const grpc::ServerContextBase& context = *info_->server_context();
    absl::string_view method = info_->method();
    absl::ConsumePrefix(&method, kOurs);
    AuditEntry entry{.time = deps_.clock->Now(),
                     .peer = rpc::PeerHost(context),
                     .method = std::string(method),
                     .resource = resource_,
                     .result = CodeName(status.error_code()),
                     .detail = status.error_message(),
                     .reason = std::move(reason)};
    if (const auto caller = deps_.authenticator->Identify(context); caller.ok()) {
      entry.who = caller->name;
      entry.role = std::string(rpc::RoleName(caller->role));
    }
    if (is_refused) {
      deps_.audit->WriteRefusal(std::move(entry));
    } else {
      deps_.audit->Write(entry);
    }
  }

  CallObserver* const owner_;
  const Dependencies& deps_;
  grpc::experimental::ServerRpcInfo* const info_;
  const Access* const access_;
  const std::chrono::steady_clock::time_point begin_;
  std::string resource_;
  absl::Status unread_;  // why the request was not read
};

grpc::experimental::Interceptor* CallObserver::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  // Health and reflection are services of gRPC.
  if (!absl::StartsWith(info->method(), kOurs)) return nullptr;
  return new Call(this, info);
}

bool CallObserver::IsToBeLogged(const std::string& worker_id) {
  const absl::Time now = SteadyNow();
  absl::MutexLock lock(&mutex_);
  absl::erase_if(logged_, [&](const auto& entry) { return now - entry.second >= kLogInterval; });
  return logged_.size() < kMostLogged && logged_.emplace(worker_id, now).second;
}

bool MayBeParsed(size_t bytes, size_t most) {
  if (!not_parsed.ok()) return bytes <= kMostOfUnknown;
  if (bytes > most) not_parsed = RequestTooLong(bytes, most);
  return bytes <= most;
}

void TakeProtobufLog() { google::protobuf::SetLogHandler(&KeepComplaint); }

}  // namespace hone::service

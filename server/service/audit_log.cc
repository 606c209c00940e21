#include "server/service/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace hone::service {

std::string ToJsonLine(const AuditEntry& entry) {
  nlohmann::ordered_json json;
  json["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", entry.time, absl::UTCTimeZone());
  json["who"] = entry.who;
  json["role"] = entry.role;
  json["peer"] = entry.peer;
  json["method"] = entry.method;
  json["resource"] = entry.resource;
  json["result"] = entry.result;
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
  const std::string line = ToJsonLine(entry) + "\n";
  absl::MutexLock lock(&mutex_);
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

}  // namespace hone::service

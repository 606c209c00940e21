#ifndef HONE_SERVER_SERVICE_AUDIT_LOG_H_
#define HONE_SERVER_SERVICE_AUDIT_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hone::service {

// An audited call. No field contains a token.
struct AuditEntry {
  absl::Time time;
  std::string who;       // the caller's name; "" if unknown
  std::string role;      // "" if unknown
  std::string peer;      // host
  std::string method;    // "TuningService/CreateJob"
  std::string resource;  // the id of the resource; "" if there is none
  std::string result;    // the name of a gRPC code: "OK", "PERMISSION_DENIED"
  std::string detail;    // why the call was refused
};

// Returns the entry as one line of JSON, without the newline.
std::string ToJsonLine(const AuditEntry& entry);

// An append-only file of JSON lines with mode 0600. When it reaches max_bytes it is renamed to
// PATH.1, PATH.1 to PATH.2, and so on; the last `kept` files are kept. An entry that cannot be
// written is written to the server's log. If the file cannot be opened again after it was renamed,
// every entry tries to open it. Thread-safe.
class AuditLog {
 public:
  struct Options {
    int64_t max_bytes = int64_t{64} << 20;
    int kept = 8;
  };
  // PermissionDenied, NotFound: the file cannot be opened for appending.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, Options options);
  ~AuditLog();

  void Write(const AuditEntry& entry);

 private:
  AuditLog(std::string path, Options options) : path_(std::move(path)), options_(options) {}
  // After an error, no file is open.
  absl::Status Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReopenOrLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Rotate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const Options options_;
  absl::Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_AUDIT_LOG_H_

#ifndef HONE_SERVER_STORE_READ_LIMIT_H_
#define HONE_SERVER_STORE_READ_LIMIT_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "spdlog/spdlog.h"

namespace hone::store {

// While it lives, the reads of the thread that made it end soon after `check` returns an error,
// with this error. Reads that run ask about every millisecond on SQLite, and every few dozen
// milliseconds on PostgreSQL; reads that wait for a connection ask as well. `check` must be cheap,
// must not read the store, and must go on returning an error once it has returned one.
class ReadLimit {
 public:
  explicit ReadLimit(absl::FunctionRef<absl::Status()> check) : check_(check), outer_(present_) {
    present_ = this;
  }
  ~ReadLimit() { present_ = outer_; }
  ReadLimit(const ReadLimit&) = delete;
  ReadLimit& operator=(const ReadLimit&) = delete;

  // Whether the present thread has a limit.
  static bool IsSet() { return present_ != nullptr; }
  // Returns the error of the present thread's limit; OK if it has none.
  static absl::Status Check() { return IsSet() ? present_->check_() : absl::OkStatus(); }

 private:
  static inline thread_local const ReadLimit* present_ = nullptr;

  const absl::FunctionRef<absl::Status()> check_;
  const ReadLimit* const outer_;
};

// While it lives, the thread that made it must not read the store, because others wait for this
// thread, and a read may take long. Writes are queued, so they are allowed. A read nevertheless
// works, but is counted, and the first one is logged as a defect. Tests check that there is none.
class NoReads {
 public:
  // `where`: a literal that names the thread, for the log.
  explicit NoReads(const char* where) : outer_(present_) { present_ = where; }
  ~NoReads() { present_ = outer_; }
  NoReads(const NoReads&) = delete;
  NoReads& operator=(const NoReads&) = delete;

  // Called before each read.
  static void Check() {
    if (present_ == nullptr || count_.fetch_add(1) > 0) return;
    spdlog::error("the store is read on {}, which is a defect of Hone: please report it", present_);
  }
  // The number of reads of this process on threads that must not read.
  static int64_t count() { return count_; }

 private:
  static inline thread_local const char* present_ = nullptr;
  static inline std::atomic<int64_t> count_ = 0;

  const char* const outer_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_READ_LIMIT_H_

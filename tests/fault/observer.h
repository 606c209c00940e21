#ifndef HONE_TESTS_FAULT_OBSERVER_H_
#define HONE_TESTS_FAULT_OBSERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/connection/connection.h"
#include "tests/fault/ledger.h"

namespace hone::fault {

// A client that reads every new record and remembers it; everything it has seen must be kept. It
// has its own thread, because a stopped server blocks it.
class Observer {
 public:
  static absl::StatusOr<std::unique_ptr<Observer>> Start(const std::string& server, Ledger* ledger);
  ~Observer();

  // Records nothing after the return until Resume, which starts after `last_record`.
  void Pause();
  void Resume(int64_t last_record);

 private:
  Observer(std::unique_ptr<client::Connection> connection, Ledger* ledger)
      : connection_(std::move(connection)), ledger_(ledger) {}
  void Loop();
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<client::Connection> connection_;
  Ledger* const ledger_;
  absl::Mutex mutex_;  // held while it reads
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Opens a connection for checks, with short deadlines for a stopped server.
absl::StatusOr<std::unique_ptr<client::Connection>> OpenDirect(const std::string& server);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_OBSERVER_H_

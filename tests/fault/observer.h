#ifndef HONE_TESTS_FAULT_OBSERVER_H_
#define HONE_TESTS_FAULT_OBSERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/lib/connection.h"
#include "tests/fault/ledger.h"

namespace hone::fault {

// A client that reads every new record as soon as it is shown and remembers it: whatever it has
// seen must stay. On a thread of its own, since a server that is stopped keeps it waiting.
class Observer {
 public:
  static absl::StatusOr<std::unique_ptr<Observer>> Start(const std::string& server, Ledger* ledger);
  ~Observer();

  // From the return on nothing is noted, until Resume, which begins behind `last_record`.
  void Pause();
  void Resume(int64_t last_record);

 private:
  Observer(std::unique_ptr<client::Connection> connection, Ledger* ledger)
      : connection_(std::move(connection)), ledger_(ledger) {}
  void Loop();
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<client::Connection> connection_;
  Ledger* const ledger_;
  absl::Mutex mutex_;  // held while it looks
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// What the tests ask the server with: nobody waits long for one that is stopped.
absl::StatusOr<std::unique_ptr<client::Connection>> OpenDirect(const std::string& server);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_OBSERVER_H_

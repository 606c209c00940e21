#ifndef HONE_TESTS_FAULT_TCP_PROXY_H_
#define HONE_TESTS_FAULT_TCP_PROXY_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hone::fault {

// The faults of a connection.
struct Weather {
  absl::Duration delay;          // of every byte, in both directions
  bool black_hole = false;       // nothing passes; connections stay open, and bytes arrive later
  bool swallow_replies = false;  // the server's answers are lost
};

// A local TCP port that forwards connections to a Unix socket. One thread moves the bytes.
// Thread-safe.
class TcpProxy {
 public:
  // Errors: no port or no thread.
  static absl::StatusOr<std::unique_ptr<TcpProxy>> Start(const std::string& unix_path);
  ~TcpProxy();

  std::string address() const;  // "127.0.0.1:port"
  // Swallowed bytes are lost, so turning swallow_replies off also cuts the connections.
  void SetWeather(const Weather& weather);
  // Resets every connection.
  void Cut();
  // How many bytes have come from both sides.
  int64_t bytes() const { return bytes_; }

 private:
  struct Chunk {
    absl::Time due;
    std::string bytes;
  };
  struct Way {
    int from = -1;
    int to = -1;
    std::deque<Chunk> held;
    bool ended = false;  // `from` has closed its side
  };
  struct Link {
    Way up;    // to the server
    Way down;  // from it
    bool broken = false;
  };
  TcpProxy() = default;
  void Loop();
  void Accept();
  // Reads available bytes and writes those that are due.
  void Move(Way& way, bool readable, bool swallow, Link& link);
  void Close(Link& link);
  void Wake();

  std::string unix_path_;
  int listener_ = -1;
  int port_ = 0;
  int wake_[2] = {-1, -1};
  std::atomic<int64_t> bytes_{0};
  std::list<Link> links_;  // owned by the thread
  absl::Mutex mutex_;
  Weather weather_ ABSL_GUARDED_BY(mutex_);
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_TCP_PROXY_H_

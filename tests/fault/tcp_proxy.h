#ifndef HONE_TESTS_FAULT_TCP_PROXY_H_
#define HONE_TESTS_FAULT_TCP_PROXY_H_

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

// What the network does to bytes.
struct Weather {
  absl::Duration delay;          // of every byte, both ways
  bool black_hole = false;       // nothing passes; connections stay open, and bytes come later
  bool swallow_replies = false;  // what the server answers is lost
};

// A TCP port of this machine whose connections end at a Unix socket. One thread moves the bytes.
// Calls are thread-safe.
class TcpProxy {
 public:
  // Errors: no port, no thread.
  static absl::StatusOr<std::unique_ptr<TcpProxy>> Start(const std::string& unix_path);
  ~TcpProxy();

  std::string address() const;  // "127.0.0.1:port"
  // Bytes that were swallowed are gone, so weather without swallow_replies after weather with it
  // cuts the connections.
  void SetWeather(const Weather& weather);
  // Resets every connection.
  void Cut();

 private:
  struct Chunk {
    absl::Time due;
    std::string bytes;
  };
  struct Way {
    int from = -1;
    int to = -1;
    std::deque<Chunk> held;
    bool ended = false;  // `from` sends no more
  };
  struct Link {
    Way up;    // to the server
    Way down;  // from it
    bool broken = false;
  };
  TcpProxy() = default;
  void Loop();
  void Accept();
  // Reads what is there, and writes what is due.
  void Move(Way& way, bool readable, bool swallow, Link& link);
  void Close(Link& link);
  void Wake();

  std::string unix_path_;
  int listener_ = -1;
  int port_ = 0;
  int wake_[2] = {-1, -1};
  std::list<Link> links_;  // of the thread
  absl::Mutex mutex_;
  Weather weather_ ABSL_GUARDED_BY(mutex_);
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_TCP_PROXY_H_

#ifndef HONE_COMMON_RPC_CONNECTIONS_H_
#define HONE_COMMON_RPC_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace hone::rpc {

struct ConnectionLimits {
  // Connections to all TCP addresses of a server together, and those from one host. The second
  // number is so large because a whole fleet of workers may be behind one address (NAT).
  int all = 8192;
  int of_host = 4096;
  // If a limit is reached, a new connection replaces the oldest one on which no known caller has
  // called for this long after it was accepted.
  absl::Duration grace = absl::Seconds(10);
};

// The TCP connections of a server and their limits, which apply before a caller is known. Idle
// connections, however many, cannot keep other callers out for longer than a few seconds, even
// callers on the same host. Thread-safe.
class Connections {
 public:
  // Called with "connections_of_host" or "connections", and the host whose connection was refused
  // or ended.
  using OnRefusal = std::function<void(absl::string_view reason, const std::string& host)>;

  Connections(const Clock* steady_clock, const ConnectionLimits& limits, OnRefusal on_refusal)
      : clock_(steady_clock), limits_(limits), on_refusal_(std::move(on_refusal)) {}

  // Adds a connection of a host, whose other end is `peer`: "10.0.0.7:5000" or "[fd00::7]:5000".
  // `end` ends it and must not call this object. Returns its number, or nullopt if a limit is
  // reached and no other connection is to be replaced.
  std::optional<int64_t> Add(const std::string& host, const std::string& peer,
                             std::function<void()> end);
  // Called when a connection has ended. Does nothing for one that was replaced.
  void Remove(int64_t connection);
  // Called for a call of a known caller: its connection is no longer replaced. `peer`: the result
  // of grpc::ServerContext::peer.
  void NoteCaller(absl::string_view peer);

  struct Counts {
    int64_t used = 0;    // a known caller has called
    int64_t unused = 0;  // the others
  };
  Counts counts() const;

 private:
  struct Connection {
    std::string host;
    std::string peer;
    std::function<void()> end;
    absl::Time since;
    bool is_used = false;
  };
  using ByNumber = std::map<int64_t, Connection>;  // oldest first

  // Returns a connection that may be replaced; if `host` is not "", one of that host.
  ByNumber::iterator FindUnused(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(ByNumber::iterator connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const ConnectionLimits limits_;
  const OnRefusal on_refusal_;
  mutable absl::Mutex mutex_;
  ByNumber connections_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int64_t> by_peer_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> of_host_ ABSL_GUARDED_BY(mutex_);
  int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_CONNECTIONS_H_

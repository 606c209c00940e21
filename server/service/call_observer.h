#ifndef HONE_SERVER_SERVICE_CALL_OBSERVER_H_
#define HONE_SERVER_SERVICE_CALL_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/record/record.h"
#include "common/rpc/address.h"
#include "common/rpc/authenticator.h"
#include "grpcpp/support/server_interceptor.h"
#include "grpcpp/support/status.h"
#include "server/store/store.h"

namespace hone::service {

// The interface for metrics of a server. Thread-safe; implementations must not block.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  // Called at the end of a call. `method`: "/hone.v1.TuningService/CreateJob", or
  // "/hone.v1/unknown" for every unknown method. `took`: the time from its arrival to its status,
  // which includes the waiting time of a long-poll.
  virtual void OnCall(absl::string_view method, grpc::StatusCode code, absl::Duration took) = 0;
  // Called for a refused call, besides OnCall. `method`: as there. `reason`: one of a few words
  // such as "TOKEN_UNKNOWN", or the name of the code.
  virtual void OnRefusal(absl::string_view method, absl::string_view reason) = 0;
  // Called when a connection was refused, or ended in favor of another one. `reason`: see
  // rpc::Connections.
  virtual void OnRefusedConnection(absl::string_view reason) = 0;
  // Called when a call of Synchronize is answered. `handling`: the time for admitting the call,
  // processing the report and making the answer, without the time that the call was held.
  virtual void OnSynchronize(absl::Duration handling) = 0;
  // Called when a worker is told that the result of a trial is durable.
  virtual void OnResult(record::Outcome outcome) = 0;
};

// A number that describes the state of a server, or one for each value of a label. metrics.md
// describes them.
struct ServerMetric {
  const char* name;
  const char* help;
  const char* label;                      // "" if there is one number
  std::map<std::string, int64_t> values;  // by the label's value; "" without a label
  bool is_total = false;                  // it counts since the start, and only grows
};

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
  std::string reason;    // the same as a word, see ServerObserver::OnRefusal
  int64_t count = 1;     // how many refusals the entry stands for; the other fields are of the last
};

// Returns the entry as one line of JSON, without the newline.
std::string ToJsonLine(const AuditEntry& entry);

// An append-only file of JSON lines with mode 0600. Refusals are counted, so that nobody can push
// older entries out of the files with calls that are refused: the first one of a peer for a reason
// is written at once, and those of the following minute are one entry with their number. When it
// reaches max_bytes it is renamed to PATH.1, PATH.1 to PATH.2, and so on; the last `kept` files are
// kept. An entry that cannot be written is written to the server's log. If the file cannot be
// opened again after it was renamed, every entry tries to open it. Thread-safe.
class AuditLog {
 public:
  struct Options {
    int64_t max_bytes = int64_t{64} << 20;
    int kept = 8;
    absl::Duration refusal_interval = absl::Minutes(1);
  };
  // The peers whose refusals are counted separately in this interval; the others are one peer.
  static constexpr size_t kMostPeers = 64;

  // PermissionDenied, NotFound: the file cannot be opened for appending.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, Options options);
  ~AuditLog();

  void Write(const AuditEntry& entry);
  // Writes or counts a refusal, whose reason must be set.
  void WriteRefusal(AuditEntry entry);
  // Writes the counts that are due. Called a few times a second.
  void Tick();

 private:
  // The refusals of a peer for a reason since one was written.
  struct Refusals {
    AuditEntry last;
    int64_t count = 0;
    absl::Time due;
  };
  AuditLog(std::string path, Options options) : path_(std::move(path)), options_(options) {}
  // After an error, no file is open.
  absl::Status Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReopenOrLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Rotate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteLine(const AuditEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the counts that are due at a time.
  void WriteCounts(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const Options options_;
  absl::Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  // By reason and peer; "" for all other peers.
  std::map<std::pair<std::string, std::string>, Refusals> refusals_ ABSL_GUARDED_BY(mutex_);
};

// The header of every answer with the server's time, in milliseconds of Unix time.
inline constexpr char kTimeHeader[] = "hone-unix-ms";
// A header about the state of the store: kStoreIsChecked while the check of the whole store is
// under way, or else what is wrong with a damaged store. Absent if no damage is known.
inline constexpr char kStoreHeader[] = "hone-store-bin";
inline constexpr char kStoreIsChecked[] = "checking";

class Gate;

// Observes every call from its arrival to its status. Writes the audit log, calls the observer,
// adds the server's time and the state of its store to each answer, and explains why a request
// could not be parsed, for which gRPC reports UNIMPLEMENTED. Logs the workers whose token or
// certificate is not accepted.
class CallObserver final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // REQUIRES: all outlive this object. `audit` and `observer` may be null.
  struct Dependencies {
    const Clock* clock = nullptr;  // the time of day
    const rpc::Authenticator* authenticator = nullptr;
    const Gate* gate = nullptr;
    store::Store* store = nullptr;
    AuditLog* audit = nullptr;
    ServerObserver* observer = nullptr;
  };
  explicit CallObserver(const Dependencies& deps) : deps_(deps) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  class Call;
  // Whether the refusal of a worker is to be logged: once a minute per name, and for a few names
  // only, because unknown callers can send any name.
  bool IsToBeLogged(const std::string& worker_id);

  const Dependencies deps_;
  absl::Mutex mutex_;
  // The workers whose refusal was logged in the last minute, and when.
  absl::flat_hash_map<std::string, absl::Time> logged_ ABSL_GUARDED_BY(mutex_);
};

// Returns whether the request of the call that has just arrived on this thread is to be parsed. It
// is not if it is longer than `most`, or than 64 KiB from an unknown caller. Then the observer
// gives the call its status.
bool MayBeParsed(size_t bytes, size_t most);

// Passes Protobuf's errors about texts that are not UTF-8 to the observer instead of printing them.
// Called before a server is made.
void TakeProtobufLog();

// Serves the metrics of a server for Prometheus at /metrics. metrics.md lists every metric.
// Thread-safe.
class Metrics : public ServerObserver {
 public:
  // Starts to listen; port 0 means any free port. InvalidArgument: the address is a Unix socket.
  // Unavailable: the address cannot be used. Other errors are those of rpc::CheckPortFree.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const rpc::Address& address);

  virtual int port() const = 0;
  // Sets the function that is called at every scrape. If null, none is called from now on, and
  // Watch waits for the end of a running scrape.
  virtual void Watch(std::function<std::vector<ServerMetric>()> read) = 0;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_CALL_OBSERVER_H_

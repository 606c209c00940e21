#ifndef HONE_SERVER_WEB_WEB_SERVER_H_
#define HONE_SERVER_WEB_WEB_SERVER_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/rpc/address.h"
#include "server/service/server.h"
#include "server/service/services.h"
#include "server/web/session_book.h"

namespace hone::web {

class HttpServer;

// The web page of a server over HTTP without encryption: its sessions, and when it listens.
// Thread-safe, except Serve and Stop.
class WebServer final : public service::Dashboard {
 public:
  struct Options {
    rpc::Address listen = {.host = "127.0.0.1"};
    bool insecure = false;         // other machines may reach the address
    int threads = 24;              // connections at the same time
    int streams = 16;              // of them, event streams
    bool on_demand = false;        // listen only once somebody opens the page
    const Clock* clock = nullptr;  // of sessions; null: the system's
  };

  // Listens, unless this is to happen on demand. InvalidArgument: the address is a Unix
  // socket. AlreadyExists, Unavailable: it cannot be used.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const Options& options);
  ~WebServer() override;

  // Answers requests from now on until Stop, which must be called before the server is shut down.
  void Serve(service::Server& server);
  void Stop();

  absl::StatusOr<Opened> Open(const rpc::Identity& caller) override;
  // The port; 0: it does not listen yet.
  int port() const;

 private:
  explicit WebServer(const Options& options);
  absl::Status Listen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts the thread of http_. REQUIRES: server_ and http_ are set.
  void Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const SystemClock system_clock_;
  const Clock* const clock_;
  SessionBook sessions_;
  mutable absl::Mutex mutex_;
  service::Server* server_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<HttpServer> http_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::web

#endif  // HONE_SERVER_WEB_WEB_SERVER_H_

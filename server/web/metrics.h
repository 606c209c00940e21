#ifndef HONE_SERVER_WEB_METRICS_H_
#define HONE_SERVER_WEB_METRICS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "server/service/server_observer.h"

namespace hone::web {

// What a server does, for Prometheus: GET /metrics. README.md lists every metric. Thread-safe.
class Metrics final : public service::ServerObserver {
 public:
  // Listens; port 0 is any. InvalidArgument: a Unix socket. AlreadyExists: the address is in use or
  // not of this machine.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const rpc::Address& address);
  ~Metrics() override;

  int port() const;
  // Who is asked at every scrape; null: nobody any more, which this waits for.
  void Watch(std::function<service::ServerStats()> stats);

  void OnCall(absl::string_view method, grpc::StatusCode code, absl::Duration took) override;
  void OnSynchronize(absl::Duration handling) override;
  void OnResult(record::Outcome outcome) override;

 private:
  class Parts;
  explicit Metrics(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace hone::web

#endif  // HONE_SERVER_WEB_METRICS_H_

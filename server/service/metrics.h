#ifndef HONE_SERVER_SERVICE_METRICS_H_
#define HONE_SERVER_SERVICE_METRICS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "server/service/server_observer.h"

namespace hone::service {

// What a server does, for Prometheus: GET /metrics. metrics.md lists every metric. Thread-safe.
class Metrics final : public service::ServerObserver {
 public:
  // Listens; port 0 is any. InvalidArgument: a Unix socket. AlreadyExists: the address is in use or
  // not of this machine.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const rpc::Address& address);
  ~Metrics() override;

  int port() const;
  // Is asked at every scrape; null: is asked no more, and this waits for a scrape under way.
  void Watch(std::function<ServerStats()> stats);

  void OnCall(absl::string_view method, grpc::StatusCode code, absl::Duration took) override;
  void OnSynchronize(absl::Duration handling) override;
  void OnResult(record::Outcome outcome) override;

 private:
  class Parts;
  explicit Metrics(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_METRICS_H_

#ifndef HONE_SERVER_SERVICE_METRICS_H_
#define HONE_SERVER_SERVICE_METRICS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "server/service/call_observer.h"

namespace hone::service {

// Serves the metrics of a server for Prometheus at /metrics. metrics.md lists every metric.
// Thread-safe.
class Metrics final : public service::ServerObserver {
 public:
  // Starts to listen; port 0 means any free port. InvalidArgument: the address is a Unix socket.
  // Unavailable: the address cannot be used. Other errors are those of rpc::CheckPortFree.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const rpc::Address& address);
  ~Metrics() override;

  int port() const;
  // Sets the function that is called at every scrape. If null, none is called from now on, and
  // Watch waits for the end of a running scrape.
  void Watch(std::function<ServerStats()> stats);

  void OnCall(absl::string_view method, grpc::StatusCode code, absl::Duration took) override;
  void OnRefusal(absl::string_view method, absl::string_view reason) override;
  void OnRefusedConnection(absl::string_view reason) override;
  void OnSynchronize(absl::Duration handling) override;
  void OnResult(record::Outcome outcome) override;

 private:
  class Parts;
  explicit Metrics(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_METRICS_H_

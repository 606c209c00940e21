#ifndef HONE_SERVER_SERVICE_METRICS_H_
#define HONE_SERVER_SERVICE_METRICS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "server/service/call_observer.h"

namespace hone::service {

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

#endif  // HONE_SERVER_SERVICE_METRICS_H_

#ifndef HONE_SERVER_SERVICE_DASHBOARD_SERVICE_H_
#define HONE_SERVER_SERVICE_DASHBOARD_SERVICE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/role.h"
#include "hone/v1/dashboard.pb.h"

namespace hone::service {

// The web page of a server, which server/web implements. Thread-safe.
class Dashboard {
 public:
  virtual ~Dashboard() = default;
  struct Opened {
    std::string url;
    absl::Time expires;
  };
  // Opens a session for a caller, in which it may do what its role may do. FailedPrecondition: the
  // server serves no page. ResourceExhausted: too many sessions.
  virtual absl::StatusOr<Opened> Open(const rpc::Identity& caller) = 0;
};

// Opens sessions of the web page. Thread-safe. Errors are those of dashboard.proto.
class DashboardService {
 public:
  // `dashboard` may be null.
  explicit DashboardService(Dashboard* dashboard) : dashboard_(dashboard) {}

  absl::Status OpenDashboard(const rpc::Identity& caller, const v1::OpenDashboardRequest& request,
                             v1::OpenDashboardResponse* response);

 private:
  Dashboard* const dashboard_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_DASHBOARD_SERVICE_H_

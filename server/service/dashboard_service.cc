#include "server/service/dashboard_service.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::service {

absl::Status DashboardService::OpenDashboard(const rpc::Identity& caller,
                                             const v1::OpenDashboardRequest& request,
                                             v1::OpenDashboardResponse* response) {
  if (dashboard_ == nullptr) {
    return absl::FailedPreconditionError(
        "the server serves no web page: start it with --web-listen, such as localhost:7080");
  }
  if (request.may_act() && caller.role == rpc::Role::kViewer) {
    return absl::PermissionDeniedError(
        absl::StrCat(caller.name, " may only read: open the page without its actions"));
  }
  rpc::Identity session = caller;
  if (!request.may_act()) session.role = rpc::Role::kViewer;
  HONE_ASSIGN_OR_RETURN(const Dashboard::Opened opened, dashboard_->Open(session));
  response->set_url(opened.url);
  response->set_expires_unix_ms(absl::ToUnixMillis(opened.expires));
  return absl::OkStatus();
}

}  // namespace hone::service

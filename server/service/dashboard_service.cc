#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/service/services.h"

namespace hone::service {

absl::Status DashboardService::OpenDashboard(const Call& call,
                                             const v1::OpenDashboardRequest& request,
                                             v1::OpenDashboardResponse* response) {
  if (deps_.dashboard == nullptr) {
    return absl::FailedPreconditionError(
        "the server serves no web page: start it with --web-listen, such as localhost:7080");
  }
  if (request.may_act() && call.caller.role == rpc::Role::kViewer) {
    return absl::PermissionDeniedError(
        absl::StrCat(call.caller.name, " may only read: open the page without its actions"));
  }
  rpc::Identity session = call.caller;
  if (!request.may_act()) session.role = rpc::Role::kViewer;
  HONE_ASSIGN_OR_RETURN(const Dashboard::Opened opened, deps_.dashboard->Open(session));
  response->set_url(opened.url);
  response->set_expires_unix_ms(absl::ToUnixMillis(opened.expires));
  return absl::OkStatus();
}

}  // namespace hone::service

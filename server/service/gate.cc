#include "server/service/gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/service/access.h"
#include "server/service/message_limits.h"

namespace hone::service {
namespace {

absl::Status Deny(absl::string_view reason, absl::string_view message) {
  return rpc::WithReason(absl::PermissionDeniedError(message), reason);
}

}  // namespace

absl::StatusOr<rpc::Identity> Gate::Admit(const grpc::ServerContextBase& context,
                                          absl::string_view method,
                                          const google::protobuf::Message* message) const {
  const Access* access = FindAccess(method);
  if (access == nullptr)
    return Deny("METHOD_UNKNOWN", absl::StrCat("the server does not know the call ", method,
                                               "; are both of the same version of Hone?"));
  rpc::Identity caller{.role = rpc::Role::kAdmin};
  if (options_.trusted) {
    caller.name = authenticator_->NameOf(context);
  } else {
    HONE_ASSIGN_OR_RETURN(caller, authenticator_->Identify(context));
    HONE_RETURN_IF_ERROR(
        limiter_->Admit(absl::StrCat(caller.name, " at ", rpc::PeerHost(context))));
  }
  if (caller.role != access->role && caller.role != rpc::Role::kAdmin) {
    return Deny("ROLE", absl::StrCat(caller.name, " has the role ", rpc::RoleName(caller.role),
                                     ", and this needs the role ", rpc::RoleName(access->role),
                                     ": use the configuration of such a caller"));
  }
  const std::vector<rpc::Role>& served = options_.roles;
  if (!served.empty() && std::find(served.begin(), served.end(), access->role) == served.end()) {
    return Deny("LISTENER", absl::StrCat(options_.address.ToText(), " serves ",
                                         absl::StrJoin(served, ", ",
                                                       [](std::string* out, rpc::Role role) {
                                                         absl::StrAppend(out, rpc::RoleName(role),
                                                                         "s");
                                                       }),
                                         " only; use another address of the server"));
  }
  if (message != nullptr) HONE_RETURN_IF_ERROR(CheckMessage(*message));
  return caller;
}

absl::Status Gate::CheckWorkerId(const rpc::Identity& caller, const std::string& worker_id) const {
  if (caller.role == rpc::Role::kAdmin || caller.MayBeCalled(worker_id)) return absl::OkStatus();
  return Deny("WORKER_ID", absl::StrCat("the worker calls itself '", worker_id,
                                        "', but its certificate or token is of '", caller.name,
                                        "'; give it the name of its certificate or token"));
}

}  // namespace hone::service

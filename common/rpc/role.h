#ifndef HONE_COMMON_RPC_ROLE_H_
#define HONE_COMMON_RPC_ROLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hone::rpc {

// A client tunes and looks up schedules, and a worker builds and measures candidates. A viewer only
// reads what clients may read. An administrator may do all this, and administers the server.
enum class Role { kClient, kWorker, kAdmin, kViewer };

inline absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kClient:
      return "client";
    case Role::kWorker:
      return "worker";
    case Role::kAdmin:
      return "admin";
    case Role::kViewer:
      return "viewer";
  }
  return "";
}

// InvalidArgument: unknown name.
inline absl::StatusOr<Role> RoleFromName(absl::string_view name) {
  for (const Role role : {Role::kClient, Role::kWorker, Role::kAdmin, Role::kViewer}) {
    if (RoleName(role) == name) return role;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown role '", name, "'; the roles are client, worker, admin and viewer"));
}

// The identity of a caller. A token that several workers share has a name that ends in '*', which
// stands for every name with the prefix before the '*'. MayBeCalled says whether the caller may use
// a name.
struct Identity {
  std::string name;
  Role role = Role::kClient;

  bool MayBeCalled(absl::string_view other) const {
    if (!absl::EndsWith(name, "*")) return name == other;
    return absl::StartsWith(other, absl::string_view(name).substr(0, name.size() - 1));
  }
  friend bool operator==(const Identity&, const Identity&) = default;
};

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_ROLE_H_

#ifndef HONE_SERVER_SERVICE_ACCESS_H_
#define HONE_SERVER_SERVICE_ACCESS_H_

#include "absl/strings/string_view.h"
#include "common/rpc/role.h"

namespace hone::service {

// The access rule of a method.
struct Access {
  absl::string_view method;    // "/hone.v1.TuningService/CreateJob"
  rpc::Role role;              // the role that may call it; administrators may call all methods
  bool audited = false;        // all calls are written to the audit log, not only refused ones
  absl::string_view resource;  // the request's field that names its resource; "" if none
};

// Returns the rule of a method. Null if the method is unknown; such calls are refused.
const Access* FindAccess(absl::string_view method);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_ACCESS_H_

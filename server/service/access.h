#ifndef HONE_SERVER_SERVICE_ACCESS_H_
#define HONE_SERVER_SERVICE_ACCESS_H_

#include "absl/strings/string_view.h"
#include "common/rpc/role.h"

namespace hone::service {

// What is asked of the caller of a method.
struct Access {
  absl::string_view method;    // "/hone.v1.TuningService/CreateJob"
  rpc::Role role;              // that may call it, besides an administrator
  bool audited = false;        // every call goes into the audit log; else only refused ones
  absl::string_view resource;  // field of the request that names what it is about; "" none
};

// The row of a method. Null: it is not a known method, and no caller may call it.
const Access* FindAccess(absl::string_view method);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_ACCESS_H_

#ifndef HONE_COMMON_TARGET_TARGET_RESOLVER_H_
#define HONE_COMMON_TARGET_TARGET_RESOLVER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::target {

// Describes the devices of one kind on this machine. `device` is the name that a user wrote, such
// as "opencl" or "opencl:1".
using TargetResolver = absl::StatusOr<Target> (*)(absl::string_view device);

// Makes TargetByName pass the names `kind` and `kind:…` to the resolver. Only programs
// that may load drivers add one; the server does not. REQUIRES: called at the program's start,
// before it has other threads. A second call with the same kind has no effect.
void AddTargetResolver(absl::string_view kind, TargetResolver resolver);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_TARGET_RESOLVER_H_

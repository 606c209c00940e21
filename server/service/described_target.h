#ifndef HONE_SERVER_SERVICE_DESCRIBED_TARGET_H_
#define HONE_SERVER_SERVICE_DESCRIBED_TARGET_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/fleet/fleet.h"

namespace hone::service {

// Returns the text form of a target that a request names by its text form or by the key of a
// registered worker's target. InvalidArgument: it is too long. FailedPrecondition: no worker of
// that key is registered; the message lists the keys.
absl::StatusOr<std::string> DescribedTarget(const std::string& target, const fleet::Fleet& fleet);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_DESCRIBED_TARGET_H_

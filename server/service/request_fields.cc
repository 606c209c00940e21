#include "server/service/request_fields.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/service/job_convert.h"

namespace hone::service {

absl::StatusOr<std::string> DescribedTarget(const std::string& target, const fleet::Fleet& fleet) {
  if (target.size() > kMaxTargetBytes) return FieldError("target", "too long");
  if (target.find(' ') != std::string::npos) return target;  // keys contain no spaces
  std::set<std::string> keys;
  for (const fleet::WorkerInfo& worker : fleet.Workers()) {
    const fleet::Capabilities& capabilities = worker.capabilities;
    if (capabilities.target_key == target) return capabilities.target;
    keys.insert(capabilities.target_key);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("target: no worker of '", target,
                   "' is registered, and a key alone does not describe a target; registered keys: ",
                   keys.empty() ? "none" : absl::StrJoin(keys, ", ")));
}

}  // namespace hone::service

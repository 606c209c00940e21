#ifndef HONE_SERVER_SERVICE_REQUEST_FIELDS_H_
#define HONE_SERVER_SERVICE_REQUEST_FIELDS_H_

#include <cmath>
#include <cstddef>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "server/fleet/fleet.h"
#include "server/store/store.h"

namespace hone::service {

// A page of a list ends after the entry with which it has this size, because texts may be long and
// a message has at most 16 MiB.
inline constexpr size_t kPageBytes = 4 << 20;
inline constexpr size_t kMaxTargetBytes = 4096;  // of a target's text form

// Returns a readable name of a field, such as "cost model" for "cost_model", because users know the
// options of commands but not the protocol.
inline std::string FieldWords(absl::string_view field) {
  return absl::StrReplaceAll(field, {{"_", " "}, {".", " "}});
}

// Returns InvalidArgument with the name of a request's field.
inline absl::Status FieldError(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(FieldWords(field), ": ", why));
}

// InvalidArgument: not a finite number from 0 to 1.
inline absl::Status CheckTolerance(double tolerance) {
  if (std::isfinite(tolerance) && tolerance >= 0 && tolerance <= 1) return absl::OkStatus();
  return FieldError("tolerance", "not a number from 0 to 1");
}

// Returns the task that a request names with workload_digest, target and tolerance.
// InvalidArgument: one of them is missing or wrong; the message names the field.
template <typename Request>
absl::StatusOr<store::TaskKey> TaskOf(const Request& request) {
  if (request.workload_digest().empty()) return FieldError("workload_digest", "missing");
  if (request.target().empty()) return FieldError("target", "missing");
  if (absl::Status status = CheckTolerance(request.tolerance()); !status.ok()) return status;
  return store::TaskKey{.workload_digest = request.workload_digest(),
                        .target = request.target(),
                        .tolerance = request.tolerance()};
}

// Returns the text form of a target that a request names by its text form or by the key of a
// registered worker's target. InvalidArgument: it is too long. FailedPrecondition: no worker of
// that key is registered; the message lists the keys.
inline absl::StatusOr<std::string> DescribedTarget(const std::string& target,
                                                   const fleet::Fleet& fleet) {
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

#endif  // HONE_SERVER_SERVICE_REQUEST_FIELDS_H_

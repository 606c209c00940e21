#ifndef HONE_SERVER_SERVICE_TASK_REQUEST_H_
#define HONE_SERVER_SERVICE_TASK_REQUEST_H_

#include <cmath>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/service/field_error.h"
#include "server/store/store.h"

namespace hone::service {

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

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_TASK_REQUEST_H_

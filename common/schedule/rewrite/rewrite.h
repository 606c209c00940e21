#ifndef HONE_COMMON_SCHEDULE_REWRITE_REWRITE_H_
#define HONE_COMMON_SCHEDULE_REWRITE_REWRITE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::schedule {

// A registry entry for an algorithm that replaces a stage by stages that compute the same in real
// arithmetic. Traces name it in their first instructions, e.g. rewrite("winograd", "Y", 4). A pure
// function of its arguments.
struct Rewrite {
  absl::string_view name;
  // Names of its number arguments, for messages, e.g. "m".
  absl::string_view parameters;
  // Returns the workload with the stage replaced. Inputs and outputs are those of the original, in
  // the same order and with the same elements, possibly in other dimensions; new tensors are named
  // after the stage's tensor (edit.h). REQUIRES a validated workload and as many numbers as
  // `parameters` names. InvalidArgument: a number is out of range. FailedPrecondition: the stage
  // does not have the required form.
  absl::StatusOr<ir::Workload> (*apply)(const ir::Workload& workload, int stage,
                                        absl::Span<const int64_t> numbers);
  // The smallest job tolerance (allowed error of an element relative to its magnitude Σ|a·b|) at
  // which its kernels may be used, for inputs whose magnitudes vary little within a tile. 0 if only
  // the order of summation changes: the strict check then passes. REQUIRES arguments that apply
  // accepts.
  double (*tolerance)(const ir::Workload& workload, int stage, absl::Span<const int64_t> numbers);
  absl::string_view meaning;  // one line
};

// All rewrites, sorted by name. README.md says how to add one.
absl::Span<const Rewrite> Rewrites();
// nullptr if there is no rewrite of that name.
const Rewrite* FindRewrite(absl::string_view name);

// Applies a rewrite to the stage that computes the named tensor, and checks the result.
// InvalidArgument: unknown rewrite or stage, a wrong number of arguments, or one out of range.
// FailedPrecondition: the rewrite does not support the stage; the message says why. Internal: the
// result is invalid or has other inputs or outputs.
absl::StatusOr<ir::Workload> ApplyRewriteTo(const ir::Workload& workload, absl::string_view name,
                                            absl::string_view stage,
                                            absl::Span<const int64_t> numbers);
// The tolerance needed by a kernel made with this rewrite. Errors are those of ApplyRewriteTo.
absl::StatusOr<double> RewriteTolerance(const ir::Workload& workload, absl::string_view name,
                                        absl::string_view stage, absl::Span<const int64_t> numbers);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_REWRITE_H_

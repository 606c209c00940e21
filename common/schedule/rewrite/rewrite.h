#ifndef HONE_COMMON_SCHEDULE_REWRITE_REWRITE_H_
#define HONE_COMMON_SCHEDULE_REWRITE_REWRITE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::schedule {

// Another algorithm for one stage: replaces it by stages that compute the same in real arithmetic.
// An entry of the registry; what a trace names in its first instructions, rewrite("winograd", "Y",
// 4). A pure function of its arguments.
struct Rewrite {
  absl::string_view name;
  // Names of the numbers it takes, for messages: "m".
  absl::string_view parameters;
  // The workload with the stage replaced. Its inputs and outputs are those of the original, in the
  // same order; new tensors are named after the stage's (edit.h). REQUIRES a validated workload and
  // as many numbers as `parameters` names. InvalidArgument: a number is out of range.
  // FailedPrecondition: the stage is not of the form that the rewrite is for.
  absl::StatusOr<ir::Workload> (*apply)(const ir::Workload& workload, int stage,
                                        absl::Span<const int64_t> numbers);
  // The smallest tolerance of a job (the allowed error of an element over its magnitude Σ|a·b|) at
  // which its kernels may be used, for inputs whose magnitudes do not vary much within a tile. 0:
  // only the order of summation changes, the strict check passes. REQUIRES that apply accepts the
  // same arguments.
  double (*tolerance)(const ir::Workload& workload, int stage, absl::Span<const int64_t> numbers);
  absl::string_view meaning;  // one line
};

// Every rewrite, sorted by name. To add one: a file here and a line in registry.cc.
absl::Span<const Rewrite> Rewrites();
// nullptr when there is none.
const Rewrite* FindRewrite(absl::string_view name);

// Applies a rewrite to the stage that computes a tensor of this name, and checks what it promises.
// InvalidArgument: no rewrite or stage of this name, another number of numbers, or one out of
// range. FailedPrecondition: the rewrite is not for such a stage; the message says why. Internal:
// the rewrite broke its promise.
absl::StatusOr<ir::Workload> ApplyRewriteTo(const ir::Workload& workload, absl::string_view name,
                                            absl::string_view stage,
                                            absl::Span<const int64_t> numbers);
// The tolerance that a kernel needs that was made with this rewrite; the errors are those of
// ApplyRewriteTo.
absl::StatusOr<double> RewriteTolerance(const ir::Workload& workload, absl::string_view name,
                                        absl::string_view stage, absl::Span<const int64_t> numbers);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_REWRITE_H_

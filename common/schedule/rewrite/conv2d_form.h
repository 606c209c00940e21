#ifndef HONE_COMMON_SCHEDULE_REWRITE_CONV2D_FORM_H_
#define HONE_COMMON_SCHEDULE_REWRITE_CONV2D_FORM_H_

#include "absl/status/statusor.h"
#include "common/ir/workload.h"

namespace hone::schedule {

// A stage in the form Y[n, h, w, co] = Σ X[n, h + r + top, w + s + left, ci]·W[r, s, ci, co], with
// zeros outside X.
struct Conv2dForm {
  ir::Axis n, h, w, co;  // of the output, in its order
  ir::Axis r, s, ci;     // reduced
  ir::BufferId input = -1, weight = -1;
  int64_t height = 0, width = 0;  // of the input
  int64_t top = 0, left = 0;      // −padding
};

// FailedPrecondition: the stage does not have this form; the message states the difference.
absl::StatusOr<Conv2dForm> MatchConv2d(const ir::Workload& workload, const ir::Stage& stage);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_CONV2D_FORM_H_

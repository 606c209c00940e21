#ifndef HONE_COMMON_SCHEDULE_REWRITE_EDIT_H_
#define HONE_COMMON_SCHEDULE_REWRITE_EDIT_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/workload.h"

// Building blocks of rewrites. They change a copy of the workload. A stage may use tensors with any
// IDs until Renumbered() restores the order.
namespace hone::schedule {

ir::Axis NewAxis(ir::Workload& workload, absl::string_view name, int64_t extent);

// Adds a tensor with a unique name (`base`, possibly followed by a number) and one dimension per
// axis. No stage computes it yet.
ir::BufferId NewTensor(ir::Workload& workload, absl::string_view base, ir::DType dtype,
                       const std::vector<ir::Axis>& axes);

// Inserts a stage with one component before the stage at `position` and increments `position`.
// Returns its new tensor.
ir::BufferId InsertStage(ir::Workload& workload, int& position, absl::string_view name,
                         std::vector<ir::Axis> spatial, ir::Reducer reducer,
                         std::vector<ir::Axis> reduce, std::vector<ir::Condition> guards,
                         ir::ExprId value);

ir::ExprId LoadOf(ir::Workload& workload, ir::BufferId tensor, ir::IndexList indices);

// Sorts the tensors into the order of workloads (inputs, then in stage order) and drops those that
// no stage computes.
ir::Workload Renumbered(ir::Workload workload);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_EDIT_H_

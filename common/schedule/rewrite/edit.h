#ifndef HONE_COMMON_SCHEDULE_REWRITE_EDIT_H_
#define HONE_COMMON_SCHEDULE_REWRITE_EDIT_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/workload.h"

// Building blocks of rewrites: they change a copy of the workload, in which new stages may use
// tensors in any order of ids.
namespace hone::schedule {

ir::Axis NewAxis(ir::Workload& workload, absl::string_view name, int64_t extent);

// A tensor of its own name (`base`, or with a number behind) with one dimension per axis. No stage
// computes it yet.
ir::BufferId NewTensor(ir::Workload& workload, absl::string_view base, ir::DType dtype,
                       const std::vector<ir::Axis>& axes);

// Puts a stage with one component before the stage at `position`, which moves on by one. Returns
// its new tensor.
ir::BufferId InsertStage(ir::Workload& workload, int& position, absl::string_view name,
                         std::vector<ir::Axis> spatial, ir::Reducer reducer,
                         std::vector<ir::Axis> reduce, std::vector<ir::Condition> guards,
                         ir::ExprId value);

ir::ExprId LoadOf(ir::Workload& workload, ir::BufferId tensor, ir::IndexList indices);

// Puts the tensors into the order that workloads have (inputs, then as the stages compute them) and
// drops those that no stage computes.
ir::Workload Renumbered(ir::Workload workload);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_EDIT_H_

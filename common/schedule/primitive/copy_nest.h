#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::schedule {

// The kernel that runs once, ahead of time, on constant inputs.
inline constexpr char kPrepackKernel[] = "prepack";

// A nest that copies `from` to `to`, of equal shapes, element by element; put under `parent` at `position`. Returns its block.
ir::NodeId AddCopyNest(ir::Program& program, ir::BufferId from, ir::BufferId to, ir::NodeId parent, size_t position);

// InvalidArgument: lists the names.
absl::StatusOr<ir::Scope> ScopeFromName(absl::string_view name);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_

#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::schedule {

// The kernel that runs once, ahead of time, on constant inputs.
inline constexpr char kPrepackKernel[] = "prepack";

// Where a nest that copies for a reader goes: before the reader's nest, or into the kernel
// "prepack" (made if there is none).
struct CopyPlace {
  ir::NodeId parent;
  size_t position;
};
CopyPlace PlaceOfCopy(ir::Program& program, ir::NodeId reader_nest, bool ahead);

// A nest that copies all of `to` from the same places of `from`, which is at least as large, with a
// cast if their dtypes differ. It is put under `parent` at `position`. Returns its block.
ir::NodeId AddCopyNest(ir::Program& program, ir::BufferId from, ir::BufferId to, ir::NodeId parent,
                       size_t position);

// InvalidArgument: lists the names.
absl::StatusOr<ir::Scope> ScopeFromName(absl::string_view name);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_

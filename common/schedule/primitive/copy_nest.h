#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::schedule {

// The position of a nest that copies data for a reader: before the reader's nest or, if `ahead`, in
// the kernel ir::kPrepackKernel (created if necessary).
struct CopyPlace {
  ir::NodeId parent;
  size_t position;
};
CopyPlace PlaceOfCopy(ir::Program& program, ir::NodeId reader_nest, bool ahead);

// Adds a nest under `parent` at `position` that copies all of `to` from the same indices of `from`,
// which must be at least as large, with a cast if the dtypes differ. Returns its block.
ir::NodeId AddCopyNest(ir::Program& program, ir::BufferId from, ir::BufferId to, ir::NodeId parent,
                       size_t position);

// InvalidArgument: unknown scope; the message lists the names.
absl::StatusOr<ir::Scope> ScopeFromName(absl::string_view name);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_COPY_NEST_H_

#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_REGENERATE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_REGENERATE_H_

#include <vector>

#include "common/ir/program.h"
#include "common/ir/region.h"

namespace hone::schedule {

// Gives a detached block new loops and puts it under `parent` at `position`. If `indices[d]` is an
// iteration variable of the block, it runs over region[d], with a predicate if the region can leave
// the variable's domain. Other variables run over their whole domain. Spatial loops come first.
void Regenerate(ir::Program& program, ir::NodeId block, const std::vector<ir::Interval>& region,
                const ir::IndexList& indices, ir::NodeId parent, size_t position);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_REGENERATE_H_

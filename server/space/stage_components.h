#ifndef HONE_SERVER_SPACE_STAGE_COMPONENTS_H_
#define HONE_SERVER_SPACE_STAGE_COMPONENTS_H_

#include <vector>

#include "common/ir/workload.h"

namespace hone::space {

// For each stage of a workload the number of its component: 0, 1, … in the order of the stages. Two
// stages are in one component where one reads what the other computes, directly or through others.
// Stages that only read the same inputs are in different components: how one of them is scheduled
// does not matter to the other.
std::vector<int> StageComponents(const ir::Workload& workload);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_STAGE_COMPONENTS_H_

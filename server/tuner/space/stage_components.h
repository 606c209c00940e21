#ifndef HONE_SERVER_TUNER_SPACE_STAGE_COMPONENTS_H_
#define HONE_SERVER_TUNER_SPACE_STAGE_COMPONENTS_H_

#include <vector>

#include "common/ir/workload.h"

namespace hone::space {

// Returns the component number of each stage of a workload: 0, 1, … in stage order. Two stages are
// in one component if one of them reads the other's result, directly or through others. Stages that
// only share inputs are in different components, because their schedules do not affect each other.
std::vector<int> StageComponents(const ir::Workload& workload);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_STAGE_COMPONENTS_H_

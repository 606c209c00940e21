#ifndef HONE_SERVER_TUNER_SPACE_WORKLOAD_DISTANCE_H_
#define HONE_SERVER_TUNER_SPACE_WORKLOAD_DISTANCE_H_

#include "common/ir/workload.h"

namespace hone::space {

// Minimum distance of contractions with different forms.
inline constexpr double kOtherForm = 100;

// Returns the distance between two workloads, used to choose which results to transfer. Workloads
// of one form have the same tensors, stages and axes. Their distance is the sum of |log2| of the
// ratios of the axes' extents, plus a quarter of the same for the inputs' dimensions (which reflect
// strides and padding), plus 4 if their names differ. For two contractions of different forms it is
// kOtherForm plus |log2| of the ratio of their operations. Otherwise it is infinite, and nothing is
// transferred.
double WorkloadDistance(const ir::Workload& a, const ir::Workload& b);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_WORKLOAD_DISTANCE_H_

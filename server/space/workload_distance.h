#ifndef HONE_SERVER_SPACE_WORKLOAD_DISTANCE_H_
#define HONE_SERVER_SPACE_WORKLOAD_DISTANCE_H_

#include "common/ir/workload.h"

namespace hone::space {

// Contractions of another form are at least so far apart.
inline constexpr double kOtherForm = 100;

// How unlike two workloads are, for choosing what may be learnt from which. Of one form – the same
// tensors, stages and axes –: the sum of |log2| of the ratios of the axes' extents, a quarter of
// that of the inputs' dimensions (which tell strides and padding), and 4 when their names differ.
// Two contractions of other forms: kOtherForm and |log2| of the ratio of their operations. Else
// infinite: nothing is.
double WorkloadDistance(const ir::Workload& a, const ir::Workload& b);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_WORKLOAD_DISTANCE_H_

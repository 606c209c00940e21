#ifndef HONE_SERVER_TASK_LEAST_OPERATIONS_H_
#define HONE_SERVER_TASK_LEAST_OPERATIONS_H_

#include "common/ir/workload.h"

namespace hone::task {

// A lower bound of the operations that any algorithm needs for a workload, a multiply-add in f32
// counted as two, and narrower types for as much as they are faster: who claims to need less time
// than these take at the device's peak has not computed it. Taps in the padding are left out, sums
// over windows may share their parts, and what does not depend on an axis is computed once.
//
// `tolerance`: 0, sums of products take all their multiply-adds. Above 0 fewer multiplications are
// allowed: Winograd's algorithms (minimal filtering: arXiv:1509.09308) leave at most one per window
// and channel, Strassen's at most halve what is left at the sizes in use.
double LeastOperations(const ir::Workload& workload, double tolerance);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_LEAST_OPERATIONS_H_

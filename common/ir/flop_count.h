#ifndef HONE_COMMON_IR_FLOP_COUNT_H_
#define HONE_COMMON_IR_FLOP_COUNT_H_

#include "common/ir/workload.h"

namespace hone::ir {

// Number of arithmetic operations in the formula of a workload. A multiply and an add count one
// each; points where a guard fails (padded taps) do not count.
double FlopCount(const Workload& workload);

// The number of points in a stage's domain where all guards hold.
double GuardedPoints(const AtomTable& atoms, const Stage& stage);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_FLOP_COUNT_H_

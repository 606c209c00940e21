#ifndef HONE_COMMON_IR_REFERENCE_WORKLOAD_H_
#define HONE_COMMON_IR_REFERENCE_WORKLOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"

namespace hone::ir {

// The dtype that stores reference values of an output: i64 for i64, otherwise f64.
DType ReferenceDType(DType dtype);

// Whether values are rounded to short formats before they reach an output, by an intermediate
// tensor of a short float or a cast that loses digits. The reference then also has roundings.
bool RoundsOnTheWay(const Workload& workload);

// Builds the workload that output checks compare with. It has the inputs of the original. Its
// outputs are the values of all original outputs in ReferenceDType, then their magnitudes in f64,
// then, if RoundsOnTheWay, their roundings in f64 (error_bound.h), as ElementValue defines
// them. Floats are computed in f64, integers and booleans in their own dtype; casts round and wrap.
//
// InvalidArgument: the workload with three times its stages exceeds a limit.
absl::StatusOr<Workload> ReferenceWorkload(const Workload& workload);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_REFERENCE_WORKLOAD_H_

#ifndef HONE_COMMON_IR_REFERENCE_WORKLOAD_H_
#define HONE_COMMON_IR_REFERENCE_WORKLOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"

namespace hone::ir {

// More is not spent on a reference: nothing is measured whose outputs need more.
inline constexpr int64_t kMostReferenceBytes = int64_t{4} << 30;

// What the reference of a workload takes: value and magnitude of each element of its outputs as f64, for the two kinds of
// inputs that kernels are checked with.
int64_t ReferenceBytes(const Workload& workload);
// InvalidArgument: it is more than kMostReferenceBytes; says how much.
absl::Status CheckReferenceBytes(const Workload& workload);

// The workload that an output check compares with: the same inputs; for each output its value as
// f64, then for each output its magnitude in f64, both as InterpretElement defines them (Σ|a·b| for
// a product sum). Floats are computed in f64, integers and booleans in their own dtype; casts round
// and wrap. Outputs are in the order of the original's, values first. An error bound is a constant
// times the unit roundoff times the magnitude.
//
// InvalidArgument: the workload with twice its stages exceeds a limit.
absl::StatusOr<Workload> ReferenceWorkload(const Workload& workload);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_REFERENCE_WORKLOAD_H_

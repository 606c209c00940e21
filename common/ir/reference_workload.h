#ifndef HONE_COMMON_IR_REFERENCE_WORKLOAD_H_
#define HONE_COMMON_IR_REFERENCE_WORKLOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"

namespace hone::ir {

// The most memory that a reference may take. Workloads that need more are not measured.
inline constexpr int64_t kMostReferenceBytes = int64_t{4} << 30;

// What the values of an output are kept in: i64 as they are, all others as f64, which holds them
// exactly.
DType ReferenceDType(DType dtype);

// Whether values are rounded to short formats before they reach an output: an intermediate tensor
// of f16 or bf16, or a cast that loses digits. The reference then also has roundings.
bool RoundsOnTheWay(const Workload& workload);

// The bytes of a workload's reference: value, magnitude and perhaps rounding of each element of its
// outputs, 8 bytes each, for the two kinds of inputs that kernels are checked with.
int64_t ReferenceBytes(const Workload& workload);
// InvalidArgument: it is more than kMostReferenceBytes; says how much.
absl::Status CheckReferenceBytes(const Workload& workload);

// The workload that an output check compares with. It has the same inputs. Its outputs are, for
// each output of the original in order, the value in ReferenceDType; then for each the magnitude in
// f64; then, if RoundsOnTheWay, for each the rounding in f64. All are as InterpretElement defines
// them (error_bound.h says what they mean). Floats are computed in f64, integers and booleans in
// their own dtype; casts round and wrap.
//
// InvalidArgument: the workload with three times its stages exceeds a limit.
absl::StatusOr<Workload> ReferenceWorkload(const Workload& workload);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_REFERENCE_WORKLOAD_H_

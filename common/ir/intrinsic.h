#ifndef HONE_COMMON_IR_INTRINSIC_H_
#define HONE_COMMON_IR_INTRINSIC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::ir {

// An instruction that computes a small nest. What it means is its description, a workload of one
// reduction; what it needs of memory is that each operand lies as the description's tensor does,
// row-major. The one table that tensorize matches against and code generation emits from: a new
// instruction of a known shape is a line in intrinsic.cc.
struct Intrinsic {
  // kDot: C[j] += Σ_k A[k]·B[j, k], the few A broadcast to all lanes j; accumulators are vectors.
  // kTile: C[i, j] += Σ_k A[i, k]·B[k / g, j, k % g], on tiles of memory whose rows (the first
  // dimension of each) may have any stride; accumulators are memory, and the neutral element must
  // have been stored before (decompose_reduction).
  enum class Shape : uint8_t { kDot, kTile };
  int id;  // in programs; never reused
  absl::string_view name;
  absl::string_view description;
  absl::string_view arch;     // LLVM's name of the architecture
  absl::string_view feature;  // of the target
  Shape shape;
  absl::string_view llvm;  // the LLVM intrinsic
  DType operand;           // element type of the LLVM intrinsic's operand vectors (kDot)
};

absl::Span<const Intrinsic> Intrinsics();
// nullptr when there is none.
const Intrinsic* FindIntrinsic(absl::string_view name);
const Intrinsic* FindIntrinsic(int64_t id);
// The description, parsed; its one stage is the last.
const Workload& DescriptionOf(const Intrinsic& intrinsic);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_INTRINSIC_H_

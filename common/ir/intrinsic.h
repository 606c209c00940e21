#ifndef HONE_COMMON_IR_INTRINSIC_H_
#define HONE_COMMON_IR_INTRINSIC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::ir {

// An instruction that computes a small loop nest. Its semantics are given by its description, a
// workload with one reduction. In memory, each operand must be laid out as the description's
// tensor, row-major. tensorize matches against this table. A new instruction of a known shape
// needs a description and a row of the table in intrinsic.cc, and a line in each back end that
// supports it (worker/compile).
struct Intrinsic {
  // kDot: each lane of an accumulator, which is one vector, is a sum of products. The instruction
  // computes C[j] += Σ_k A[k]·B[j, k], with the few A broadcast to all lanes, or a block
  // C[i, j] += Σ_k A[i, k]·B[j, k], whose rows follow each other in the vector. kTile:
  // C[i, j] += Σ_k A[i, k]·B[k / g, j, k % g] on tiles whose rows (the first dimension of each) may
  // have any stride in memory; the sums are in memory, but stay in registers during a reduction.
  // kScalar: C += Σ_k A[k]·B[k], one accumulator of a GPU thread; its description has one lane, for
  // which the nest has no loop.
  enum class Shape : uint8_t { kDot, kTile, kScalar };
  int id;  // stored in programs; never reused
  absl::string_view name;
  absl::string_view description;
  absl::string_view arch;     // LLVM's architecture name
  absl::string_view feature;  // required target feature
  Shape shape;
  int instructions = 1;  // that the CPU needs for it, without those that prepare operands
};

absl::Span<const Intrinsic> Intrinsics();
// nullptr if there is no such intrinsic.
const Intrinsic* FindIntrinsic(absl::string_view name);
const Intrinsic* FindIntrinsic(int64_t id);
// The parsed description, a workload with one stage.
const Workload& DescriptionOf(const Intrinsic& intrinsic);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_INTRINSIC_H_

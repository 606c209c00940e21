#ifndef HONE_SERVER_SPACE_TEMPLATE_OPERATOR_FORM_H_
#define HONE_SERVER_SPACE_TEMPLATE_OPERATOR_FORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"

namespace hone::space {

// A workload seen as an operator that templates are written for: one sum of products of two inputs,
// and element-wise stages behind it. Told by indices, not by names.
struct OperatorForm {
  enum class Kind {
    kMatmul,           // C[i, j] += A[i, k] * B[k, j], either operand transposed or not
    kBatchMatmul,      // the same with axes in front that both operands have, wherever they stand
    kConv2d,           // Y[n, h, w, o] += X[n, f(h, r), f(w, s), c] * W[r, s, c, o]
    kGroupedConv2d,    // the same with X[…, c + o / (O / groups) * C]
    kConv2dNchw,       // Y[n, o, h, w] += X[n, c, f(h, r), f(w, s)] * W[o, c, r, s]
    kDepthwiseConv2d,  // Y[n, h, w, c] += X[n, f(h, r), f(w, s), c] * W[r, s, c]
  };
  Kind kind = Kind::kMatmul;
  std::string main;                   // the tensor that the sum computes
  std::vector<std::string> inlined;   // element-wise stages that are computed where they are read
  std::string consumer;               // the last element-wise stage; "" when there is none
  ir::DType dtype = ir::DType::kF32;  // of the sum
  bool guarded = false;               // padding: some taps are left out
  // Extents of the main stage's loops in the order of its block: spatial, then reduced.
  std::vector<int64_t> extents;
  // Places in `extents` by role. Matmul: i, j, k, then the batch's. Convolutions: n, h, w, o, r, s,
  // c; depthwise ones have no c.
  std::vector<int> axes;
  int64_t groups = 1;            // of channels
  std::string data, weight;      // X and W, or A and B (the one that j runs through)
  std::vector<int> weight_axes;  // the role of each of its dimensions, as a place in `axes`
  bool constant_weight = false;
};

// InvalidArgument: the workload is of no such form; says of which forms there are templates.
absl::StatusOr<OperatorForm> MatchOperator(const ir::Workload& workload);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_TEMPLATE_OPERATOR_FORM_H_

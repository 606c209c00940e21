#include "client/network/onnx/empty_operand.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

// The reduction of no elements; nullopt: undefined, or not a number of this type.
std::optional<ir::Scalar> ReductionOfNone(absl::string_view op, ir::DType dtype) {
  if (op == "ReduceSum" || op == "ReduceSumSquare" || op == "ReduceL1" || op == "ReduceL2")
    return ir::CastTo(dtype, 0);
  if (op == "ReduceProd") return ir::CastTo(dtype, 1);
  if (op == "ReduceMax") return ir::ReducerIdentity(ir::Reducer::kMax, 0, dtype);
  if (op == "ReduceMin") return ir::ReducerIdentity(ir::Reducer::kMin, 0, dtype);
  if ((op == "ReduceLogSum" || op == "ReduceLogSumExp") && ir::IsFloat(dtype))
    return ir::Scalar(-std::numeric_limits<double>::infinity());
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::optional<ir::Scalar>> ElementOfEmpty(const graph::NodeView& node,
                                                         const graph::TensorType& result) {
  if (!node.Has(0) || node.Type(0).elements() > 0) return std::nullopt;
  const std::string& op = node.node().op;
  if (op == "MatMul") return ir::CastTo(result.dtype, 0);
  if (op != "Pad") return ReductionOfNone(op, result.dtype);
  HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "constant"));
  if (mode != "constant") return std::nullopt;
  if (!node.Has(2)) return ir::CastTo(result.dtype, 0);
  if (!node.IsConstant(2)) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> value, node.Elements(2));
  return value.empty() ? std::nullopt : std::optional(value[0]);
}

}  // namespace hone::onnx

#include <string>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

bool IsShort(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2; }

absl::StatusOr<Types> InferTo(const NodeView& node, DType dtype) {
  HONE_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  if (IsShort(dtype) && saturate == 0) {
    return node.UnimplementedError("8-bit floats without saturation are not supported");
  }
  return Types{{dtype, node.Shape(0)}};
}

absl::StatusOr<Types> InferCast(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const DType dtype, ElementTypeAttribute(node, "to"));
  return InferTo(node, dtype);
}

absl::StatusOr<Types> InferCastLike(const NodeView& node) {
  return InferTo(node, node.Type(1).dtype);
}

absl::Status DefineCast(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const DType from = node.Type(0).dtype, to = writer.OutputType(0).dtype;
  std::string value = writer.In(0, axes);
  // In ONNX, infinities saturate like large numbers.
  if (to == DType::kF8E5M2 && from != to) {
    value = absl::StrCat("min(max(", Convert(from, DType::kF32, value), ", -57344.0), 57344.0)");
    writer.Output(0, axes, absl::StrCat("f8e5m2(", value, ")"));
    return absl::OkStatus();
  }
  writer.Output(0, axes, Convert(from, to, std::move(value)));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> CastOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Cast", 1, 1, InferCast, DefineCast, "8-bit floats with saturation"},
      {"CastLike", 2, 2, InferCastLike, DefineCast, "8-bit floats with saturation"},
  };
  return kOperators;
}

}  // namespace hone::graph

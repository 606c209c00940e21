#include "client/network/graph/op/element_type.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

std::optional<DType> OfOnnx(int64_t onnx_type) {
  switch (onnx_type) {
    case 1:
      return DType::kF32;
    case 2:
      return DType::kU8;
    case 3:
      return DType::kI8;
    case 6:
      return DType::kI32;
    case 7:
      return DType::kI64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kF16;
    case 11:
      return DType::kF64;
    case 16:
      return DType::kBF16;
    case 17:
      return DType::kF8E4M3;
    case 19:
      return DType::kF8E5M2;
    case 21:
      return DType::kU4;
    case 22:
      return DType::kI4;
    default:
      return std::nullopt;
  }
}

absl::Status Need(const NodeView& node, int input, bool holds, absl::string_view what) {
  if (holds) return absl::OkStatus();
  return node.InvalidError(
      absl::StrCat("input ", input, " must have ", what, ", but is ", node.Type(input).ToText()));
}

}  // namespace

absl::StatusOr<DType> ElementType(const NodeView& node, int64_t onnx_type) {
  if (const std::optional<DType> dtype = OfOnnx(onnx_type)) return *dtype;
  return node.UnimplementedError(
      absl::StrCat("elements of ONNX's type ", onnx_type, " are not supported"));
}

absl::StatusOr<DType> ElementTypeAttribute(const NodeView& node, absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const int64_t onnx_type, node.Int(name, 0));
  return ElementType(node, onnx_type);
}

absl::StatusOr<Types> SameType(const NodeView& node) { return Types{node.Type(0)}; }

absl::StatusOr<Types> SameFloatType(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  return SameType(node);
}

absl::StatusOr<Types> SameNumberType(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  return SameType(node);
}

absl::Status NeedFloat(const NodeView& node, int input) {
  return Need(node, input, ir::IsFloat(node.Type(input).dtype), "a float type");
}

absl::Status NeedNumber(const NodeView& node, int input) {
  return Need(node, input, node.Type(input).dtype != DType::kBool, "a type of numbers");
}

absl::Status NeedType(const NodeView& node, int input, DType dtype) {
  return Need(node, input, node.Type(input).dtype == dtype,
              absl::StrCat("type ", ir::DTypeName(dtype)));
}

absl::Status NeedOneType(const NodeView& node, int first, int last) {
  for (int input = first + 1; input <= last; ++input) {
    if (!node.Has(input) || node.Type(input).dtype == node.Type(first).dtype) continue;
    return node.InvalidError(absl::StrCat("needs inputs of the same type, not ",
                                          node.Type(first).ToText(), " and ",
                                          node.Type(input).ToText()));
  }
  return absl::OkStatus();
}

}  // namespace hone::graph

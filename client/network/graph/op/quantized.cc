#include "client/network/graph/op/quantized.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/formula.h"

namespace hone::graph {

using ir::DType;

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

std::string Saturated(absl::string_view value, absl::string_view zero_point, DType dtype) {
  const bool is_signed = dtype == DType::kI8;
  std::string rounded = absl::StrCat("round(", value, ")");
  if (!zero_point.empty()) absl::StrAppend(&rounded, " + f32(", zero_point, ")");
  return absl::StrCat(ir::DTypeName(dtype), "(min(max(", rounded, ", ",
                      is_signed ? "-128.0" : "0.0", "), ", is_signed ? "127.0" : "255.0", "))");
}

namespace {

bool IsEverywhere(const NodeView& node, int input, ir::Scalar value) {
  if (!node.IsConstant(input)) return false;
  const auto elements = node.Elements(input);
  return std::all_of(elements->begin(), elements->end(),
                     [&](const ir::Scalar& element) { return element == value; });
}

}  // namespace

bool IsZero(const NodeView& node, int zero_point) {
  return !node.Has(zero_point) || IsEverywhere(node, zero_point, ir::Scalar(0));
}

bool HaveSameZeroPoint(const NodeView& a, const NodeView& b) {
  if (IsZero(a, 2) && IsZero(b, 2)) return true;
  return a.Has(2) && b.Has(2) && a.IsConstant(2) && b.IsConstant(2) &&
         *a.Elements(2) == *b.Elements(2);
}

bool IsOne(const NodeView& node, int scale) { return IsEverywhere(node, scale, ir::Scalar(1.0)); }

std::string PerChannel(const NodeView& node, StageWriter& writer, int input,
                       absl::string_view channel) {
  if (node.Type(input).elements() == 1) return First(node, writer, input);
  return writer.In(input, {std::string(channel)});
}

absl::Status NeedPerChannel(const NodeView& node, int input, int64_t channels) {
  if (!node.Has(input) || node.Type(input).elements() == 1) return absl::OkStatus();
  if (node.Shape(input) == std::vector<int64_t>{channels}) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("input ", input, " is ", node.Type(input).ToText(),
                                        ", but must have 1 element, or 1 for each of the ",
                                        channels, " channels"));
}

}  // namespace hone::graph

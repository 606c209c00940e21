#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/quantized.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

bool IsShortFloat(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2; }

// How the scale and the zero point, inputs 1 and 2, vary.
struct Granularity {
  int64_t axis = -1;  // along it; -1: they have one element
  // If not 0: they have the shape of input 0, but one element for each block along the axis.
  int64_t block = 0;
};

absl::Status NeedPerBlock(const NodeView& node, const Granularity& granularity) {
  std::vector<int64_t> shape = node.Shape(0);
  shape[granularity.axis] = ir::CeilDivInt(shape[granularity.axis], granularity.block);
  if (node.Shape(1) == shape) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("input 1 is ", node.Type(1).ToText(), ", but blocks of ",
                                        granularity.block, " need the shape [",
                                        absl::StrJoin(shape, ", "), "]"));
}

absl::StatusOr<Granularity> GranularityOf(const NodeView& node) {
  Granularity granularity;
  // ONNX Runtime writes scales of shape [1] with zero points of shape [].
  const bool single = node.Has(2) && node.Type(1).elements() == 1 && node.Type(2).elements() == 1;
  if (node.Has(2) && !single && node.Shape(2) != node.Shape(1)) {
    return node.InvalidError("the scale and the zero point have different shapes");
  }
  HONE_ASSIGN_OR_RETURN(granularity.block, node.Int("block_size", 0));
  if (granularity.block < 0) return node.InvalidError("block_size is negative");
  if (node.Type(1).elements() == 1 && granularity.block == 0) return granularity;
  HONE_ASSIGN_OR_RETURN(granularity.axis, node.AxisAttribute("axis", 1, node.Rank(0)));
  HONE_RETURN_IF_ERROR(granularity.block > 0
                           ? NeedPerBlock(node, granularity)
                           : NeedPerChannel(node, 1, node.Shape(0)[granularity.axis]));
  return granularity;
}

// Returns the element of the scale or the zero point that belongs to the element of input 0 at
// these axes.
std::string ParameterAt(const NodeView& node, StageWriter& writer, int input,
                        const Granularity& granularity, std::vector<std::string> axes) {
  const int64_t axis = granularity.axis;
  if (granularity.block == 0) return PerChannel(node, writer, input, axis < 0 ? "0" : axes[axis]);
  absl::StrAppend(&axes[axis], " / ", granularity.block);
  return writer.In(input, axes);
}

absl::StatusOr<Types> InferQuantize(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedFloat(node, 1));
  HONE_RETURN_IF_ERROR(GranularityOf(node).status());
  HONE_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  if (saturate == 0) return node.UnimplementedError("saturate=0 is not supported");
  DType dtype = DType::kU8;
  HONE_ASSIGN_OR_RETURN(const int64_t output, node.Int("output_dtype", 0));
  if (output != 0) {
    HONE_ASSIGN_OR_RETURN(dtype, ElementTypeAttribute(node, "output_dtype"));
  }
  if (node.Has(2)) dtype = node.Type(2).dtype;
  if (IsByte(dtype) || IsShortFloat(dtype)) return Types{{dtype, node.Shape(0)}};
  return node.UnimplementedError(
      absl::StrCat("quantizes to ", ir::DTypeName(dtype), ", which is not supported"));
}

absl::Status DefineQuantize(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Granularity granularity, GranularityOf(node));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const auto parameter = [&](int input) {
    return ParameterAt(node, writer, input, granularity, axes);
  };
  std::string scaled = Convert(node.Type(0).dtype, DType::kF32, writer.In(0, axes));
  if (!IsOne(node, 1)) {
    absl::StrAppend(&scaled, " / ", Convert(node.Type(1).dtype, DType::kF32, parameter(1)));
  }
  const DType dtype = writer.OutputType(0).dtype;
  if (IsShortFloat(dtype)) {
    // Infinities saturate like large numbers.
    const absl::string_view most = dtype == DType::kF8E5M2 ? "57344.0" : "448.0";
    writer.Output(
        0, axes,
        absl::StrCat(ir::DTypeName(dtype), "(min(max(", scaled, ", -", most, "), ", most, "))"));
    return absl::OkStatus();
  }
  const std::string zero_point = IsZero(node, 2) ? "" : parameter(2);
  writer.Output(0, axes, Saturated(scaled, zero_point, dtype));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferDequantize(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 1));
  HONE_RETURN_IF_ERROR(GranularityOf(node).status());
  const DType dtype = node.Type(0).dtype;
  if (!IsByte(ir::LoadedAs(dtype)) && !IsShortFloat(dtype) && dtype != DType::kI32) {
    return node.InvalidError(absl::StrCat("cannot dequantize ", node.Type(0).ToText()));
  }
  if (node.Has(2) && node.Type(2).dtype != dtype) {
    return node.InvalidError("the types of the zero point and the input differ");
  }
  return Types{{node.Type(1).dtype, node.Shape(0)}};
}

absl::Status DefineDequantize(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Granularity granularity, GranularityOf(node));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const auto parameter = [&](int input) {
    return ParameterAt(node, writer, input, granularity, axes);
  };
  const DType dtype = node.Type(0).dtype, scale = node.Type(1).dtype;
  const DType whole = IsShortFloat(dtype) ? DType::kF32 : DType::kI32;
  std::string value = writer.In(0, axes);
  if (!IsZero(node, 2)) {
    const std::string zero_point = parameter(2);
    value = absl::StrCat(Convert(dtype, whole, value), " - ", Convert(dtype, whole, zero_point));
    value = Convert(whole, DType::kF32, value);
  } else {
    value = Convert(dtype, DType::kF32, value);
  }
  if (whole == DType::kF32) value = absl::StrCat("(", value, ")");
  writer.Output(0, axes,
                Convert(DType::kF32, scale,
                        absl::StrCat(value, " * ", Convert(scale, DType::kF32, parameter(1)))));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferDynamicQuantize(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedType(node, 0, DType::kF32));
  return Types{{DType::kU8, node.Shape(0)}, {DType::kF32, {}}, {DType::kU8, {}}};
}

// Maps the range of the elements, extended to include 0, to the range of u8. If all elements are 0,
// the range counts as 1.
absl::Status DefineDynamicQuantize(const NodeView& node, StageWriter& writer) {
  const std::vector<int64_t>& shape = node.Shape(0);
  const std::vector<std::string> members = StageWriter::Axes(shape, "k"),
                                 axes = StageWriter::Axes(shape);
  const auto extreme = [&](absl::string_view reducer) {
    const std::vector<int64_t> extents = shape.empty() ? std::vector<int64_t>{1} : shape;
    return writer.Stage(reducer, {"i"}, {1},
                        absl::StrCat(Reduction(reducer, members, extents), writer.In(0, members)));
  };
  const std::string least = absl::StrCat("min(", extreme("min"), "[0], 0.0)");
  const std::string most = absl::StrCat("max(", extreme("max"), "[0], 0.0)");
  const std::string range =
      absl::StrCat(writer.Stage("range", {"i"}, {1}, absl::StrCat(most, " - ", least)), "[0]");
  const std::string scale_stage = writer.Stage(
      "scale", {"i"}, {1}, absl::Substitute("select($0 == 0.0, 1.0, $0) / 255.0", range));
  const std::string scale = absl::StrCat(scale_stage, "[0]");
  const std::string zero_stage = writer.Stage(
      "zero", {"i"}, {1}, Saturated(absl::StrCat("-", least, " / ", scale), "", DType::kU8));
  const std::string zero = absl::StrCat(zero_stage, "[0]");
  if (writer.WantsOutput(0)) {
    writer.Output(0, axes,
                  Saturated(absl::StrCat(writer.In(0, axes), " / ", scale), zero, DType::kU8));
  }
  if (writer.WantsOutput(1)) writer.Output(1, {"i"}, scale);
  if (writer.WantsOutput(2)) writer.Output(2, {"i"}, zero);
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> QuantizeOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"DequantizeLinear", 2, 3, InferDequantize, DefineDequantize,
       "u8, i8, u4, i4, i32 and 8-bit floats; per tensor, axis or block"},
      {"DynamicQuantizeLinear", 1, 1, InferDynamicQuantize, DefineDynamicQuantize},
      {"QuantizeLinear", 2, 3, InferQuantize, DefineQuantize,
       "to u8, i8 and 8-bit floats; per tensor, axis or block"},
  };
  return kOperators;
}

}  // namespace hone::graph

// Products with weights of few bits, which have a scale for each block of a column.
#include <string>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/quantized.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

enum BlockInput { kFloats, kWeights, kScales, kZeroPoints };

absl::StatusOr<Types> InferMatMulNBits(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, kFloats));
  HONE_RETURN_IF_ERROR(NeedType(node, kScales, node.Type(kFloats).dtype));
  HONE_ASSIGN_OR_RETURN(const int64_t block, node.Int("block_size", 0));
  const TensorType& weights = node.Type(kWeights);
  const bool is_product = node.Rank(kFloats) >= 1 && node.Rank(kWeights) == 2 &&
                          node.Shape(kFloats).back() == weights.shape[0];
  if (!is_product || !IsByte(ir::LoadedAs(weights.dtype))) {
    return node.InvalidError(
        absl::StrCat("cannot multiply ", node.Type(kFloats).ToText(), " by ", weights.ToText()));
  }
  if (block <= 0) return node.InvalidError(absl::StrCat("block_size is ", block));
  const std::vector<int64_t> blocks = {ir::CeilDivInt(weights.shape[0], block), weights.shape[1]};
  if (node.Shape(kScales) != blocks) {
    return node.InvalidError(absl::StrCat("the scales are ", node.Type(kScales).ToText(), " for ",
                                          weights.ToText(), " in blocks of ", block));
  }
  if (node.Has(kZeroPoints) && node.Type(kZeroPoints) != TensorType{weights.dtype, blocks}) {
    return node.InvalidError(absl::StrCat("the zero points are ", node.Type(kZeroPoints).ToText()));
  }
  std::vector<int64_t> shape = node.Shape(kFloats);
  shape.back() = weights.shape[1];
  return Types{{node.Type(kFloats).dtype, shape}};
}

// The weights become floats inside the sum, so that they are read with few bits.
absl::Status DefineMatMulNBits(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t block, node.Int("block_size", 0));
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  std::vector<std::string> row = axes;
  row.back() = "k";
  const std::string &column = axes.back(), place = absl::StrCat("k / ", block);
  const DType dtype = node.Type(kFloats).dtype, weights = node.Type(kWeights).dtype;
  std::string weight = writer.In(kWeights, {"k", column});
  if (node.Has(kZeroPoints)) {
    weight = absl::StrCat(
        Convert(ir::LoadedAs(weights), DType::kI32, weight), " - ",
        Convert(ir::LoadedAs(weights), DType::kI32, writer.In(kZeroPoints, {place, column})));
    weight = Convert(DType::kI32, dtype, weight);
  } else {
    weight = Convert(ir::LoadedAs(weights), dtype, weight);
  }
  writer.Output(
      0, axes,
      absl::StrCat(Reduction("sum", {"k"}, {node.Shape(kWeights)[0]}), writer.In(kFloats, row),
                   " * (", weight, " * ", writer.In(kScales, {place, column}), ")"));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> QuantizedWeightsOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"com.microsoft.MatMulNBits", 3, 4, InferMatMulNBits, DefineMatMulNBits}};
  return kOperators;
}

}  // namespace hone::graph

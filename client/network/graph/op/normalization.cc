#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/broadcast.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/moments.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

absl::Status NeedChannels(const NodeView& node, int first, int last) {
  const std::vector<int64_t> channels = {node.Rank(0) > 1 ? node.Shape(0)[1] : 1};
  for (int input = first; input <= last; ++input) {
    HONE_RETURN_IF_ERROR(NeedFloat(node, input));
    if (node.Shape(input) == channels) continue;
    return node.InvalidError(absl::StrCat("input ", input, " is ", node.Type(input).ToText(),
                                          " for ", channels[0], " channels"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferBatchNormalization(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t training, node.Int("training_mode", 0));
  if (training != 0) return node.UnimplementedError("training is not supported");
  HONE_RETURN_IF_ERROR(NeedChannels(node, 1, 4));
  return SameFloatType(node);
}

// (X - mean) * factor + bias, where the factor of each channel is a stage.
absl::Status DefineBatchNormalization(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5));
  const DType x = node.Type(0).dtype, dtype = ir::AccumulatorOf(x);
  const auto parameter = [&](int input, const std::string& channel) {
    return Convert(node.Type(input).dtype, dtype, writer.In(input, {channel}));
  };
  const std::string factor =
      writer.Stage("factor", {"c"}, node.Shape(1),
                   absl::StrCat(parameter(1, "c"), " * rsqrt(", parameter(4, "c"), " + ",
                                Literal(dtype, epsilon), ")"));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const std::string c = node.Rank(0) > 1 ? axes[1] : "0";
  writer.Output(
      0, axes,
      Convert(dtype, x,
              absl::StrCat("(", Convert(x, dtype, writer.In(0, axes)), " - ", parameter(3, c),
                           ") * ", Element(factor, {c}), " + ", parameter(2, c))));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferLayerNormalization(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const int64_t stash, node.Int("stash_type", 1));
  if (stash != 1) return node.UnimplementedError("stash_type must be 1");
  for (int input = 1; input < node.inputs(); ++input) {
    if (!node.Has(input)) continue;
    HONE_RETURN_IF_ERROR(NeedFloat(node, input));
    HONE_ASSIGN_OR_RETURN(const auto shape, Broadcast(node, node.Shape(0), node.Shape(input)));
    if (shape != node.Shape(0)) {
      return node.InvalidError(absl::StrCat("input ", input, " is larger than the first"));
    }
  }
  std::vector<int64_t> rows = node.Shape(0);
  std::fill(rows.begin() + axis, rows.end(), 1);
  const DType stashed = ir::AccumulatorOf(node.Type(0).dtype);
  return Types{node.Type(0), {stashed, rows}, {stashed, rows}};
}

// Writes output 0: the value times the scale plus the bias, which broadcast.
absl::Status WriteScaled(const NodeView& node, StageWriter& writer, const Moments& moments,
                         std::string value) {
  const auto parameter = [&](int input) {
    return Convert(node.Type(input).dtype, moments.dtype(),
                   BroadcastElement(writer, input, node.Shape(input), moments.axes()));
  };
  absl::StrAppend(&value, " * ", parameter(1));
  if (node.Has(2)) absl::StrAppend(&value, " + ", parameter(2));
  writer.Output(0, moments.axes(), Convert(moments.dtype(), node.Type(0).dtype, value));
  return absl::OkStatus();
}

absl::Status DefineLayerNormalization(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0)));
  const Moments moments(node, writer, Normalized::Tail(node, axis), epsilon, /*centered=*/true);
  if (writer.WantsOutput(0)) {
    HONE_RETURN_IF_ERROR(WriteScaled(node, writer, moments, moments.Value()));
  }
  // In these outputs, the axes within a group have the extent 1.
  if (writer.WantsOutput(1)) writer.Output(1, moments.axes(), moments.Mean());
  if (writer.WantsOutput(2)) writer.Output(2, moments.axes(), moments.InverseDeviation());
  return absl::OkStatus();
}

absl::StatusOr<Types> InferRMSNormalization(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Types types, InferLayerNormalization(node));
  return Types{types[0]};
}

absl::Status DefineRMSNormalization(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0)));
  const Moments moments(node, writer, Normalized::Tail(node, axis), epsilon, /*centered=*/false);
  return WriteScaled(node, writer, moments, moments.Value());
}

absl::StatusOr<Types> InferInstanceNormalization(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedChannels(node, 1, 2));
  if (node.Rank(0) < 3) return node.InvalidError("needs a tensor of rank 3 or more");
  return SameFloatType(node);
}

absl::StatusOr<int64_t> Groups(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t groups, node.Int("num_groups", 0));
  if (groups > 0 && node.Shape(0)[1] % groups == 0) return groups;
  return node.InvalidError(
      absl::StrCat(groups, " groups do not divide ", node.Shape(0)[1], " channels"));
}

absl::StatusOr<Types> InferGroupNormalization(const NodeView& node) {
  HONE_RETURN_IF_ERROR(InferInstanceNormalization(node).status());
  HONE_RETURN_IF_ERROR(Groups(node).status());
  return SameType(node);
}

absl::Status DefinePerChannel(const NodeView& node, StageWriter& writer, int64_t groups) {
  HONE_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5));
  const Moments moments(node, writer, Normalized::Channels(node, groups), epsilon,
                        /*centered=*/true);
  const auto parameter = [&](int input) {
    return Convert(node.Type(input).dtype, moments.dtype(), writer.In(input, {moments.axes()[1]}));
  };
  writer.Output(0, moments.axes(),
                Convert(moments.dtype(), node.Type(0).dtype,
                        absl::StrCat(moments.Value(), " * ", parameter(1), " + ", parameter(2))));
  return absl::OkStatus();
}

absl::Status DefineInstanceNormalization(const NodeView& node, StageWriter& writer) {
  return DefinePerChannel(node, writer, node.Shape(0)[1]);
}

absl::Status DefineGroupNormalization(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t groups, Groups(node));
  return DefinePerChannel(node, writer, groups);
}

}  // namespace

absl::Span<const OperatorDef> NormalizationOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"BatchNormalization", 5, 5, InferBatchNormalization, DefineBatchNormalization,
       "without training"},
      {"GroupNormalization", 3, 3, InferGroupNormalization, DefineGroupNormalization},
      {"InstanceNormalization", 3, 3, InferInstanceNormalization, DefineInstanceNormalization},
      {"LayerNormalization", 2, 3, InferLayerNormalization, DefineLayerNormalization},
      {"RMSNormalization", 2, 2, InferRMSNormalization, DefineRMSNormalization},
  };
  return kOperators;
}

}  // namespace hone::graph

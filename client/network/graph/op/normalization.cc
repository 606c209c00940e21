#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/stage_writer.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"

namespace hone::graph {
namespace {

// How a normalization divides input 0 into groups of elements that it normalizes. `element`,
// `first` and `first_of_own` are indices of the input; `own` are indices of a tensor of groups.
struct Normalized {
  std::vector<std::string> axes;          // of the input
  std::vector<std::string> groups;        // the axes of the groups
  std::vector<int64_t> shape;             // the extents of `groups`
  std::vector<std::string> members;       // the axes of a group's elements
  std::vector<int64_t> extents;           // the extents of `members`
  std::vector<std::string> element;       // the element at `groups` and `members`
  std::vector<std::string> first;         // the first element of the group at `groups`
  std::vector<std::string> own;           // the group of the element at `axes`
  std::vector<std::string> first_of_own;  // the first element of that group

  // Makes one group for each element of the dimensions before `axis`.
  static Normalized Tail(const NodeView& node, int64_t axis);
  // Divides the channels, dimension 1, of each sample into this many groups.
  static Normalized Channels(const NodeView& node, int64_t groups);
};

// Writes the stages of the mean and the variance of each group, in f32 or f64. All elements are
// taken relative to the first one of the group, which removes a large common offset exactly. The
// variance takes a second pass, because E[x²] − E[x]² would cancel.
class Moments {
 public:
  // Without `centered`, the mean is taken as 0.
  Moments(const NodeView& node, StageWriter& writer, Normalized parts, double epsilon,
          bool centered);

  const std::vector<std::string>& axes() const { return parts_.axes; }
  ir::DType dtype() const { return dtype_; }
  // Values of type dtype() at axes(): (x - mean) / sqrt(variance + epsilon), the mean, and 1 /
  // sqrt(variance + epsilon).
  std::string Value() const;
  std::string Mean() const;
  std::string InverseDeviation() const;

 private:
  std::string At(const std::vector<std::string>& indices) const;
  std::string Deviation(const std::vector<std::string>& element,
                        const std::vector<std::string>& first,
                        const std::vector<std::string>& group) const;

  StageWriter& writer_;
  const Normalized parts_;
  const ir::DType input_dtype_, dtype_;
  const double epsilon_;
  const bool centered_;
  std::string share_;  // 1 / the number of elements of a group
  std::string sum_, squares_;
};

Normalized Normalized::Tail(const NodeView& node, int64_t axis) {
  Normalized parts{.axes = StageWriter::Axes(node.Shape(0))};
  for (int64_t d = 0; d < node.Rank(0); ++d) {
    const std::string& i = parts.axes[d];
    if (d < axis) {
      parts.groups.push_back(i);
      parts.shape.push_back(node.Shape(0)[d]);
      parts.element.push_back(i);
      parts.first.push_back(i);
    } else {
      parts.members.push_back(absl::StrCat("k", d));
      parts.extents.push_back(node.Shape(0)[d]);
      parts.element.push_back(parts.members.back());
      parts.first.push_back("0");
    }
  }
  parts.own = parts.groups;
  parts.first_of_own = parts.first;
  if (axis == 0) {  // a single group
    parts.groups = {"i"};
    parts.own = {"0"};
  }
  return parts;
}

Normalized Normalized::Channels(const NodeView& node, int64_t groups) {
  const std::vector<int64_t>& shape = node.Shape(0);
  const int64_t channels = shape[1] / groups;  // per group
  Normalized parts{.axes = StageWriter::Axes(shape)};
  const std::string &n = parts.axes[0], &c = parts.axes[1];
  const std::string own = channels == 1 ? c : absl::StrCat(c, " / ", channels);
  parts.groups = {n, "g"};
  parts.shape = {shape[0], groups};
  parts.own = {n, own};
  parts.element = {n, "g"};
  parts.first = {n, channels == 1 ? "g" : absl::StrCat("g * ", channels)};
  parts.first_of_own = {n, channels == 1 ? own : absl::StrCat(own, " * ", channels)};
  if (channels > 1) {
    parts.members.push_back("c");
    parts.extents.push_back(channels);
    parts.element[1] = absl::StrCat("g * ", channels, " + c");
  }
  for (size_t d = 2; d < shape.size(); ++d) {
    parts.members.push_back(absl::StrCat("k", d));
    parts.extents.push_back(shape[d]);
    parts.element.push_back(parts.members.back());
    parts.first.push_back("0");
    parts.first_of_own.push_back("0");
  }
  return parts;
}

Moments::Moments(const NodeView& node, StageWriter& writer, Normalized parts, double epsilon,
                 bool centered)
    : writer_(writer),
      parts_(std::move(parts)),
      input_dtype_(node.Type(0).dtype),
      dtype_(ir::AccumulatorOf(input_dtype_)),
      epsilon_(epsilon),
      centered_(centered) {
  const double count = static_cast<double>(TensorType{.shape = parts_.extents}.elements());
  share_ = Literal(dtype_, 1 / count);
  const std::string reduction = Reduction("sum", parts_.members, parts_.extents);
  if (centered_) {
    sum_ = writer.Stage("sum", parts_.groups, parts_.shape,
                        absl::StrCat(reduction, At(parts_.element), " - ", At(parts_.first)));
  }
  const std::string deviation = Deviation(parts_.element, parts_.first, parts_.groups);
  squares_ = writer.Stage("squares", parts_.groups, parts_.shape,
                          absl::StrCat(reduction, deviation, " * ", deviation));
}

std::string Moments::Value() const {
  return absl::StrCat(Deviation(parts_.axes, parts_.first_of_own, parts_.own), " * ",
                      InverseDeviation());
}

std::string Moments::Mean() const {
  return absl::StrCat(At(parts_.first_of_own), " + ", Element(sum_, parts_.own), " * ", share_);
}

std::string Moments::InverseDeviation() const {
  return absl::StrCat("rsqrt(", Element(squares_, parts_.own), " * ", share_, " + ",
                      Literal(dtype_, epsilon_), ")");
}

std::string Moments::At(const std::vector<std::string>& indices) const {
  return Convert(input_dtype_, dtype_, writer_.In(0, indices));
}

std::string Moments::Deviation(const std::vector<std::string>& element,
                               const std::vector<std::string>& first,
                               const std::vector<std::string>& group) const {
  if (!centered_) return At(element);
  return absl::StrCat("(", At(element), " - ", At(first), " - ", Element(sum_, group), " * ",
                      share_, ")");
}

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

// Normalizations by a norm, without a mean.

absl::StatusOr<Types> InferLpNormalization(const NodeView& node) {
  HONE_RETURN_IF_ERROR(node.AxisAttribute("axis", -1, node.Rank(0)).status());
  HONE_ASSIGN_OR_RETURN(const int64_t p, node.Int("p", 2));
  if (p != 1 && p != 2) return node.InvalidError(absl::StrCat("p is ", p));
  return SameFloatType(node);
}

absl::Status DefineLpNormalization(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const int64_t p, node.Int("p", 2));
  const DType x = node.Type(0).dtype, dtype = ir::AccumulatorOf(x);
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<std::string> element = axes, row = axes;
  std::vector<int64_t> shape = node.Shape(0);
  element[axis] = "k";
  shape[axis] = 1;
  row[axis] = "0";
  const std::string at = Convert(x, dtype, writer.In(0, element));
  const std::string sum = writer.Stage(
      "sum", axes, shape,
      absl::StrCat(Reduction("sum", {"k"}, {node.Shape(0)[axis]}),
                   p == 1 ? absl::StrCat("abs(", at, ")") : absl::StrCat(at, " * ", at)));
  const std::string norm =
      p == 1 ? Element(sum, row) : absl::StrCat("sqrt(", Element(sum, row), ")");
  // The quotient of a row without a length is 0.
  writer.Output(0, axes,
                Convert(dtype, x,
                        absl::StrCat("select(", Element(sum, row), " == 0.0, 0.0, ",
                                     Convert(x, dtype, writer.In(0, axes)), " / ", norm, ")")));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Size(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t size, node.Int("size", 0));
  if (0 < size && size <= ir::kMaxElements) return size;
  return node.InvalidError(absl::StrCat("size is ", size));
}

absl::StatusOr<Types> InferLRN(const NodeView& node) {
  HONE_RETURN_IF_ERROR(Size(node).status());
  if (node.Rank(0) < 2) return node.InvalidError("needs a tensor with channels");
  return SameFloatType(node);
}

// The squares of the neighbouring channels, (size - 1) / 2 before and size / 2 after.
absl::Status DefineLRN(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t size, Size(node));
  HONE_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1e-4));
  HONE_ASSIGN_OR_RETURN(const double beta, node.Float("beta", 0.75));
  HONE_ASSIGN_OR_RETURN(const double bias, node.Float("bias", 1));
  const DType x = node.Type(0).dtype, dtype = ir::AccumulatorOf(x);
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<std::string> element = axes;
  element[1] = Affine({{1, axes[1]}, {1, "k"}}, -((size - 1) / 2));
  const std::string guard = absl::StrCat("0 <= ", element[1], " < ", node.Shape(0)[1]);
  const std::string at = Convert(x, dtype, writer.In(0, element));
  const std::string squares =
      writer.Stage("squares", axes, node.Shape(0),
                   absl::StrCat(Reduction("sum", {"k"}, {size}, {guard}), at, " * ", at));
  writer.Output(
      0, axes,
      Convert(dtype, x,
              absl::StrCat(Convert(x, dtype, writer.In(0, axes)), " * pow(", Literal(dtype, bias),
                           " + ", Literal(dtype, alpha / static_cast<double>(size)), " * ",
                           Element(squares, axes), ", ", Literal(dtype, -beta), ")")));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> NormalizationOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"BatchNormalization", 5, 5, InferBatchNormalization, DefineBatchNormalization,
       "without training"},
      {"GroupNormalization", 3, 3, InferGroupNormalization, DefineGroupNormalization},
      {"InstanceNormalization", 3, 3, InferInstanceNormalization, DefineInstanceNormalization},
      {"LRN", 1, 1, InferLRN, DefineLRN},
      {"LayerNormalization", 2, 3, InferLayerNormalization, DefineLayerNormalization},
      {"LpNormalization", 1, 1, InferLpNormalization, DefineLpNormalization},
      {"RMSNormalization", 2, 2, InferRMSNormalization, DefineRMSNormalization},
  };
  return kOperators;
}

}  // namespace hone::graph

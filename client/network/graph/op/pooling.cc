#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/window.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::graph {
namespace {

// The axes of a pooling: "n", "c", a position and a tap per dimension.
struct Pooling {
  std::vector<Window> windows;
  std::vector<std::string> axes = {"n", "c"}, positions, taps, element = {"n", "c"};
  std::vector<int64_t> shape, kernel;

  static absl::StatusOr<Pooling> Of(const NodeView& node) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, node.IntList("kernel_shape", {}));
    Pooling pooling;
    HONE_ASSIGN_OR_RETURN(pooling.windows, Windows(node, kernel));
    pooling.kernel = kernel;
    HONE_ASSIGN_OR_RETURN(const bool last, HasChannelsLast(node));
    pooling.shape = {node.Shape(0)[0], last ? node.Shape(0).back() : node.Shape(0)[1]};
    double taps = 1;
    for (const int64_t extent : kernel) taps *= static_cast<double>(extent);
    if (taps > static_cast<double>(ir::kMaxElements)) {
      return node.InvalidError(absl::StrCat("a window of ", taps, " elements; at most ",
                                            ir::kMaxElements, " are supported"));
    }
    for (size_t d = 0; d < kernel.size(); ++d) {
      const std::string position = absl::StrCat("p", d), tap = absl::StrCat("r", d);
      pooling.axes.push_back(position);
      pooling.positions.push_back(position);
      pooling.taps.push_back(tap);
      pooling.element.push_back(pooling.windows[d].At(position, tap));
      pooling.shape.push_back(pooling.windows[d].outputs);
    }
    if (last) {
      MoveChannelsLast(pooling.axes);
      MoveChannelsLast(pooling.element);
      MoveChannelsLast(pooling.shape);
    }
    return pooling;
  }

  // "max(r0: 3, r1: 3 where <guards>) "
  std::string Reduced(absl::string_view reducer) const {
    std::vector<std::string> guards;
    for (size_t d = 0; d < windows.size(); ++d) windows[d].Guard(positions[d], taps[d], guards);
    return Reduction(reducer, taps, kernel, guards);
  }
};

absl::StatusOr<Types> InferPool(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_ASSIGN_OR_RETURN(Pooling pooling, Pooling::Of(node));
  return Types{{node.Type(0).dtype, std::move(pooling.shape)}};
}

absl::StatusOr<Types> InferFloatPool(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  return InferPool(node);
}

absl::StatusOr<Types> InferMaxPool(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Types types, InferPool(node));
  HONE_ASSIGN_OR_RETURN(const bool last, HasChannelsLast(node));
  if (last && node.WantsOutput(1)) {
    return node.UnimplementedError("indices of the maxima need channels first");
  }
  types.push_back({ir::DType::kI64, types[0].shape});
  return types;
}

// The distances in the flattened input between neighbours of each dimension.
std::vector<int64_t> Strides(const NodeView& node) {
  const std::vector<int64_t>& shape = node.Shape(0);
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// The index of a window's element in the flattened input.
std::string FlatPlace(const Pooling& pooling, const std::vector<int64_t>& strides) {
  std::vector<std::pair<int64_t, std::string>> terms;
  for (size_t d = 0; d < strides.size(); ++d) {
    terms.emplace_back(strides[d],
                       d < 2 ? pooling.element[d] : absl::StrCat("(", pooling.element[d], ")"));
  }
  return Affine(terms, 0);
}

// The index of a window's first element that is not padding, as a value.
std::string FirstPlace(const Pooling& pooling, const std::vector<int64_t>& strides) {
  std::string place =
      absl::StrCat("index(", Affine({{strides[0], "n"}, {strides[1], "c"}}, 0), ")");
  for (size_t d = 0; d < pooling.windows.size(); ++d) {
    const Window& window = pooling.windows[d];
    const std::string begin =
        absl::StrCat("index(", Affine({{window.stride, pooling.positions[d]}}, -window.begin), ")");
    absl::StrAppend(&place, " + ", strides[d + 2], " * ",
                    absl::Substitute("min(max($0, $0 + ($1 - $0) / $2 * $2), $3)", begin,
                                     window.dilation - 1, window.dilation, window.extent - 1));
  }
  return place;
}

// A place with the dimensions of the image in column-major order. It is computed from the other
// one, because the first of equal maxima in row-major order counts in both orders.
std::string PlaceByColumns(const NodeView& node, const std::vector<int64_t>& strides,
                           const std::string& place) {
  const std::vector<int64_t>& shape = node.Shape(0);
  std::string moved =
      absl::StrCat("index(", Affine({{strides[0], "n"}, {strides[1], "c"}}, 0), ")");
  int64_t stride = 1;
  for (size_t d = 2; d < shape.size(); ++d) {
    absl::StrAppend(&moved, " + (", place, " / ", strides[d], " - ", place, " / ", strides[d - 1],
                    " * ", shape[d], ") * ", stride);
    stride *= shape[d];
  }
  return moved;
}

absl::Status DefineMaxPool(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Pooling pooling, Pooling::Of(node));
  const std::string element = writer.In(0, pooling.element);
  if (!writer.WantsOutput(1)) {
    writer.Output(0, pooling.axes, absl::StrCat(pooling.Reduced("max"), element));
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const int64_t by_columns, node.Int("storage_order", 0));
  const std::vector<int64_t> strides = Strides(node);
  const std::string maximum = absl::StrCat(pooling.Reduced("argmax"), "(", element, ", index(",
                                           FlatPlace(pooling, strides), "))");
  const bool is_float = ir::IsFloat(node.Type(0).dtype);
  if (!is_float && by_columns == 0) {
    writer.Outputs(0, 1, pooling.axes, maximum);
    return absl::OkStatus();
  }
  const auto [values, places] = writer.ExtremeStage("place", pooling.axes, pooling.shape, maximum);
  if (writer.WantsOutput(0)) writer.Output(0, pooling.axes, Element(values, pooling.axes));
  std::string place = Element(places, pooling.axes);
  if (is_float) {  // a maximum ignores NaN; a window of nothing else gets its first place
    place =
        absl::StrCat("select(", place, " < 0, ", FirstPlace(pooling, strides), ", ", place, ")");
  }
  if (by_columns != 0) {
    if (is_float) {
      const std::string stage = writer.Stage("row_major", pooling.axes, pooling.shape, place);
      place = Element(stage, pooling.axes);
    }
    place = PlaceByColumns(node, strides, place);
  }
  writer.Output(1, pooling.axes, place);
  return absl::OkStatus();
}

// The divisor of a window's sum: a number if all windows have equally many elements, otherwise an
// element of a stage that counts them for each position.
std::string Divisor(const NodeView& node, StageWriter& writer, const Pooling& pooling,
                    bool count_padding) {
  std::vector<std::string> guards;
  std::vector<int64_t> outputs;
  int64_t taps = 1;
  for (size_t d = 0; d < pooling.windows.size(); ++d) {
    const Window& window = pooling.windows[d];
    window.Guard(pooling.positions[d], pooling.taps[d], guards, count_padding ? window.begin : 0,
                 count_padding ? window.end : 0);
    outputs.push_back(window.outputs);
    taps *= window.kernel;
  }
  const ir::DType dtype = ir::AccumulatorOf(node.Type(0).dtype);
  if (guards.empty()) return Literal(dtype, static_cast<double>(taps));
  const std::string count = writer.Stage(
      "count", pooling.positions, outputs,
      absl::StrCat(Reduction("sum", pooling.taps, pooling.kernel, guards), Literal(dtype, 1.0)));
  return Element(count, pooling.positions);
}

absl::Status DefineAveragePool(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Pooling pooling, Pooling::Of(node));
  HONE_ASSIGN_OR_RETURN(const int64_t count_padding, node.Int("count_include_pad", 0));
  // The sum of a large window may be too large for short floats.
  const ir::DType x = node.Type(0).dtype, dtype = ir::AccumulatorOf(x);
  const std::string sum = writer.Stage(
      "sum", pooling.axes, pooling.shape,
      absl::StrCat(pooling.Reduced("sum"), Convert(x, dtype, writer.In(0, pooling.element))));
  writer.Output(0, pooling.axes,
                Convert(dtype, x,
                        absl::StrCat(Element(sum, pooling.axes), " / ",
                                     Divisor(node, writer, pooling, count_padding != 0))));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferGlobalPool(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  if (node.Rank(0) < 3) return node.InvalidError(absl::StrCat("pools ", node.Type(0).ToText()));
  HONE_ASSIGN_OR_RETURN(const bool last, HasChannelsLast(node));
  const size_t channels = last ? node.Rank(0) - 1 : 1;
  std::vector<int64_t> shape(node.Rank(0), 1);
  shape[0] = node.Shape(0)[0];
  shape[channels] = node.Shape(0)[channels];
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

// The axes of a pooling of whole images.
struct GlobalPooling {
  std::vector<std::string> axes;  // of the result
  std::string sample, channel;    // two of `axes`
  std::vector<int64_t> sums;      // the extents of `sample` and `channel`
  int64_t count = 1;              // elements per image
  std::string element;            // "max(r0: 7, r1: 7) X[i0, i1, r0, r1]"

  // Reduces elements of the type `dtype`.
  static absl::StatusOr<GlobalPooling> Of(const NodeView& node, StageWriter& writer,
                                          absl::string_view reducer, ir::DType dtype) {
    HONE_ASSIGN_OR_RETURN(const bool last, HasChannelsLast(node));
    const std::vector<int64_t>& image = node.Shape(0);
    const size_t channels = last ? image.size() - 1 : 1;
    GlobalPooling pooling{.axes = StageWriter::Axes(writer.OutputType(0).shape)};
    pooling.sample = pooling.axes[0];
    pooling.channel = pooling.axes[channels];
    pooling.sums = {image[0], image[channels]};
    std::vector<int64_t> extents = image;
    extents.erase(extents.begin() + static_cast<int64_t>(channels));
    extents.erase(extents.begin());
    for (const int64_t extent : extents) pooling.count *= extent;
    const std::vector<std::string> taps = StageWriter::Axes(extents, "r");
    std::vector<std::string> element = {pooling.sample, pooling.channel};
    element.insert(element.end(), taps.begin(), taps.end());
    if (last) MoveChannelsLast(element);
    pooling.element = absl::StrCat(Reduction(reducer, taps, extents),
                                   Convert(node.Type(0).dtype, dtype, writer.In(0, element)));
    return pooling;
  }
};

absl::Status DefineGlobalMaxPool(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const auto pooling,
                        GlobalPooling::Of(node, writer, "max", node.Type(0).dtype));
  writer.Output(0, pooling.axes, pooling.element);
  return absl::OkStatus();
}

absl::Status DefineGlobalAveragePool(const NodeView& node, StageWriter& writer) {
  const ir::DType x = node.Type(0).dtype, dtype = ir::AccumulatorOf(x);
  HONE_ASSIGN_OR_RETURN(const auto pooling, GlobalPooling::Of(node, writer, "sum", dtype));
  const std::vector<std::string> places = {pooling.sample, pooling.channel};
  const std::string sum = writer.Stage("sum", places, pooling.sums, pooling.element);
  writer.Output(0, pooling.axes,
                Convert(dtype, x,
                        absl::StrCat(Element(sum, places), " / ",
                                     Literal(dtype, static_cast<double>(pooling.count)))));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> PoolingOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"AveragePool", 1, 1, InferFloatPool, DefineAveragePool, "float types"},
      {"GlobalAveragePool", 1, 1, InferGlobalPool, DefineGlobalAveragePool, "float types"},
      {"GlobalMaxPool", 1, 1, InferGlobalPool, DefineGlobalMaxPool, "float types"},
      {"MaxPool", 1, 1, InferMaxPool, DefineMaxPool},
  };
  return kOperators;
}

}  // namespace hone::graph

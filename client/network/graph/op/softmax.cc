#include <string>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

// The rows of a tensor along an axis. All stages are computed in `dtype`, which is f32 for shorter
// floats.
struct Rows {
  int64_t axis, length;
  DType dtype, input_dtype;
  std::vector<std::string> axes, rest;  // the axes of the tensor, and those without `axis`
  std::vector<int64_t> shape, rest_shape;

  static absl::StatusOr<Rows> Of(const NodeView& node) {
    Rows rows;
    HONE_ASSIGN_OR_RETURN(rows.axis, node.AxisAttribute("axis", -1, node.Rank(0)));
    rows.input_dtype = node.Type(0).dtype;
    rows.dtype = ir::AccumulatorOf(rows.input_dtype);
    rows.shape = rows.rest_shape = node.Shape(0);
    rows.axes = rows.rest = StageWriter::Axes(rows.shape);
    rows.length = rows.shape[rows.axis];
    rows.rest.erase(rows.rest.begin() + rows.axis);
    rows.rest_shape.erase(rows.rest_shape.begin() + rows.axis);
    if (rows.rest.empty()) rows.rest = {"i"};
    return rows;
  }

  // The indices of the tensor with `k` as the axis along the row.
  std::vector<std::string> Along(const std::string& k) const {
    std::vector<std::string> indices = axes;
    indices[axis] = k;
    return indices;
  }
  // An element of a stage with one result per row.
  std::string OfRow(const std::string& stage) const {
    return Element(stage, rest_shape.empty() ? std::vector<std::string>{"0"} : rest);
  }
  std::string Reduced(absl::string_view reducer) const {
    return Reduction(reducer, {"k"}, {length});
  }
};

absl::StatusOr<Types> InferRows(const NodeView& node) {
  HONE_RETURN_IF_ERROR(Rows::Of(node).status());
  return SameFloatType(node);
}

// Writes the stage of the row maxima. Difference() is x - max(x) at index `k` of the row.
struct Shifted {
  const Rows& rows;
  StageWriter& writer;
  std::string max;

  Shifted(const Rows& rows, StageWriter& writer) : rows(rows), writer(writer) {
    max =
        writer.Stage("max", rows.rest, rows.rest_shape, absl::StrCat(rows.Reduced("max"), At("k")));
  }
  std::string At(const std::string& k) const {
    return Convert(rows.input_dtype, rows.dtype, writer.In(0, rows.Along(k)));
  }
  std::string Difference(const std::string& k) const {
    return absl::StrCat(At(k), " - ", rows.OfRow(max));
  }
};

// The exponentials have their own stage, so that a schedule can store or recompute them.
absl::Status DefineSoftmax(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Rows rows, Rows::Of(node));
  const Shifted shifted(rows, writer);
  const std::string exp =
      writer.Stage("exp", rows.axes, rows.shape,
                   absl::StrCat("exp(", shifted.Difference(rows.axes[rows.axis]), ")"));
  const std::string sum =
      writer.Stage("sum", rows.rest, rows.rest_shape,
                   absl::StrCat(rows.Reduced("sum"), Element(exp, rows.Along("k"))));
  writer.Output(0, rows.axes,
                Convert(rows.dtype, rows.input_dtype,
                        absl::StrCat(Element(exp, rows.axes), " / ", rows.OfRow(sum))));
  return absl::OkStatus();
}

absl::Status DefineLogSoftmax(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Rows rows, Rows::Of(node));
  const Shifted shifted(rows, writer);
  const std::string sum =
      writer.Stage("sum", rows.rest, rows.rest_shape,
                   absl::StrCat(rows.Reduced("sum"), "exp(", shifted.Difference("k"), ")"));
  writer.Output(0, rows.axes,
                Convert(rows.dtype, rows.input_dtype,
                        absl::StrCat(shifted.Difference(rows.axes[rows.axis]), " - log(",
                                     rows.OfRow(sum), ")")));
  return absl::OkStatus();
}

absl::Status DefineHardmax(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Rows rows, Rows::Of(node));
  const std::string place = writer.PlaceStage(
      "place", rows.rest, rows.rest_shape,
      absl::StrCat(rows.Reduced("argmax"), "(",
                   WithoutNaN(rows.input_dtype, writer.In(0, rows.Along("k")), "inf"),
                   ", index(k))"));
  writer.Output(0, rows.axes,
                absl::StrCat("select(", rows.OfRow(place), " == index(", rows.axes[rows.axis],
                             "), ", Literal(rows.input_dtype, 1.0), ", 0.0)"));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> SoftmaxOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Hardmax", 1, 1, InferRows, DefineHardmax},
      {"LogSoftmax", 1, 1, InferRows, DefineLogSoftmax},
      {"Softmax", 1, 1, InferRows, DefineSoftmax},
  };
  return kOperators;
}

}  // namespace hone::graph

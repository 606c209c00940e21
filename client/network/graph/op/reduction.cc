#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

// Which dimensions a node reduces, and the axes of its stages.
struct Reduced {
  std::vector<int64_t> shape;        // of the result, with or without the reduced dimensions
  std::vector<std::string> axes;     // of the result
  std::vector<std::string> element;  // of the input, at `axes` and `members`
  std::vector<std::string> members;  // the reduced axes
  std::vector<int64_t> extents;      // the extents of `members`

  static Reduced Over(const NodeView& node, const std::vector<int64_t>& dimensions, bool keep) {
    Reduced r;
    for (int64_t d = 0; d < node.Rank(0); ++d) {
      const int64_t extent = node.Shape(0)[d];
      const bool reduced = std::count(dimensions.begin(), dimensions.end(), d) > 0;
      if (!reduced || keep) {
        r.shape.push_back(reduced ? 1 : extent);
        r.axes.push_back(absl::StrCat("i", d));
      }
      if (reduced) {
        r.members.push_back(absl::StrCat("k", d));
        r.extents.push_back(extent);
      }
      r.element.push_back(absl::StrCat(reduced ? "k" : "i", d));
    }
    if (r.axes.empty()) r.axes = {"i"};
    if (r.element.empty()) r.element = {"0"};
    return r;
  }

  static absl::StatusOr<Reduced> Of(const NodeView& node) {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> dimensions, AxesInput(node, 1, node.Rank(0)));
    HONE_ASSIGN_OR_RETURN(const int64_t keep, node.Int("keepdims", 1));
    HONE_ASSIGN_OR_RETURN(const int64_t noop, node.Int("noop_with_empty_axes", 0));
    const bool given = node.Has(1) && node.Type(1).elements() > 0;
    if (!given && noop != 0) {
      dimensions.clear();
    } else if (!given) {
      HONE_ASSIGN_OR_RETURN(dimensions, AxesInput(node, node.inputs(), node.Rank(0)));
    }
    return Over(node, dimensions, keep != 0);
  }

  std::string Over(absl::string_view reducer) const { return Reduction(reducer, members, extents); }
};

absl::StatusOr<Types> InferReduce(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_ASSIGN_OR_RETURN(Reduced r, Reduced::Of(node));
  return Types{{node.Type(0).dtype, std::move(r.shape)}};
}

absl::StatusOr<Types> InferFloatReduce(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  return InferReduce(node);
}

absl::StatusOr<Types> InferAnyReduce(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Reduced r, Reduced::Of(node));
  return Types{{node.Type(0).dtype, std::move(r.shape)}};
}

// Writes a reduction of `formula`, where $0 is the element of the input, and then applies
// `function`, where $0 is the reduced value. "$0" is the identity and adds no stage.
absl::Status Write(const NodeView& node, StageWriter& writer, absl::string_view reducer,
                   absl::string_view formula, absl::string_view function) {
  HONE_ASSIGN_OR_RETURN(const Reduced r, Reduced::Of(node));
  const auto reduced = [&](const std::string& element) {
    return absl::StrCat(r.Over(reducer), absl::Substitute(formula, element));
  };
  const std::string element = writer.In(0, r.element);
  if (function == "$0") {
    writer.Output(0, r.axes, reduced(element));
    return absl::OkStatus();
  }
  // A total may be too large for short floats, even if the result is not.
  const DType x = node.Type(0).dtype, dtype = ir::AccumulatorOf(x);
  const std::string stage =
      writer.Stage("total", r.axes, r.shape, reduced(Convert(x, dtype, element)));
  writer.Output(0, r.axes, Convert(dtype, x, absl::Substitute(function, Element(stage, r.axes))));
  return absl::OkStatus();
}

template <const char* kReducer, const char* kFormula, const char* kFunction>
absl::Status Reduce(const NodeView& node, StageWriter& writer) {
  return Write(node, writer, kReducer, kFormula, kFunction);
}

constexpr char kMax[] = "max";
constexpr char kMin[] = "min";
constexpr char kProd[] = "prod";
constexpr char kSum[] = "sum";
constexpr char kIt[] = "$0";
constexpr char kAbs[] = "abs($0)";
constexpr char kSquare[] = "$0 * $0";
constexpr char kSqrt[] = "sqrt($0)";
constexpr char kLog[] = "log($0)";

// The maximum or minimum. For bool, this is whether any or all elements are true.
template <const char* kReducer>
absl::Status Extreme(const NodeView& node, StageWriter& writer) {
  if (node.Type(0).dtype != DType::kBool) return Write(node, writer, kReducer, "$0", "$0");
  return Write(node, writer, kReducer, "u8($0)", "bool($0)");
}

absl::Status DefineMean(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Reduced r, Reduced::Of(node));
  const int64_t count = TensorType{.shape = r.extents}.elements();
  const DType dtype = node.Type(0).dtype;
  const std::string divisor =
      ir::IsFloat(dtype) ? StageWriter::Number(static_cast<double>(count)) : absl::StrCat(count);
  return Write(node, writer, kSum, "$0", absl::StrCat("$0 / ", divisor));
}

// The largest element is subtracted, so that no exponential overflows. If it is infinite, a finite
// number is subtracted instead, because the difference of two infinities is NaN.
absl::Status DefineLogSumExp(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Reduced r, Reduced::Of(node));
  const DType type = node.Type(0).dtype, dtype = ir::AccumulatorOf(type);
  const std::string x = Convert(type, dtype, writer.In(0, r.element));
  const std::string max = writer.Stage("max", r.axes, r.shape, absl::StrCat(r.Over("max"), x));
  const std::string most =
      StageWriter::Number(dtype == DType::kF64 ? std::numeric_limits<double>::max()
                                               : std::numeric_limits<float>::max());
  const std::string shift =
      Element(writer.Stage("shift", r.axes, r.shape,
                           absl::Substitute("max(min($0, $1), -$1)", Element(max, r.axes), most)),
              r.axes);
  const std::string sum = writer.Stage("sum", r.axes, r.shape,
                                       absl::StrCat(r.Over("sum"), "exp(", x, " - ", shift, ")"));
  writer.Output(0, r.axes,
                Convert(dtype, type, absl::StrCat(shift, " + log(", Element(sum, r.axes), ")")));
  return absl::OkStatus();
}

constexpr char kArgMax[] = "argmax";
constexpr char kArgMin[] = "argmin";

absl::StatusOr<Reduced> OfArg(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const int64_t keep, node.Int("keepdims", 1));
  return Reduced::Over(node, {axis}, keep != 0);
}

absl::StatusOr<Types> InferArg(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_ASSIGN_OR_RETURN(Reduced r, OfArg(node));
  return Types{{DType::kI64, std::move(r.shape)}};
}

// Writes the index of an extreme. The last of several equal ones is found by counting from the end.
// NaN counts as infinity, so that every row has an index.
template <const char* kReducer>
absl::Status DefineArg(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(Reduced r, OfArg(node));
  HONE_ASSIGN_OR_RETURN(const int64_t last, node.Int("select_last_index", 0));
  const std::string k = r.members[0];
  if (last != 0) {
    std::replace(r.element.begin(), r.element.end(), k, Affine({{-1, k}}, r.extents[0] - 1));
  }
  const std::string place = writer.PlaceStage(
      "place", r.axes, r.shape,
      absl::StrCat(r.Over(kReducer), "(",
                   WithoutNaN(node.Type(0).dtype, writer.In(0, r.element),
                              absl::string_view(kReducer) == kArgMax ? "inf" : "-inf"),
                   ", index(", k, "))"));
  const std::string at = Element(place, r.axes);
  writer.Output(0, r.axes, last == 0 ? at : absl::StrCat(r.extents[0] - 1, " - ", at));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> ReductionOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"ArgMax", 1, 1, InferArg, DefineArg<kArgMax>},
      {"ArgMin", 1, 1, InferArg, DefineArg<kArgMin>},
      {"ReduceL1", 1, 2, InferReduce, Reduce<kSum, kAbs, kIt>, "constant axes"},
      {"ReduceL2", 1, 2, InferFloatReduce, Reduce<kSum, kSquare, kSqrt>, "constant axes"},
      {"ReduceLogSum", 1, 2, InferFloatReduce, Reduce<kSum, kIt, kLog>, "constant axes"},
      {"ReduceLogSumExp", 1, 2, InferFloatReduce, DefineLogSumExp, "constant axes"},
      {"ReduceMax", 1, 2, InferAnyReduce, Extreme<kMax>, "constant axes"},
      {"ReduceMean", 1, 2, InferReduce, DefineMean, "constant axes"},
      {"ReduceMin", 1, 2, InferAnyReduce, Extreme<kMin>, "constant axes"},
      {"ReduceProd", 1, 2, InferReduce, Reduce<kProd, kIt, kIt>, "constant axes"},
      {"ReduceSum", 1, 2, InferReduce, Reduce<kSum, kIt, kIt>, "constant axes"},
      {"ReduceSumSquare", 1, 2, InferReduce, Reduce<kSum, kSquare, kIt>, "constant axes"},
  };
  return kOperators;
}

}  // namespace hone::graph

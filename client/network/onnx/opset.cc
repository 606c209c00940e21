#include "client/network/onnx/opset.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/compose/attention.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/rewrite.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::ValueId;
using Ints = std::vector<int64_t>;

constexpr int64_t kMaxBatch = int64_t{1} << 20;  // the importer makes a constant of this size

int64_t Product(Ints::const_iterator begin, Ints::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

// What a GatherND looks up.
struct LookUp {
  Ints data, indices;
  int64_t batch = 0;  // leading dimensions that both have
  int64_t count = 0;  // the number of dimensions that are looked up, which follow the batch

  static absl::StatusOr<LookUp> Of(const graph::NodeView& node) {
    if (node.inputs() != 2 || !node.Has(1)) return node.InvalidError("needs two inputs");
    LookUp look_up{node.Shape(0), node.Shape(1)};
    HONE_ASSIGN_OR_RETURN(look_up.batch, node.Int("batch_dims", 0));
    const int64_t rank = node.Rank(0), batch = look_up.batch;
    bool fits = 0 <= batch && batch < rank && batch < node.Rank(1);
    for (int64_t d = 0; fits && d < batch; ++d) fits = look_up.data[d] == look_up.indices[d];
    if (fits) look_up.count = look_up.indices.back();
    if (fits && Product(look_up.data.begin(), look_up.data.begin() + batch) > kMaxBatch) {
      return node.UnimplementedError(
          absl::StrCat("a batch of ", Product(look_up.data.begin(), look_up.data.begin() + batch),
                       " is not supported"));
    }
    if (fits && 1 <= look_up.count && look_up.count <= rank - batch) return look_up;
    return node.InvalidError(absl::StrCat("indices of type ", node.Type(1).ToText(), " do not fit ",
                                          node.Type(0).ToText()));
  }

  // The dimensions that are looked up.
  Ints Extents() const { return Ints(data.begin() + batch, data.begin() + batch + count); }
  // The distances between neighboring elements in these dimensions.
  Ints Strides() const {
    const Ints extents = Extents();
    Ints strides(extents.size(), 1);
    for (size_t d = extents.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * extents[d];
    return strides;
  }
  // The shape of the data with all dimensions up to the last one that is looked up joined to one.
  Ints FlatData() const {
    Ints flat = {Product(data.begin(), data.begin() + batch + count)};
    flat.insert(flat.end(), data.begin() + batch + count, data.end());
    return flat;
  }
  // The shape of the indices without its last dimension.
  Ints Places() const { return Ints(indices.begin(), indices.end() - 1); }
};

// Computes the indices into the flat data, in the shape Places().
absl::StatusOr<ValueId> FlatIndices(Rewrite& rewrite, const LookUp& look_up) {
  ValueId index = rewrite.node().inputs[1];
  HONE_ASSIGN_OR_RETURN(const ValueId negative,
                        rewrite.Apply("Less", {index, rewrite.Ints("zero", {0})}));
  HONE_ASSIGN_OR_RETURN(const ValueId from_end,
                        rewrite.Apply("Add", {index, rewrite.Ints("extents", look_up.Extents())}));
  HONE_ASSIGN_OR_RETURN(index, rewrite.Apply("Where", {negative, from_end, index}));
  HONE_ASSIGN_OR_RETURN(const ValueId before,
                        rewrite.Apply("Less", {index, rewrite.Ints("least", {0})}));
  HONE_ASSIGN_OR_RETURN(
      const ValueId behind,
      rewrite.Apply("GreaterOrEqual", {index, rewrite.Ints("ends", look_up.Extents())}));
  HONE_ASSIGN_OR_RETURN(const ValueId outside, rewrite.Apply("Or", {before, behind}));
  HONE_ASSIGN_OR_RETURN(index,
                        rewrite.Apply("Mul", {index, rewrite.Ints("strides", look_up.Strides())}));
  // An index that is out of range in one dimension must not become that of another element.
  // Therefore the sum becomes an index that is out of range.
  const Ints all = look_up.FlatData();
  HONE_ASSIGN_OR_RETURN(
      index, rewrite.Apply("Where", {outside, rewrite.Ints("nowhere", {-2 * all.front()}), index}));
  HONE_ASSIGN_OR_RETURN(index, rewrite.Apply("ReduceSum", {index, rewrite.Ints("last", {-1})},
                                             {{"keepdims", int64_t{0}}}));
  if (look_up.batch == 0) return index;
  // The index at which each sample of the batch begins.
  const Ints extents = look_up.Extents();
  const int64_t size = Product(extents.begin(), extents.end());
  Ints begins(Product(look_up.data.begin(), look_up.data.begin() + look_up.batch));
  for (size_t b = 0; b < begins.size(); ++b) begins[b] = static_cast<int64_t>(b) * size;
  Ints shape = look_up.Places();
  for (size_t d = look_up.batch; d < shape.size(); ++d) shape[d] = 1;
  HONE_ASSIGN_OR_RETURN(
      const ValueId offsets,
      rewrite.Apply("Reshape", {rewrite.Ints("begins", begins), rewrite.Ints("shape", shape)}));
  return rewrite.Apply("Add", {index, offsets});
}

// Rewrites GatherND, which looks up several dimensions at once, to Gather: joins the dimensions to
// one, and computes the index into it from the indices of the dimensions.
absl::Status GatherND(Rewrite& rewrite) {
  HONE_ASSIGN_OR_RETURN(const LookUp look_up, LookUp::Of(rewrite.view()));
  HONE_ASSIGN_OR_RETURN(const ValueId index, FlatIndices(rewrite, look_up));
  HONE_ASSIGN_OR_RETURN(const ValueId data,
                        rewrite.Apply("Reshape", {rewrite.node().inputs[0],
                                                  rewrite.Ints("flat", look_up.FlatData())}));
  rewrite.node().op = "Gather";
  rewrite.node().inputs = {data, index};
  rewrite.node().attributes = {{"axis", int64_t{0}}};
  return absl::OkStatus();
}

using graph::kNoValue;
using graph::Node;
using graph::NodeView;
using graph::ValueId;

absl::Status Clip(Rewrite& rewrite) {
  HONE_RETURN_IF_ERROR(rewrite.NumberToInput("min", 1));
  return rewrite.NumberToInput("max", 2);
}

absl::Status Pad(Rewrite& rewrite) {
  HONE_RETURN_IF_ERROR(rewrite.ListToInput("pads", 1));
  return rewrite.NumberToInput("value", 2);
}

// Divides a node of very many inputs into several, because a workload has a limited number of
// tensors. `op` combines some of the inputs; afterwards, the node has at most `most`.
absl::Status CombineInputs(Rewrite& rewrite, absl::string_view op, ptrdiff_t most) {
  while (std::ssize(rewrite.node().inputs) > most) {
    const std::vector<ValueId> inputs = rewrite.node().inputs;
    std::vector<ValueId> combined;
    for (auto first = inputs.begin(); first != inputs.end();) {
      const auto last = first + std::min(most, inputs.end() - first);
      HONE_ASSIGN_OR_RETURN(combined.emplace_back(),
                            rewrite.Apply(op, {first, last}, rewrite.node().attributes));
      first = last;
    }
    rewrite.node().inputs = std::move(combined);
  }
  return absl::OkStatus();
}

constexpr ptrdiff_t kMostParts = 128, kMostOperands = 200;

absl::Status Concat(Rewrite& rewrite) { return CombineInputs(rewrite, "Concat", kMostParts); }
absl::Status Combine(Rewrite& rewrite) {
  return CombineInputs(rewrite, rewrite.node().op, kMostOperands);
}

absl::Status Mean(Rewrite& rewrite) {
  const size_t count = rewrite.node().inputs.size();
  HONE_RETURN_IF_ERROR(CombineInputs(rewrite, "Sum", kMostOperands));
  if (rewrite.node().inputs.size() == count) return absl::OkStatus();
  const ValueId first = rewrite.node().inputs[0];
  HONE_ASSIGN_OR_RETURN(const ValueId sum, rewrite.Apply("Sum", rewrite.node().inputs));
  rewrite.node().op = "Div";
  rewrite.node().inputs = {sum, rewrite.Scalar("count", first, static_cast<double>(count))};
  return absl::OkStatus();
}

absl::Status Slice(Rewrite& rewrite) {
  HONE_RETURN_IF_ERROR(rewrite.ListToInput("starts", 1));
  HONE_RETURN_IF_ERROR(rewrite.ListToInput("ends", 2));
  return rewrite.ListToInput("axes", 3);
}

absl::Status Axes(Rewrite& rewrite) { return rewrite.ListToInput("axes", 1); }
absl::Status SplitSizes(Rewrite& rewrite) { return rewrite.ListToInput("split", 1); }
absl::Status K(Rewrite& rewrite) { return rewrite.ListToInput("k", 1); }
absl::Status UpsampleScales(Rewrite& rewrite) { return rewrite.ListToInput("scales", 1); }

// Without sizes, a split has equal parts. Since opset 18, an attribute gives their number.
absl::Status SplitCount(Rewrite& rewrite) {
  if (rewrite.view().Has(1)) return absl::OkStatus();
  const int64_t parts = rewrite.all_outputs();
  HONE_ASSIGN_OR_RETURN(const int64_t axis,
                        rewrite.view().AxisAttribute("axis", 0, rewrite.view().Rank(0)));
  const int64_t extent = rewrite.view().Shape(0)[axis];
  if (extent % parts != 0) {
    return rewrite.view().InvalidError(
        absl::StrCat("cannot split the extent ", extent, " into ", parts, " equal parts"));
  }
  rewrite.node().attributes["num_outputs"] = parts;
  return absl::OkStatus();
}

// A small file could otherwise ask for billions of parts.
absl::Status SplitOutputs(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  HONE_ASSIGN_OR_RETURN(const int64_t count, view.Int("num_outputs", 0));
  const int64_t parts = view.Has(1) ? view.Type(1).elements() : count;
  if (parts > rewrite.all_outputs()) {
    return view.InvalidError(
        absl::StrCat("splits into ", parts, " parts, but has ", rewrite.all_outputs(), " outputs"));
  }
  constexpr int64_t kMost = 1 << 14;
  if (parts <= kMost) return absl::OkStatus();
  return view.UnimplementedError(
      absl::StrCat("splits into ", parts, " parts; at most ", kMost, " are supported"));
}

// Before opset 13, softmax normalized all dimensions from the axis on, which was 1 by default.
absl::Status Softmax(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  const int64_t rank = view.Rank(0);
  HONE_ASSIGN_OR_RETURN(const int64_t axis,
                        view.AxisAttribute("axis", std::min<int64_t>(1, rank - 1), rank));
  rewrite.node().attributes["axis"] = int64_t{-1};
  if (axis == rank - 1) return absl::OkStatus();
  const std::vector<int64_t> shape = view.Shape(0);
  std::vector<int64_t> rows(shape.begin(), shape.begin() + axis);
  rows.push_back(
      std::accumulate(shape.begin() + axis, shape.end(), int64_t{1}, std::multiplies<>()));
  const std::map<std::string, graph::Attribute> exact = {
      {"allowzero", int64_t{1}}};  // an extent of 0 is not a copy
  HONE_ASSIGN_OR_RETURN(
      const ValueId flat,
      rewrite.Apply("Reshape", {rewrite.node().inputs[0], rewrite.Ints("rows", rows)}, exact));
  HONE_ASSIGN_OR_RETURN(const ValueId result,
                        rewrite.Apply(rewrite.node().op, {flat}, rewrite.node().attributes));
  rewrite.node().op = "Reshape";
  rewrite.node().inputs = {result, rewrite.Ints("shape", shape)};
  rewrite.node().attributes = exact;
  return absl::OkStatus();
}

absl::Status BatchNormalization(Rewrite& rewrite) {
  HONE_ASSIGN_OR_RETURN(const int64_t spatial, rewrite.view().Int("spatial", 1));
  rewrite.Take("spatial");
  if (spatial != 0) return absl::OkStatus();
  return rewrite.view().UnimplementedError("spatial=0 is not supported");
}

// Adds the attributes that Resize of opset 10 and Upsample imply. Coordinates are rounded down if
// an image becomes larger and up if it becomes smaller, so that one with both kinds of scales is
// resized twice.
absl::Status OldResize(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  if (view.inputs() != 2 || !view.Has(1)) return view.InvalidError("needs two inputs");
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> scales, view.Elements(1));
  HONE_ASSIGN_OR_RETURN(std::string mode, view.String("mode", "nearest"));
  if (mode == "bilinear" || mode == "trilinear") mode = "linear";
  std::vector<double> up, down;
  for (const ir::Scalar& scale : scales) {
    up.push_back(std::max(scale.real(), 1.0));
    down.push_back(std::min(scale.real(), 1.0));
  }
  const auto is_one = [](double scale) { return scale == 1; };
  const bool only_up = std::all_of(down.begin(), down.end(), is_one);
  const bool only_down = std::all_of(up.begin(), up.end(), is_one);
  Node& node = rewrite.node();
  node.op = "Resize";
  node.attributes["mode"] = mode;
  node.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  if (!only_up && !only_down) {
    node.attributes["nearest_mode"] = std::string("floor");
    HONE_ASSIGN_OR_RETURN(
        node.inputs[0],
        rewrite.Apply("Resize", {node.inputs[0], kNoValue, rewrite.Floats("up", up)},
                      node.attributes));
    node.inputs[1] = rewrite.Floats("down", down);
  }
  node.attributes["nearest_mode"] = std::string(only_up ? "floor" : "ceil");
  node.inputs = {node.inputs[0], kNoValue, node.inputs[1]};
  return absl::OkStatus();
}

// Up to opset 20, scale and bias have an element per group instead of one per channel.
absl::Status GroupNormalization(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  HONE_ASSIGN_OR_RETURN(const int64_t groups, view.Int("num_groups", 0));
  if (view.inputs() != 3 || view.Rank(0) < 2) {
    return view.InvalidError("needs three inputs");
  }
  const int64_t channels = view.Shape(0)[1];
  if (groups <= 0 || channels % groups != 0) {
    return view.InvalidError(
        absl::StrCat("cannot divide ", channels, " channels into ", groups, " groups"));
  }
  for (const int input : {1, 2}) {
    if (!rewrite.view().Has(input)) return view.InvalidError("needs three inputs");
    HONE_ASSIGN_OR_RETURN(const ValueId column,
                          rewrite.Apply("Reshape", {rewrite.node().inputs[input],
                                                    rewrite.Ints("column", {groups, 1})}));
    HONE_ASSIGN_OR_RETURN(
        const ValueId repeated,
        rewrite.Apply("Expand", {column, rewrite.Ints("repeats", {groups, channels / groups})}));
    HONE_ASSIGN_OR_RETURN(const ValueId row,
                          rewrite.Apply("Reshape", {repeated, rewrite.Ints("row", {channels})}));
    rewrite.SetInput(input, row);
  }
  return absl::OkStatus();
}

// Types of ONNX for Cast.
constexpr int64_t kFloat = 1, kInt64 = 7, kFloat16 = 10, kBfloat16 = 16;

// Since opset 23, the result may have another type than the scale. The product is computed in f32
// then, and rounded once.
absl::Status DequantizedType(Rewrite& rewrite) {
  const std::optional<graph::Attribute> type = rewrite.Take("output_dtype");
  if (!type || *type == graph::Attribute(int64_t{0}) || !rewrite.view().Has(1)) {
    return absl::OkStatus();
  }
  const ir::DType of_scale = rewrite.view().Type(1).dtype;
  // The operator itself multiplies in f32 and rounds once to the type of the scale.
  const int64_t own = of_scale == ir::DType::kF32    ? kFloat
                      : of_scale == ir::DType::kF16  ? kFloat16
                      : of_scale == ir::DType::kBF16 ? kBfloat16
                                                     : 0;
  if (*type == graph::Attribute(own)) return absl::OkStatus();
  if (of_scale != ir::DType::kF32 && of_scale != ir::DType::kF64) {
    HONE_ASSIGN_OR_RETURN(const ValueId scale,
                          rewrite.Apply("Cast", {rewrite.input(1)}, {{"to", kFloat}}));
    rewrite.SetInput(1, scale);
  }
  HONE_ASSIGN_OR_RETURN(
      const ValueId product,
      rewrite.Apply("DequantizeLinear", rewrite.node().inputs, rewrite.node().attributes));
  rewrite.node().op = "Cast";
  rewrite.node().inputs = {product};
  rewrite.node().attributes = {{"to", *type}};
  return absl::OkStatus();
}

// Before opset 11, negative indices did not count from the end: their elements are all `off`.
absl::Status OneHot(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  if (view.inputs() != 3 || !view.IsConstant(1)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> depth, view.Ints(1));
  if (depth.size() != 1) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const ValueId index,
                        rewrite.Apply("Cast", {rewrite.input(0)}, {{"to", kInt64}}));
  HONE_ASSIGN_OR_RETURN(const ValueId is_negative,
                        rewrite.Apply("Less", {index, rewrite.Whole("zero", 0)}));
  HONE_ASSIGN_OR_RETURN(
      const ValueId beyond,
      rewrite.Apply("Where", {is_negative, rewrite.Whole("beyond", depth[0]), index}));
  rewrite.SetInput(0, beyond);
  return absl::OkStatus();
}

// The graph's operator rotates [batch, heads, sequence, size]. In ONNX, the heads may also be
// joined: [batch, sequence, heads * size].
absl::Status RotaryEmbedding(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  if (view.Rank(0) != 3) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const int64_t heads, view.Int("num_heads", 0));
  const std::vector<int64_t> shape = view.Shape(0);
  if (heads <= 0 || shape[2] % heads != 0) {
    return view.InvalidError(absl::StrCat("num_heads is ", heads, " for ", view.Type(0).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(const ValueId x, SplitHeads(rewrite, rewrite.input(0), heads));
  rewrite.Take("num_heads");
  std::vector<ValueId> inputs = rewrite.node().inputs;
  inputs[0] = x;
  HONE_ASSIGN_OR_RETURN(const ValueId rotated, rewrite.Apply("RotaryEmbedding", std::move(inputs),
                                                             rewrite.node().attributes));
  HONE_ASSIGN_OR_RETURN(
      const ValueId transposed,
      rewrite.Apply("Transpose", {rotated}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  rewrite.node().op = "Reshape";
  rewrite.node().inputs = {transposed, rewrite.Ints("shape", shape)};
  rewrite.node().attributes.clear();
  return absl::OkStatus();
}

// Converts a node of an opset below `before` to opset `before`.
struct Rule {
  absl::string_view op;
  int64_t before;
  absl::Status (*rewrite)(Rewrite&);
};

constexpr int64_t kAnyOpset = kNewestOpset + 1;

// For each operator, sorted by opset.
constexpr Rule kRules[] = {
    {"BatchNormalization", 9, BatchNormalization},
    {"Clip", 11, Clip},
    {"Concat", kAnyOpset, Concat},
    {"DequantizeLinear", kAnyOpset, DequantizedType},
    {"OneHot", 11, OneHot},
    {"GatherND", kAnyOpset, GatherND},
    {"GroupNormalization", 21, GroupNormalization},
    {"Hardmax", 13, Softmax},
    {"LogSoftmax", 13, Softmax},
    {"Max", kAnyOpset, Combine},
    {"Mean", kAnyOpset, Mean},
    {"Min", kAnyOpset, Combine},
    {"Pad", 11, Pad},
    {"ReduceL1", 18, Axes},
    {"ReduceL2", 18, Axes},
    {"ReduceLogSum", 18, Axes},
    {"ReduceLogSumExp", 18, Axes},
    {"ReduceMax", 18, Axes},
    {"ReduceMean", 18, Axes},
    {"ReduceMin", 18, Axes},
    {"ReduceProd", 18, Axes},
    {"ReduceSum", 13, Axes},
    {"ReduceSumSquare", 18, Axes},
    {"Resize", 11, OldResize},
    {"RotaryEmbedding", kAnyOpset, RotaryEmbedding},
    {"Slice", 10, Slice},
    {"Softmax", 13, Softmax},
    {"Split", 13, SplitSizes},
    {"Split", 18, SplitCount},
    {"Split", kAnyOpset, SplitOutputs},
    {"Squeeze", 13, Axes},
    {"Sum", kAnyOpset, Combine},
    {"TopK", 10, K},
    {"Unsqueeze", 13, Axes},
    {"Upsample", 9, UpsampleScales},
    {"Upsample", kAnyOpset, OldResize},
};

// Operators that have another name in opset 25, or become nodes of other operators.
constexpr std::pair<absl::string_view, absl::string_view> kRenamed[] = {
    {"GatherND", "Gather"}, {"Scatter", "ScatterElements"}, {"Upsample", "Resize"}};

// Operators that are the same in opset 7 as in an older one.
struct Unchanged {
  int64_t since;
  std::vector<absl::string_view> ops;
};

const std::vector<Unchanged>& UnchangedOperators() {
  static const auto* const unchanged =
      new std::vector<Unchanged>{{1, {"ArgMax",        "ArgMin",          "Constant",
                                      "Conv",          "ConvTranspose",   "DepthToSpace",
                                      "Flatten",       "Gather",          "GlobalAveragePool",
                                      "GlobalMaxPool", "Identity",        "LRN",
                                      "LogSoftmax",    "MatMul",          "MaxPool",
                                      "Not",           "ReduceL1",        "ReduceL2",
                                      "ReduceLogSum",  "ReduceLogSumExp", "ReduceMax",
                                      "ReduceMean",    "ReduceMin",       "ReduceProd",
                                      "ReduceSum",     "ReduceSumSquare", "Shape",
                                      "Size",          "Slice",           "Softmax",
                                      "Softplus",      "Softsign",        "SpaceToDepth",
                                      "Squeeze",       "Transpose",       "Unsqueeze"}},
                                 {2, {"Pad", "Split"}},
                                 {4, {"Concat"}},
                                 {5, {"Reshape"}},
                                 {6, {"Abs",        "Cast",        "Ceil",
                                      "Clip",       "Elu",         "Exp",
                                      "Floor",      "HardSigmoid", "InstanceNormalization",
                                      "LeakyRelu",  "Log",         "Max",
                                      "Mean",       "Min",         "Neg",
                                      "Reciprocal", "Relu",        "Selu",
                                      "Sigmoid",    "Sqrt",        "Sum",
                                      "Tanh",       "Tile"}}};
  return *unchanged;
}

}  // namespace

int64_t OldestOpset(absl::string_view op) {
  for (const auto& [since, ops] : UnchangedOperators()) {
    if (std::find(ops.begin(), ops.end(), op) != ops.end()) return since;
  }
  return 7;
}

absl::string_view CurrentName(absl::string_view op) {
  for (const auto& [old_name, name] : kRenamed) {
    if (old_name == op) return name;
  }
  return op;
}

absl::Status ConvertToNewest(VersionedNode& node, GraphBuilder& builder) {
  const std::string op = node.node.op;
  for (const Rule& rule : kRules) {
    if (rule.op != op || node.opset >= rule.before) continue;
    if (!NodeView(builder.graph(), node.node).Has(0)) {
      return NodeView(builder.graph(), node.node).InvalidError("input 0 is missing");
    }
    Rewrite rewrite(node, builder);
    HONE_RETURN_IF_ERROR(rule.rewrite(rewrite));
  }
  if (node.node.op == op) node.node.op = std::string(CurrentName(op));
  return absl::OkStatus();
}

}  // namespace hone::onnx

#include "client/network/onnx/body/control_flow.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/compose/composer.h"
#include "client/network/onnx/tensor_proto.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;
using Items = std::vector<Item>;
using Ints = std::vector<int64_t>;

// The names of the network's inputs on which a value depends.
std::vector<std::string> InputsBehind(const graph::Graph& graph, ValueId id) {
  const std::vector<int> producers = graph.Producers();
  std::set<ValueId> seen = {id};
  std::vector<ValueId> open = {id};
  while (!open.empty()) {
    const int producer = producers[open.back()];
    open.pop_back();
    if (producer < 0) continue;
    for (const ValueId input : graph.nodes[producer].inputs) {
      if (input != kNoValue && seen.insert(input).second) open.push_back(input);
    }
  }
  std::vector<std::string> names;
  for (const ValueId input : graph.inputs) {
    if (seen.contains(input)) names.push_back(absl::StrCat("'", graph.value(input).name, "'"));
  }
  return names;
}

// A node with bodies while its nodes are added.
class Flow {
 public:
  Flow(const ItemNode& node, GraphBuilder& builder, const RunBody& run)
      : node_(node),
        builder_(builder),
        run_(run),
        composer_(builder, node.node, node.opset, node.outputs) {}

  absl::StatusOr<Items> Add() {
    if (node_.node.op == "If") return If();
    if (node_.node.op == "Loop") return Loop();
    return node_.node.op == "Scan" ? Scan() : SequenceMap();
  }

 private:
  graph::NodeView view() const { return graph::NodeView(builder_.graph(), node_.node); }

  absl::StatusOr<const ::onnx::GraphProto*> Body(const std::string& attribute) const {
    const auto found = node_.bodies.find(attribute);
    if (found != node_.bodies.end()) return found->second;
    return view().InvalidError(absl::StrCat("needs the attribute '", attribute, "', a graph"));
  }

  absl::StatusOr<ValueId> Tensor(const Item& item, absl::string_view what) const {
    if (item.IsTensor() && item.tensor != kNoValue) return item.tensor;
    return view().InvalidError(absl::StrCat(what, " must be a tensor"));
  }

  // The only element of a tensor that must be known. `what`: what it is, for the message.
  absl::StatusOr<ir::Scalar> Known(const Item& item, absl::string_view what) const {
    HONE_ASSIGN_OR_RETURN(const ValueId id, Tensor(item, what));
    const graph::Value& value = builder_.graph().value(id);
    if (value.type.elements() != 1) {
      return view().InvalidError(absl::StrCat(what, " is ", value.type.ToText()));
    }
    if (value.constant) return Decode(value.type, value.constant->bytes())[0];
    const std::vector<std::string> inputs = InputsBehind(builder_.graph(), id);
    const absl::Status error = view().InvalidError(absl::StrCat(
        what, " ('", value.name, "') must be known when the model is read, but depends on ",
        inputs.empty() ? "a constant that is too large to compute"
                       : absl::StrCat(inputs.size() == 1 ? "input " : "inputs ",
                                      absl::StrJoin(inputs, ", "), " of the network")));
    return absl::FailedPreconditionError(error.message());
  }

  absl::StatusOr<Items> If() {
    if (node_.inputs.size() != 1) return view().InvalidError("needs one input, the condition");
    HONE_ASSIGN_OR_RETURN(const ir::Scalar condition, Known(node_.inputs[0], "its condition"));
    HONE_ASSIGN_OR_RETURN(const ::onnx::GraphProto* const body,
                          Body(condition.IsTrue() ? "then_branch" : "else_branch"));
    HONE_ASSIGN_OR_RETURN(Items results, run_(*body, {}));
    return Checked(std::move(results), node_.outputs.size());
  }

  absl::StatusOr<Items> Checked(Items results, size_t count) const {
    if (results.size() >= count) return results;
    return view().InvalidError(
        absl::StrCat("its body has ", results.size(), " outputs instead of ", count));
  }

  absl::StatusOr<Items> Loop() {
    HONE_ASSIGN_OR_RETURN(const ::onnx::GraphProto* const body, Body("body"));
    int64_t most = std::numeric_limits<int64_t>::max();
    bool goes_on = true;
    if (node_.Has(0)) {
      HONE_ASSIGN_OR_RETURN(const ir::Scalar trips, Known(node_.inputs[0], "its trip count"));
      most = trips.whole();
    }
    if (node_.Has(1)) {
      HONE_ASSIGN_OR_RETURN(const ir::Scalar condition, Known(node_.inputs[1], "its condition"));
      goes_on = condition.IsTrue();
    }
    Items carried(node_.inputs.begin() + std::min<ptrdiff_t>(2, std::ssize(node_.inputs)),
                  node_.inputs.end());
    const size_t states = carried.size();
    if (body->output_size() < static_cast<int>(states) + 1) {
      return view().InvalidError(absl::StrCat("its body has ", body->output_size(), " outputs for ",
                                              states, " values that it carries"));
    }
    const size_t scanned = body->output_size() - 1 - states;
    std::vector<std::vector<ValueId>> parts(scanned);
    const ValueId yes = composer_.Constant("condition", {ir::DType::kBool, {}},
                                           {ir::CastTo(ir::DType::kBool, 1.0)});
    for (int64_t i = 0; i < most && goes_on; ++i) {
      Items inputs = {Item::Tensor(composer_.Constant("iteration", {ir::DType::kI64, {}}, {i})),
                      Item::Tensor(yes)};
      inputs.insert(inputs.end(), carried.begin(), carried.end());
      HONE_ASSIGN_OR_RETURN(Items outputs, run_(*body, std::move(inputs)));
      if (i + 1 < most) {
        HONE_ASSIGN_OR_RETURN(const ir::Scalar condition,
                              Known(outputs[0], absl::StrCat("its condition after iteration ", i)));
        goes_on = condition.IsTrue();
      }
      carried.assign(outputs.begin() + 1, outputs.begin() + 1 + static_cast<int64_t>(states));
      for (size_t s = 0; s < scanned; ++s) {
        HONE_ASSIGN_OR_RETURN(parts[s].emplace_back(),
                              Tensor(outputs[1 + states + s], "an output of each iteration"));
      }
    }
    Items results = std::move(carried);
    for (size_t s = 0; s < scanned; ++s) {
      HONE_ASSIGN_OR_RETURN(
          const ValueId joined,
          Joined(std::move(parts[s]), 0, body->output(static_cast<int>(1 + states + s))));
      results.push_back(Item::Tensor(joined));
    }
    return Checked(std::move(results), node_.outputs.size());
  }

  // Joins the outputs of all iterations along a new axis. Without an iteration, the result is
  // empty, and has the shape that the body declares.
  absl::StatusOr<ValueId> Joined(std::vector<ValueId> parts, int64_t axis,
                                 const ::onnx::ValueInfoProto& declared) {
    if (!parts.empty()) {
      HONE_RETURN_IF_ERROR(CheckAxis(axis, Rank(parts[0]) + 1));
      for (const ValueId part : parts) {
        if (TypeOf(part) == TypeOf(parts[0])) continue;
        return view().UnimplementedError(
            absl::StrCat("its output '", declared.name(), "' is ", TypeOf(parts[0]).ToText(),
                         " in one iteration and ", TypeOf(part).ToText(), " in another"));
      }
      return composer_.Stack(std::move(parts), axis < 0 ? axis + Rank(parts[0]) + 1 : axis);
    }
    const auto& tensor = declared.type().tensor_type();
    absl::StatusOr<ir::DType> dtype = ElementType(tensor.elem_type());
    if (!dtype.ok()) {
      return view().UnimplementedError(absl::StrCat(
          "runs no iteration, and its output '", declared.name(), "' ", dtype.status().message()));
    }
    graph::TensorType type{*dtype, {}};
    for (const auto& dimension : tensor.shape().dim()) type.shape.push_back(dimension.dim_value());
    HONE_RETURN_IF_ERROR(CheckAxis(axis, std::ssize(type.shape) + 1));
    type.shape.insert(type.shape.begin() + (axis < 0 ? axis + std::ssize(type.shape) + 1 : axis),
                      0);
    HONE_RETURN_IF_ERROR(CheckType(type));
    return composer_.Constant("none", type, {});
  }

  absl::Status CheckAxis(int64_t axis, int64_t rank) const {
    if (-rank <= axis && axis < rank) return absl::OkStatus();
    return view().InvalidError(absl::StrCat("an axis is ", axis, " for a tensor of rank ", rank));
  }

  const graph::TensorType& TypeOf(ValueId id) const { return builder_.graph().value(id).type; }
  int64_t Rank(ValueId id) const { return std::ssize(TypeOf(id).shape); }

  // A list attribute with a number per scanned tensor, all 0 by default.
  absl::StatusOr<Ints> PerScanned(absl::string_view name, size_t count) const {
    HONE_ASSIGN_OR_RETURN(Ints list, view().IntList(name, Ints(count, 0)));
    if (list.size() == count) return list;
    return view().InvalidError(
        absl::StrCat(name, " has ", list.size(), " numbers instead of ", count));
  }

  // In opset 8, all tensors have a batch as their first dimension, whose samples run one by one.
  absl::StatusOr<Items> Scan() {
    HONE_ASSIGN_OR_RETURN(const ::onnx::GraphProto* const body, Body("body"));
    if (node_.opset >= 9) return ScanOne(*body, node_.inputs);
    if (node_.Has(0)) return view().UnimplementedError("lengths of sequences are not supported");
    int64_t batch = -1;
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const ValueId id, Tensor(node_.inputs[i], "an input"));
      const graph::TensorType& type = TypeOf(id);
      if (type.shape.empty() || (batch >= 0 && type.shape[0] != batch)) {
        return view().InvalidError(
            absl::StrCat("an input is ", type.ToText(), " for a batch of ", batch));
      }
      batch = type.shape[0];
    }
    if (batch < 1) return view().UnimplementedError("an empty batch is not supported");
    std::vector<std::vector<ValueId>> parts;
    for (int64_t b = 0; b < batch; ++b) {
      Items inputs;
      for (size_t i = 1; i < node_.inputs.size(); ++i) {
        HONE_ASSIGN_OR_RETURN(const ValueId part, composer_.At(node_.inputs[i].tensor, 0, b));
        inputs.push_back(Item::Tensor(part));
      }
      HONE_ASSIGN_OR_RETURN(const Items results, ScanOne(*body, inputs));
      parts.resize(results.size());
      for (size_t r = 0; r < results.size(); ++r) {
        HONE_ASSIGN_OR_RETURN(parts[r].emplace_back(),
                              Tensor(results[r], "an output of each part of the batch"));
      }
    }
    Items results;
    for (std::vector<ValueId>& part : parts) {
      HONE_ASSIGN_OR_RETURN(const ValueId stacked, composer_.Stack(std::move(part), 0));
      results.push_back(Item::Tensor(stacked));
    }
    return results;
  }

  absl::StatusOr<Items> ScanOne(const ::onnx::GraphProto& body, const Items& inputs) {
    HONE_ASSIGN_OR_RETURN(const int64_t count, view().Int("num_scan_inputs", 0));
    if (count < 1 || count > std::ssize(inputs) ||
        body.output_size() < std::ssize(inputs) - count) {
      return view().InvalidError(absl::StrCat("scans ", count, " of ", inputs.size(),
                                              " inputs, and its body has ", body.output_size(),
                                              " outputs"));
    }
    const size_t states = inputs.size() - count, scanned = body.output_size() - states;
    HONE_ASSIGN_OR_RETURN(
        const Ints backward_inputs,
        PerScanned(node_.opset < 9 ? "directions" : "scan_input_directions", count));
    HONE_ASSIGN_OR_RETURN(const Ints backward_outputs,
                          PerScanned("scan_output_directions", scanned));
    HONE_ASSIGN_OR_RETURN(Ints input_axes, PerScanned("scan_input_axes", count));
    HONE_ASSIGN_OR_RETURN(const Ints output_axes, PerScanned("scan_output_axes", scanned));
    int64_t steps = -1;
    for (int64_t s = 0; s < count; ++s) {
      HONE_ASSIGN_OR_RETURN(const ValueId id, Tensor(inputs[states + s], "an input"));
      HONE_RETURN_IF_ERROR(CheckAxis(input_axes[s], Rank(id)));
      if (input_axes[s] < 0) input_axes[s] += Rank(id);
      const int64_t extent = TypeOf(id).shape[input_axes[s]];
      if (steps >= 0 && steps != extent) {
        return view().InvalidError(
            absl::StrCat("scans ", steps, " steps of one input and ", extent, " of another"));
      }
      steps = extent;
    }
    std::vector<std::vector<ValueId>> slices;  // of each scanned input
    for (int64_t s = 0; s < count; ++s) {
      HONE_ASSIGN_OR_RETURN(slices.emplace_back(),
                            composer_.Unstack(inputs[states + s].tensor, input_axes[s]));
    }
    Items carried(inputs.begin(), inputs.begin() + static_cast<int64_t>(states));
    std::vector<std::vector<ValueId>> parts(scanned);
    for (int64_t t = 0; t < steps; ++t) {
      Items given = carried;
      for (int64_t s = 0; s < count; ++s) {
        const int64_t at = backward_inputs[s] != 0 ? steps - 1 - t : t;
        given.push_back(Item::Tensor(slices[s][at]));
      }
      HONE_ASSIGN_OR_RETURN(const Items outputs, run_(body, std::move(given)));
      carried.assign(outputs.begin(), outputs.begin() + static_cast<int64_t>(states));
      for (size_t s = 0; s < scanned; ++s) {
        HONE_ASSIGN_OR_RETURN(parts[s].emplace_back(),
                              Tensor(outputs[states + s], "an output of each step"));
      }
    }
    Items results = std::move(carried);
    for (size_t s = 0; s < scanned; ++s) {
      if (backward_outputs[s] != 0) std::reverse(parts[s].begin(), parts[s].end());
      HONE_ASSIGN_OR_RETURN(
          const ValueId joined,
          Joined(std::move(parts[s]), output_axes[s], body.output(static_cast<int>(states + s))));
      results.push_back(Item::Tensor(joined));
    }
    return Checked(std::move(results), node_.outputs.size());
  }

  absl::StatusOr<Items> SequenceMap() {
    HONE_ASSIGN_OR_RETURN(const ::onnx::GraphProto* const body, Body("body"));
    if (node_.inputs.empty() || !node_.inputs[0].sequence) {
      return view().InvalidError("its first input must be a sequence");
    }
    const size_t length = node_.inputs[0].sequence->size();
    std::vector<std::vector<ValueId>> results(body->output_size());
    for (size_t i = 0; i < length; ++i) {
      Items inputs;
      for (const Item& item : node_.inputs) {
        if (item.sequence && item.sequence->size() != length) {
          return view().InvalidError(absl::StrCat("has sequences of ", length, " and ",
                                                  item.sequence->size(), " tensors"));
        }
        inputs.push_back(item.sequence ? Item::Tensor((*item.sequence)[i]) : item);
      }
      HONE_ASSIGN_OR_RETURN(const Items outputs, run_(*body, std::move(inputs)));
      for (size_t o = 0; o < outputs.size(); ++o) {
        HONE_ASSIGN_OR_RETURN(results[o].emplace_back(), Tensor(outputs[o], "an output"));
      }
    }
    Items sequences;
    for (std::vector<ValueId>& result : results) {
      sequences.push_back(Item::Sequence(std::move(result)));
    }
    return Checked(std::move(sequences), node_.outputs.size());
  }

  const ItemNode& node_;
  GraphBuilder& builder_;
  const RunBody& run_;
  Composer composer_;
};

}  // namespace

bool IsControlFlow(absl::string_view op) {
  return op == "If" || op == "Loop" || op == "Scan" || op == "SequenceMap";
}

absl::StatusOr<Items> AddControlFlow(const ItemNode& node, GraphBuilder& builder,
                                     const RunBody& run) {
  return Flow(node, builder, run).Add();
}

}  // namespace hone::onnx

#include "client/network/onnx/body/body.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/attribute.h"
#include "client/network/onnx/body/control_flow.h"
#include "client/network/onnx/body/sequence.h"
#include "client/network/onnx/compose/composition.h"
#include "client/network/onnx/opset.h"
#include "client/network/onnx/replaced.h"
#include "client/network/onnx/supported_operators.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;

// Functions may call each other, and a small file could otherwise call them without end.
constexpr int kMaxDepth = 64;
// Of all bodies together, each time that one runs. Every one of these nodes is checked, and folded
// or written as a workload, which takes up to a millisecond; a search for a network of so many
// kernels would not be practical either.
constexpr int64_t kMaxInlinedNodes = int64_t{1} << 15;
constexpr int64_t kMaxInlinedValues = int64_t{1} << 20;

// An error in a body already names a node of it.
absl::Status Named(const ::onnx::NodeProto& node, const absl::Status& status) {
  if (absl::StartsWith(status.message(), "node '")) return status;
  return absl::Status(status.code(), absl::StrCat(Describe(node), ": ", status.message()));
}

}  // namespace

bool Scope::Knows(const std::string& name) const {
  return items.contains(name) || initializers.contains(name) ||
         (outer != nullptr && outer->Knows(name));
}

absl::StatusOr<Item> BodyImporter::ItemOf(Scope& scope, const std::string& name) {
  if (name.empty()) return Item();
  if (const auto known = scope.items.find(name); known != scope.items.end()) return known->second;
  const auto initializer = scope.initializers.find(name);
  if (initializer == scope.initializers.end()) {
    if (scope.outer != nullptr) return ItemOf(*scope.outer, name);
    return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' is read too early"));
  }
  if (scope.movable != nullptr) {
    HONE_ASSIGN_OR_RETURN(
        Tensor tensor,
        ReadTensor(std::move(*scope.movable->mutable_initializer(initializer->second)), files_,
                   (*scope.raw_data)[initializer->second]));
    return scope.items[name] = Item::Tensor(
               builder_.graph().AddConstant(name, std::move(tensor.type), std::move(tensor.data)));
  }
  const auto [constant, is_new] = constants_.emplace(std::pair(&scope.graph, name), kNoValue);
  if (is_new) {
    HONE_ASSIGN_OR_RETURN(Tensor tensor,
                          ReadTensor(scope.graph.initializer(initializer->second), files_));
    constant->second = builder_.graph().AddConstant(builder_.FreshTensorName(name),
                                                    std::move(tensor.type), std::move(tensor.data));
  }
  return scope.items[name] = Item::Tensor(constant->second);
}

absl::Status BodyImporter::Prepare(Scope& scope) {
  for (int i = 0; i < scope.graph.initializer_size(); ++i) {
    const std::string& name = scope.graph.initializer(i).name();
    if (name.empty()) return absl::InvalidArgumentError("an initializer has no name");
    if (scope.initializers.emplace(name, i).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' is defined twice"));
  }
  if (const auto known = orders_.find(&scope.graph); known != orders_.end()) {
    scope.order = &known->second;
    return absl::OkStatus();
  }
  std::set<std::string> given;
  for (const auto& [name, unused] : scope.initializers) given.insert(name);
  for (const auto& input : scope.graph.input()) given.insert(input.name());
  HONE_ASSIGN_OR_RETURN(RunningOrder order,
                        FindRunningOrder(scope.graph, given, [&](const std::string& name) {
                          return scope.outer != nullptr && scope.outer->Knows(name);
                        }));
  const auto is_function = [&](const ::onnx::NodeProto& node) { return functions_.Has(node); };
  HONE_RETURN_IF_ERROR(CheckOperators(scope.graph, order.nodes, scope.opset, is_function));
  scope.order = &(orders_[&scope.graph] = std::move(order));
  return absl::OkStatus();
}

absl::Status BodyImporter::AddNodes(Scope& scope) {
  for (const int n : scope.order->nodes) {
    HONE_RETURN_IF_ERROR(AddNode(scope, scope.graph.node(n)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Item>> BodyImporter::Run(const ::onnx::GraphProto& body,
                                                    std::vector<Item> inputs, Scope* outer,
                                                    int64_t opset) {
  if (depth_ >= kMaxDepth) {
    return absl::UnimplementedError(
        absl::StrCat("bodies of nodes and functions are nested more than ", kMaxDepth, " deep"));
  }
  if (static_cast<int>(inputs.size()) > body.input_size()) {
    return absl::InvalidArgumentError(absl::StrCat("its body '", body.name(), "' has ",
                                                   body.input_size(), " inputs instead of ",
                                                   inputs.size()));
  }
  inlined_values_ += body.input_size() + body.output_size() + body.initializer_size();
  if (inlined_values_ > kMaxInlinedValues) {
    return absl::UnimplementedError(absl::StrCat(
        "the bodies of loops, branches and functions have more than ", kMaxInlinedValues,
        " inputs, outputs and initializers in all of their runs, which is the limit"));
  }
  Scope scope{.outer = outer, .graph = body, .opset = opset};
  HONE_RETURN_IF_ERROR(Prepare(scope));
  for (int i = 0; i < body.input_size(); ++i) {
    const std::string& name = body.input(i).name();
    if (i < static_cast<int>(inputs.size())) {
      scope.items[name] = std::move(inputs[i]);
    } else if (!scope.initializers.contains(name)) {
      scope.items[name] = Item();  // an input that is absent
    }
  }
  inlined_nodes_ += std::max<int64_t>(1, static_cast<int64_t>(scope.order->nodes.size()));
  if (inlined_nodes_ > kMaxInlinedNodes) {
    return absl::UnimplementedError(absl::StrCat("loops, branches and functions add more than ",
                                                 kMaxInlinedNodes, " nodes, which is the limit"));
  }
  ++depth_;
  const absl::Cleanup leave = [this] { --depth_; };
  HONE_RETURN_IF_ERROR(AddNodes(scope));
  std::vector<Item> outputs;
  for (const auto& output : body.output()) {
    HONE_ASSIGN_OR_RETURN(outputs.emplace_back(), ItemOf(scope, output.name()));
  }
  return outputs;
}

absl::Status BodyImporter::AddNode(Scope& scope, const ::onnx::NodeProto& proto) {
  ItemNode node{.opset = IsOwnDomain(proto.domain()) ? scope.opset : 1};
  node.node.name = builder_.FreshNodeName(proto.name().empty() ? proto.op_type() : proto.name());
  node.node.op = OperatorName(proto);
  for (const std::string& name : proto.input()) {
    HONE_ASSIGN_OR_RETURN(node.inputs.emplace_back(), ItemOf(scope, name));
  }
  node.outputs.assign(proto.output().begin(), proto.output().end());
  while (!node.outputs.empty() && node.outputs.back().empty()) node.outputs.pop_back();
  for (std::string& name : node.outputs) {
    if (!scope.order->read.contains(name)) name.clear();
  }

  std::vector<Item> results;
  if (functions_.Has(proto)) {
    HONE_ASSIGN_OR_RETURN(const Functions::Body body, functions_.BodyFor(proto, scope.opset));
    if (body.opset < 1 || body.opset > kNewestOpset) {
      return absl::UnimplementedError(absl::StrCat(Describe(proto), ": the function has opset ",
                                                   body.opset, "; the newest that is supported is ",
                                                   kNewestOpset));
    }
    auto called = Run(*body.graph, node.inputs, nullptr, body.opset);
    if (!called.ok()) return Named(proto, called.status());
    results = *std::move(called);
  } else if (const auto known = constant_nodes_.find(&proto); known != constant_nodes_.end()) {
    results = known->second;
  } else {
    for (std::string& name : UnknownAttributes(proto, scope.opset)) {
      unknown_attributes_[{node.node.op, std::move(name)}].push_back(node.node.name);
    }
    absl::StatusOr<Attributes> attributes = ReadAttributes(proto, files_);
    if (!attributes.ok()) return Named(proto, attributes.status());
    node.node.attributes = std::move(attributes->plain);
    node.bodies = std::move(attributes->graphs);
    if (IsControlFlow(node.node.op)) {
      const RunBody run = [&](const ::onnx::GraphProto& body, std::vector<Item> inputs) {
        auto outputs = Run(body, std::move(inputs), &scope, scope.opset);
        if (!outputs.ok()) outputs = Named(proto, outputs.status());
        return outputs;
      };
      HONE_ASSIGN_OR_RETURN(results, AddControlFlow(node, builder_, run));
    } else if (IsOnItems(node)) {
      HONE_ASSIGN_OR_RETURN(results, AddOnItems(node, builder_));
    } else {
      HONE_ASSIGN_OR_RETURN(results, AddPlain(scope, proto, std::move(node), attributes->tensors));
    }
    if (scope.movable == nullptr && proto.op_type() == "Constant")
      constant_nodes_[&proto] = results;
  }
  for (int i = 0; i < proto.output_size() && i < static_cast<int>(results.size()); ++i) {
    if (!proto.output(i).empty() && scope.order->read.contains(proto.output(i))) {
      scope.items[proto.output(i)] = results[i];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Item>> BodyImporter::AddPlain(
    Scope& scope, const ::onnx::NodeProto& proto, ItemNode item_node,
    const std::map<std::string, Tensor>& tensors) {
  VersionedNode versioned{.node = std::move(item_node.node),
                          .outputs = std::move(item_node.outputs),
                          .opset = item_node.opset,
                          .all_outputs = proto.output_size()};
  graph::Node& node = versioned.node;
  const graph::NodeView view(builder_.graph(), node);
  if (!item_node.bodies.empty()) {
    return view.UnimplementedError(absl::StrCat("attribute '", item_node.bodies.begin()->first,
                                                "' is a graph, which is not supported"));
  }
  for (size_t i = 0; i < item_node.inputs.size(); ++i) {
    const Item& input = item_node.inputs[i];
    if (!input.IsTensor()) {
      return view.UnimplementedError(absl::StrCat("input ", i, " ('", proto.input(i), "') is ",
                                                  input.sequence ? "a sequence" : "empty",
                                                  " and not a tensor"));
    }
    node.inputs.push_back(input.tensor);
  }
  while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
  if (scope.movable == nullptr) {  // the names of a body occur each time that it runs
    for (std::string& name : versioned.outputs) {
      if (!name.empty()) name = builder_.FreshTensorName(name);
    }
  }
  std::vector<ValueId> values;
  if (const Composition* const composition = FindComposition(view)) {
    HONE_ASSIGN_OR_RETURN(values, Compose(*composition, versioned, builder_));
  } else if (IsReplaced(node.op)) {
    HONE_ASSIGN_OR_RETURN(values, Replace(versioned, tensors, builder_));
  } else {
    if (!tensors.empty()) {
      return view.UnimplementedError(absl::StrCat("attribute '", tensors.begin()->first,
                                                  "' is a tensor, which is not supported"));
    }
    HONE_RETURN_IF_ERROR(ConvertToNewest(versioned, builder_));
    HONE_ASSIGN_OR_RETURN(values, builder_.Add(std::move(node), versioned.outputs));
  }
  std::vector<Item> results;
  for (const ValueId id : values) results.push_back(Item::Tensor(id));
  return results;
}

}  // namespace hone::onnx

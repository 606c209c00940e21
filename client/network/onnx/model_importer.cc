#include "client/network/onnx/model_importer.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/attribute.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/input_types.h"
#include "client/network/onnx/opset.h"
#include "client/network/onnx/prune.h"
#include "client/network/onnx/replaced.h"
#include "client/network/onnx/running_order.h"
#include "client/network/onnx/supported_operators.h"
#include "client/network/onnx/tensor_proto.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;

// Checks the parts of a model other than its nodes. Returns the opset.
absl::StatusOr<int64_t> CheckModel(const ::onnx::ModelProto& model) {
  if (!model.has_graph()) return absl::InvalidArgumentError("this is not an ONNX model: no graph");
  if (model.functions_size() > 0) {
    return absl::UnimplementedError(absl::StrCat(
        "the model has functions, which are not supported: ", model.functions(0).name()));
  }
  if (model.training_info_size() > 0) {
    return absl::UnimplementedError("the model has training information, which is not supported");
  }
  const ::onnx::GraphProto& graph = model.graph();
  if (graph.sparse_initializer_size() > 0) {
    return absl::UnimplementedError(absl::StrCat("tensor '",
                                                 graph.sparse_initializer(0).values().name(),
                                                 "' is sparse, which is not supported"));
  }
  if (graph.output_size() == 0) return absl::InvalidArgumentError("the model has no outputs");
  for (const auto& opset : model.opset_import()) {
    if (!opset.domain().empty() && opset.domain() != "ai.onnx") continue;
    if (1 <= opset.version() && opset.version() <= kNewestOpset) return opset.version();
    return absl::UnimplementedError(absl::StrCat("the model has opset ", opset.version(),
                                                 "; the newest that is supported is ",
                                                 kNewestOpset));
  }
  return absl::InvalidArgumentError("the model does not say which opset it uses");
}

std::set<std::string> TensorNames(const ::onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& initializer : graph.initializer()) names.insert(initializer.name());
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

class ModelImporter {
 public:
  ModelImporter(::onnx::GraphProto& model, int64_t opset,
                const std::vector<std::optional<graph::ConstantData>>& raw_data,
                ExternalData& files, const ImportOptions& options)
      : model_(model),
        opset_(opset),
        raw_data_(raw_data),
        files_(files),
        options_(options),
        builder_(TensorNames(model)) {}

  absl::StatusOr<graph::Graph> Run() {
    builder_.graph().name = model_.name();
    HONE_RETURN_IF_ERROR(FindInitializers());
    std::set<std::string> given;
    for (const auto& [name, unused] : initializers_) given.insert(name);
    for (const auto& input : model_.input()) given.insert(input.name());
    HONE_ASSIGN_OR_RETURN(const std::vector<int> order, RunningOrder(model_, given));
    HONE_RETURN_IF_ERROR(CheckOperators(model_, order, opset_));
    HONE_RETURN_IF_ERROR(AddInputs());
    for (const int n : order)
      read_.insert(model_.node(n).input().begin(), model_.node(n).input().end());
    for (const auto& output : model_.output()) read_.insert(output.name());
    for (const int n : order) HONE_RETURN_IF_ERROR(AddNode(model_.node(n)));
    HONE_RETURN_IF_ERROR(SetOutputs());
    graph::Graph graph = std::move(builder_.graph());
    RemoveUnusedConstants(graph);
    HONE_RETURN_IF_ERROR(graph.Verify());
    WarnOfAttributes();
    return graph;
  }

 private:
  absl::Status FindInitializers() {
    for (int i = 0; i < model_.initializer_size(); ++i) {
      const std::string& name = model_.initializer(i).name();
      if (name.empty()) return absl::InvalidArgumentError("an initializer has no name");
      if (initializers_.emplace(name, i).second) continue;
      return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' is defined twice"));
    }
    return absl::OkStatus();
  }

  // An initializer may also be listed as an input, as its default value. It is a constant here.
  absl::Status AddInputs() {
    std::vector<const ::onnx::ValueInfoProto*> inputs;
    std::set<std::string> names;
    for (const auto& input : model_.input()) {
      const std::string& name = input.name();
      if (name.empty()) return absl::InvalidArgumentError("an input has no name");
      if (!names.insert(name).second) {
        return absl::InvalidArgumentError(absl::StrCat("input '", name, "' is defined twice"));
      }
      if (initializers_.contains(name)) continue;
      if (const auto constant = options_.constants.find(name);
          constant != options_.constants.end()) {
        const Tensor& tensor = constant->second;
        values_[name] = builder_.graph().AddConstant(name, tensor.type, tensor.data);
      } else {
        inputs.push_back(&input);
      }
    }
    for (const auto& [name, unused] : options_.constants) {
      if (values_.contains(name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("there is no input '", name, "' that could be constant"));
    }
    HONE_ASSIGN_OR_RETURN(std::vector<graph::TensorType> types,
                          InputTypes(inputs, options_.shapes));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = inputs[i]->name();
      values_[name] = builder_.graph().AddValue(name, std::move(types[i]));
      builder_.graph().inputs.push_back(values_[name]);
    }
    return absl::OkStatus();
  }

  // Returns the value of a tensor that is known. Initializers become constants when they are first
  // read.
  absl::StatusOr<ValueId> ValueOf(const std::string& name) {
    if (name.empty()) return kNoValue;
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    const int initializer = initializers_.at(name);
    HONE_ASSIGN_OR_RETURN(Tensor tensor,
                          ReadTensor(std::move(*model_.mutable_initializer(initializer)), files_,
                                     raw_data_[initializer]));
    return values_[name] =
               builder_.graph().AddConstant(name, std::move(tensor.type), std::move(tensor.data));
  }

  absl::Status AddNode(const ::onnx::NodeProto& proto) {
    VersionedNode versioned{.outputs = {proto.output().begin(), proto.output().end()},
                            .opset = opset_,
                            .all_outputs = proto.output_size()};
    graph::Node& node = versioned.node;
    node.name = builder_.FreshNodeName(proto.name().empty() ? proto.op_type() : proto.name());
    node.op = proto.op_type();
    for (const std::string& name : proto.input()) {
      HONE_ASSIGN_OR_RETURN(const ValueId id, ValueOf(name));
      node.inputs.push_back(id);
    }
    while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    while (!versioned.outputs.empty() && versioned.outputs.back().empty()) {
      versioned.outputs.pop_back();
    }
    for (std::string& name : versioned.outputs) {
      if (!read_.contains(name)) name.clear();
    }
    for (std::string& name : UnknownAttributes(proto, opset_)) {
      unknown_attributes_[{proto.op_type(), std::move(name)}].push_back(node.name);
    }
    absl::StatusOr<Attributes> attributes = ReadAttributes(proto, files_);
    if (!attributes.ok()) {
      return absl::Status(attributes.status().code(),
                          absl::StrCat(Describe(proto), ": ", attributes.status().message()));
    }
    node.attributes = std::move(attributes->plain);

    std::vector<ValueId> results;
    if (IsReplaced(node.op)) {
      HONE_ASSIGN_OR_RETURN(results, Replace(versioned, attributes->tensors, builder_));
    } else {
      if (!attributes->tensors.empty()) {
        return graph::NodeView(builder_.graph(), node)
            .UnimplementedError(absl::StrCat("attribute '", attributes->tensors.begin()->first,
                                             "' is a tensor, which is not supported"));
      }
      HONE_RETURN_IF_ERROR(ConvertToNewest(versioned, builder_));
      HONE_ASSIGN_OR_RETURN(results, builder_.Add(std::move(node), versioned.outputs));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] != kNoValue) values_[versioned.outputs[i]] = results[i];
    }
    return absl::OkStatus();
  }

  absl::Status SetOutputs() {
    graph::Graph& graph = builder_.graph();
    std::set<ValueId> outputs;
    for (const auto& output : model_.output()) {
      HONE_ASSIGN_OR_RETURN(ValueId id, ValueOf(output.name()));
      if (id == kNoValue) return absl::InvalidArgumentError("an output has no name");
      HONE_ASSIGN_OR_RETURN(id, Named(id, output.name()));
      WarnOfType(output, graph.value(id).type);
      if (!outputs.insert(id).second) {
        HONE_ASSIGN_OR_RETURN(id, Copy(id, builder_.FreshTensorName(output.name())));
        Warn(absl::StrCat("tensor '", output.name(), "' is an output twice; the second one is '",
                          graph.value(id).name, "'"));
        outputs.insert(id);
      }
      graph.outputs.push_back(id);
    }
    return absl::OkStatus();
  }

  void Warn(std::string text) {
    if (options_.warnings != nullptr) options_.warnings->push_back(std::move(text));
  }

  void WarnOfAttributes() {
    for (const auto& [attribute, nodes] : unknown_attributes_) {
      Warn(absl::StrCat(
          attribute.first, " has no attribute '", attribute.second, "' in opset ", opset_,
          ", but node '", nodes[0], "'",
          nodes.size() == 1 ? " has it" : absl::StrCat(" and ", nodes.size() - 1, " more have it"),
          "; it may be ignored"));
    }
  }

  // Warns if an output is not of the type that the model declares. Open dimensions fit all extents.
  void WarnOfType(const ::onnx::ValueInfoProto& output, const graph::TensorType& type) {
    if (!output.type().has_tensor_type()) return;
    const auto& declared = output.type().tensor_type();
    const absl::StatusOr<ir::DType> dtype = ElementType(declared.elem_type());
    bool fits = declared.elem_type() == 0 || (dtype.ok() && *dtype == type.dtype);
    if (declared.has_shape()) {
      fits &= declared.shape().dim_size() == static_cast<int>(type.shape.size());
      for (int d = 0; fits && d < declared.shape().dim_size(); ++d) {
        const int64_t extent = declared.shape().dim(d).dim_value();
        fits = extent <= 0 || extent == type.shape[d];
      }
    }
    if (fits) return;
    Warn(absl::StrCat("output '", output.name(), "' is ", type.ToText(),
                      ", but the model declares ",
                      dtype.ok() ? ir::DTypeName(*dtype) : "another type",
                      declared.has_shape() ? ShapeText(declared.shape()) : ""));
  }

  // Returns a value with the name of an output. If no node remains of the operator that computes
  // the output, `id` is an earlier value with another name.
  absl::StatusOr<ValueId> Named(ValueId id, const std::string& name) {
    graph::Graph& graph = builder_.graph();
    graph::Value& value = graph.values[id];
    if (value.name == name) return id;
    const auto is_listed = [id](const std::vector<ValueId>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    if (value.constant || is_listed(graph.inputs) || is_listed(graph.outputs)) {
      return Copy(id, name);
    }
    value.name = name;
    return id;
  }

  // Adds a value with the elements of another one.
  absl::StatusOr<ValueId> Copy(ValueId id, const std::string& name) {
    graph::Graph& graph = builder_.graph();
    const graph::Value value = graph.value(id);
    if (value.constant) return graph.AddConstant(name, value.type, *value.constant);
    HONE_RETURN_IF_ERROR(
        graph.AddNode({builder_.FreshNodeName(name), "Identity", {id}, {}, {}}, {name}));
    return graph.nodes.back().outputs[0];
  }

  ::onnx::GraphProto& model_;
  const int64_t opset_;
  const std::vector<std::optional<graph::ConstantData>>& raw_data_;
  ExternalData& files_;
  const ImportOptions& options_;
  GraphBuilder builder_;
  std::map<std::string, int> initializers_;
  std::set<std::string> read_;             // the tensors that needed nodes and the outputs read
  std::map<std::string, ValueId> values_;  // the tensors that are known so far
  // Attributes that their operators do not have, with the nodes that have them.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> unknown_attributes_;
};

}  // namespace

absl::StatusOr<graph::Graph> ImportModel(
    ::onnx::ModelProto& model, const std::vector<std::optional<graph::ConstantData>>& raw_data,
    ExternalData& files, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const int64_t opset, CheckModel(model));
  return ModelImporter(*model.mutable_graph(), opset, raw_data, files, options).Run();
}

}  // namespace hone::onnx

#include "client/network/onnx/import.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/attribute.h"
#include "client/network/onnx/composite.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/input_types.h"
#include "client/network/onnx/model_file.h"
#include "client/network/onnx/opset.h"
#include "client/network/onnx/replaced.h"
#include "client/network/onnx/supported_operators.h"
#include "client/network/onnx/tensor_proto.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {
namespace {

// "node 'conv1' (Conv)".
std::string Describe(const ::onnx::NodeProto& node);

class Orderer {
 public:
  Orderer(const ::onnx::GraphProto& graph, const std::set<std::string>& given)
      : graph_(graph), given_(given) {}

  absl::StatusOr<std::vector<int>> Run() {
    HONE_RETURN_IF_ERROR(FindProducers());
    HONE_RETURN_IF_ERROR(FindNeeded());
    return Order();
  }

 private:
  absl::Status FindProducers() {
    for (int n = 0; n < graph_.node_size(); ++n) {
      for (const std::string& name : graph_.node(n).output()) {
        if (name.empty()) continue;
        if (!given_.contains(name) && producers_.emplace(name, n).second) continue;
        return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "', which ",
                                                       Describe(graph_.node(n)),
                                                       " computes, is defined twice"));
      }
    }
    return absl::OkStatus();
  }

  // Marks the node that computes a tensor, if it is not given.
  absl::Status Need(const std::string& name, absl::string_view reader) {
    if (given_.contains(name)) return absl::OkStatus();
    const auto producer = producers_.find(name);
    if (producer == producers_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", name, "', which ", reader, ", is not computed by any node"));
    }
    if (!needed_[producer->second]) open_.push_back(producer->second);
    needed_[producer->second] = true;
    return absl::OkStatus();
  }

  absl::Status FindNeeded() {
    needed_.resize(graph_.node_size());
    for (const auto& output : graph_.output()) {
      HONE_RETURN_IF_ERROR(Need(output.name(), "the model outputs"));
    }
    while (!open_.empty()) {
      const ::onnx::NodeProto& node = graph_.node(open_.back());
      open_.pop_back();
      for (const std::string& name : node.input()) {
        if (name.empty()) continue;
        HONE_RETURN_IF_ERROR(Need(name, absl::StrCat(Describe(node), " reads")));
      }
    }
    return absl::OkStatus();
  }

  // Always takes the first node of the model that can run.
  absl::StatusOr<std::vector<int>> Order() {
    std::vector<int> waits_for(graph_.node_size());
    std::vector<std::vector<int>> readers(graph_.node_size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    int count = 0;
    for (int n = 0; n < graph_.node_size(); ++n) {
      if (!needed_[n]) continue;
      ++count;
      for (const std::string& name : graph_.node(n).input()) {
        const auto producer = producers_.find(name);
        if (name.empty() || producer == producers_.end()) continue;
        readers[producer->second].push_back(n);
        ++waits_for[n];
      }
      if (waits_for[n] == 0) ready.push(n);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const int reader : readers[order.back()]) {
        if (--waits_for[reader] == 0) ready.push(reader);
      }
    }
    if (static_cast<int>(order.size()) == count) return order;
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(graph_.node(NodeOfCycle(waits_for))), " depends on its own result"));
  }

  // Goes back from a node that never became ready. After as many steps as there are nodes, it is in
  // a cycle.
  int NodeOfCycle(const std::vector<int>& waits_for) const {
    int node = 0;
    while (waits_for[node] == 0) ++node;
    for (int step = 0; step < graph_.node_size(); ++step) {
      for (const std::string& name : graph_.node(node).input()) {
        const auto producer = producers_.find(name);
        if (producer == producers_.end() || waits_for[producer->second] == 0) continue;
        node = producer->second;
        break;
      }
    }
    return node;
  }

  const ::onnx::GraphProto& graph_;
  const std::set<std::string>& given_;
  std::map<std::string, int> producers_;
  std::vector<bool> needed_;
  std::vector<int> open_;  // needed nodes whose inputs are not marked yet
};

std::string Describe(const ::onnx::NodeProto& node) {
  return absl::StrCat("node '", node.name(), "' (", OperatorName(node), ")");
}

// Returns the nodes that the model's outputs need, in topological order: the order of the model if
// it is topological. `given`: the tensors that are known, which are inputs and initializers.
//
// InvalidArgument, with the names of nodes and tensors: a tensor is computed twice, or read or
// output but never computed; the nodes form a cycle.
absl::StatusOr<std::vector<int>> RunningOrder(const ::onnx::GraphProto& graph,
                                              const std::set<std::string>& given) {
  return Orderer(graph, given).Run();
}

using graph::kNoValue;
using graph::ValueId;

// Removes the nodes whose results nothing needs, and the constants that nothing reads. Renumbers
// the other values, so a ValueId that is kept elsewhere becomes invalid.
void RemoveUnused(graph::Graph& graph) {
  std::vector<bool> used(graph.values.size());
  const auto use = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (id != kNoValue) used[id] = true;
    }
  };
  use(graph.outputs);
  std::vector<graph::Node> nodes;  // the needed ones, backward
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_needed = std::any_of(node->outputs.begin(), node->outputs.end(),
                                       [&](ValueId id) { return id != kNoValue && used[id]; });
    if (!is_needed) continue;
    use(node->inputs);
    use(node->outputs);
    nodes.push_back(std::move(*node));
  }
  graph.nodes.assign(std::make_move_iterator(nodes.rbegin()),
                     std::make_move_iterator(nodes.rend()));
  use(graph.inputs);

  std::vector<ValueId> moved(graph.values.size(), kNoValue);
  std::vector<graph::Value> kept;
  for (size_t id = 0; id < used.size(); ++id) {
    if (!used[id]) continue;
    moved[id] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(graph.values[id]));
  }
  graph.values = std::move(kept);
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (id != kNoValue) id = moved[id];
    }
  };
  for (graph::Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  renumber(graph.inputs);
  renumber(graph.outputs);
}

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
  std::optional<int64_t> own;
  for (const auto& opset : model.opset_import()) {
    const std::optional<int64_t> newest = NewestVersion(opset.domain());
    if (!newest) continue;  // operators of other domains are refused one by one
    const bool is_own = IsOwnDomain(opset.domain());
    if (opset.version() < 1 || opset.version() > *newest) {
      return absl::UnimplementedError(absl::StrCat("the model has opset ", opset.version(),
                                                   is_own ? "" : " of " + opset.domain(),
                                                   "; the newest that is supported is ", *newest));
    }
    if (is_own) own = opset.version();
  }
  if (own) return *own;
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
    RemoveUnused(graph);
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
    std::vector<std::string> assumed;
    HONE_ASSIGN_OR_RETURN(std::vector<graph::TensorType> types,
                          InputTypes(inputs, options_.shapes, assumed));
    for (std::string& text : assumed) Warn(std::move(text));
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
                            .opset = IsOwnDomain(proto.domain()) ? opset_ : 1,
                            .all_outputs = proto.output_size()};
    graph::Node& node = versioned.node;
    node.name = builder_.FreshNodeName(proto.name().empty() ? proto.op_type() : proto.name());
    node.op = OperatorName(proto);
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
      unknown_attributes_[{node.op, std::move(name)}].push_back(node.name);
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
      if (const Composite* const composite = FindComposite(node.op)) {
        HONE_ASSIGN_OR_RETURN(results, Compose(*composite, versioned, builder_));
      } else {
        HONE_RETURN_IF_ERROR(ConvertToNewest(versioned, builder_));
        HONE_ASSIGN_OR_RETURN(results, builder_.Add(std::move(node), versioned.outputs));
      }
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

// Converts a parsed model. `raw_data`: the raw data of each initializer, if it has any; the graph
// shares it. Errors are those of ImportOnnx.
absl::StatusOr<graph::Graph> ImportModel(
    ::onnx::ModelProto& model, const std::vector<std::optional<graph::ConstantData>>& raw_data,
    ExternalData& files, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const int64_t opset, CheckModel(model));
  return ModelImporter(*model.mutable_graph(), opset, raw_data, files, options).Run();
}

// The graph shares the bytes, which belong to `owner`.
absl::StatusOr<graph::Graph> Import(const std::shared_ptr<const void>& owner,
                                    absl::string_view bytes, const std::string& folder,
                                    const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(ModelFile file, ParseModelFile(bytes));
  std::vector<std::optional<graph::ConstantData>> raw_data;
  for (const auto& part : file.raw_data) {
    raw_data.push_back(part ? std::make_optional(graph::ConstantData(owner, *part)) : std::nullopt);
  }
  ExternalData files(folder);
  return ImportModel(file.model, raw_data, files, options);
}

}  // namespace

absl::StatusOr<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  absl::StatusOr<graph::Graph> graph =
      Import(file, file->bytes(), folder.empty() ? "." : folder, options);
  if (graph.ok()) return graph;
  return absl::Status(graph.status().code(), absl::StrCat(path, ": ", graph.status().message()));
}

absl::StatusOr<graph::Graph> ImportOnnxBytes(absl::string_view bytes, const std::string& folder,
                                             const ImportOptions& options) {
  const auto copy = std::make_shared<const std::string>(bytes);
  return Import(copy, *copy, folder, options);
}

absl::StatusOr<std::vector<DeclaredInput>> DeclaredInputs(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const absl::StatusOr<ModelFile> model = ParseModelFile(file->bytes());
  if (!model.ok()) {
    return absl::Status(model.status().code(), absl::StrCat(path, ": ", model.status().message()));
  }
  const ::onnx::GraphProto& graph = model->model.graph();
  std::set<std::string> initializers;
  for (const ::onnx::TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::vector<DeclaredInput> inputs;
  for (const ::onnx::ValueInfoProto& input : graph.input()) {
    if (initializers.contains(input.name())) continue;
    const auto& tensor = input.type().tensor_type();
    const absl::StatusOr<ir::DType> dtype = ElementType(tensor.elem_type());
    DeclaredInput& declared = inputs.emplace_back(DeclaredInput{
        .name = input.name(), .dtype = dtype.ok() ? std::string(ir::DTypeName(*dtype)) : ""});
    if (!tensor.has_shape()) continue;
    declared.shape.emplace();
    for (const auto& dimension : tensor.shape().dim()) {
      if (dimension.has_dim_value() && dimension.dim_value() >= 0) {
        declared.shape->emplace_back(int64_t{dimension.dim_value()});
      } else {
        declared.shape->emplace_back(dimension.dim_param());
      }
    }
  }
  return inputs;
}

absl::StatusOr<Digest> DigestOfModel(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  HONE_ASSIGN_OR_RETURN(const ModelFile model, ParseModelFile(file->bytes()));
  std::set<std::string> locations;
  for (const ::onnx::TensorProto& tensor : model.model.graph().initializer()) {
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") locations.insert(entry.value());
    }
  }
  DigestBuilder builder;
  builder.Add(DigestOf(file->bytes()));
  for (const std::string& location : locations) {
    const std::filesystem::path beside = std::filesystem::path(path).parent_path() / location;
    HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> weights,
                          MappedFile::Open(beside.string()));
    builder.Add(location).Add(DigestOf(weights->bytes()));
  }
  return builder.Finish();
}

}  // namespace hone::onnx

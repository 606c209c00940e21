#include "client/network/onnx/import.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/body/body.h"
#include "client/network/onnx/body/function.h"
#include "client/network/onnx/body/item.h"
#include "client/network/onnx/external_files.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/import_model.h"
#include "client/network/onnx/input_types.h"
#include "client/network/onnx/model_file.h"
#include "client/network/onnx/opset.h"
#include "client/network/onnx/supported_operators.h"
#include "client/network/onnx/tensor_proto.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;

// Removes the nodes that no output needs, which stand for unused results of loops or of composed
// operators, and the constants that no node reads. Renumbers the other values, so a ValueId that is
// kept elsewhere becomes invalid.
void RemoveUnused(graph::Graph& graph) {
  std::vector<bool> used(graph.values.size());
  for (const ValueId id : graph.outputs) used[id] = true;
  std::vector<graph::Node> needed;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_needed = std::any_of(node->outputs.begin(), node->outputs.end(),
                                       [&](ValueId id) { return id != kNoValue && used[id]; });
    if (!is_needed) continue;
    for (const std::vector<ValueId>& ids : {node->inputs, node->outputs}) {
      for (const ValueId id : ids) {
        if (id != kNoValue) used[id] = true;
      }
    }
    needed.push_back(std::move(*node));
  }
  graph.nodes.assign(std::make_move_iterator(needed.rbegin()),
                     std::make_move_iterator(needed.rend()));
  for (const ValueId id : graph.inputs) used[id] = true;

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

// Checks the parts of a model other than its nodes. Returns the opset.
absl::StatusOr<int64_t> CheckModel(const ::onnx::ModelProto& model) {
  if (!model.has_graph()) return absl::InvalidArgumentError("this is not an ONNX model: no graph");
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
  ModelImporter(::onnx::ModelProto& model, int64_t opset,
                const std::vector<std::optional<graph::ConstantData>>& raw_data,
                ExternalData& files, const ImportOptions& options)
      : model_(*model.mutable_graph()),
        opset_(opset),
        options_(options),
        functions_(model),
        builder_(TensorNames(model_)),
        bodies_(builder_, files, functions_),
        scope_{.outer = nullptr,
               .graph = model_,
               .opset = opset,
               .movable = &model_,
               .raw_data = &raw_data} {}

  absl::StatusOr<graph::Graph> Run() {
    builder_.graph().name = model_.name();
    HONE_RETURN_IF_ERROR(bodies_.Prepare(scope_));
    HONE_RETURN_IF_ERROR(AddInputs());
    HONE_RETURN_IF_ERROR(bodies_.AddNodes(scope_));
    HONE_RETURN_IF_ERROR(SetOutputs());
    graph::Graph graph = std::move(builder_.graph());
    RemoveUnused(graph);
    HONE_RETURN_IF_ERROR(graph.Verify());
    WarnOfAttributes();
    return graph;
  }

 private:
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
      if (scope_.initializers.contains(name)) continue;
      if (const auto constant = options_.constants.find(name);
          constant != options_.constants.end()) {
        const Tensor& tensor = constant->second;
        scope_.items[name] =
            Item::Tensor(builder_.graph().AddConstant(name, tensor.type, tensor.data));
      } else {
        inputs.push_back(&input);
      }
    }
    for (const auto& [name, unused] : options_.constants) {
      if (scope_.items.contains(name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("there is no input '", name, "' that could be constant"));
    }
    std::vector<std::string> assumed;
    HONE_ASSIGN_OR_RETURN(std::vector<graph::TensorType> types,
                          InputTypes(inputs, options_.shapes, assumed));
    for (std::string& text : assumed) Warn(std::move(text));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = inputs[i]->name();
      const ValueId id = builder_.graph().AddValue(name, std::move(types[i]));
      scope_.items[name] = Item::Tensor(id);
      builder_.graph().inputs.push_back(id);
    }
    return absl::OkStatus();
  }

  absl::Status SetOutputs() {
    graph::Graph& graph = builder_.graph();
    std::set<ValueId> outputs;
    for (const auto& output : model_.output()) {
      HONE_ASSIGN_OR_RETURN(const Item item, bodies_.ItemOf(scope_, output.name()));
      if (!item.IsTensor()) {
        return absl::UnimplementedError(absl::StrCat(
            "output '", output.name(), "' is ", item.sequence ? "a sequence" : "an empty value",
            "; only tensors can be outputs of a network"));
      }
      ValueId id = item.tensor;
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
    for (const auto& [attribute, nodes] : bodies_.unknown_attributes()) {
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
  const ImportOptions& options_;
  Functions functions_;
  GraphBuilder builder_;
  BodyImporter bodies_;
  Scope scope_;
};

// The raw data shares the bytes, which belong to `owner`.
RawData RawDataOf(const ModelFile& file, const std::shared_ptr<const void>& owner) {
  RawData raw_data;
  for (const auto& part : file.raw_data) {
    raw_data.push_back(part ? std::make_optional(graph::ConstantData(owner, *part)) : std::nullopt);
  }
  return raw_data;
}

absl::StatusOr<graph::Graph> Import(const std::shared_ptr<const void>& owner,
                                    absl::string_view bytes, const std::string& folder,
                                    const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(ModelFile file, ParseModelFile(bytes));
  ExternalData files(folder);
  return ImportModel(file.model, RawDataOf(file, owner), files, options);
}

// The same for the nodes before those that run on the host.
absl::StatusOr<ImportedModel> ImportBeforeTail(const std::shared_ptr<const void>& owner,
                                               absl::string_view bytes, const std::string& folder,
                                               const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(ModelFile file, ParseModelFile(bytes));
  const RawData raw_data = RawDataOf(file, owner);
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<HostTail::Model> tail,
                        TakeTail(raw_data, options.constants, file.model));
  if (tail == nullptr) return absl::NotFoundError("no node runs on the host");
  tail->folder = folder;
  ExternalData files(folder);
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(file.model, raw_data, files, options));
  std::vector<ValueId> computed;
  for (const ValueId id : graph.outputs) {
    const graph::Value& value = graph.value(id);
    if (value.constant) {
      tail->constants.emplace(value.name, Tensor{value.type, *value.constant});
    } else {
      tail->computed.push_back(value);
      computed.push_back(id);
    }
  }
  graph.outputs = std::move(computed);
  RemoveUnused(graph);
  return ImportedModel{std::move(graph), std::make_shared<const HostTail>(std::move(tail))};
}

}  // namespace

absl::StatusOr<graph::Graph> ImportModel(::onnx::ModelProto& model, const RawData& raw_data,
                                         ExternalData& files, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const int64_t opset, CheckModel(model));
  return ModelImporter(model, opset, raw_data, files, options).Run();
}

absl::StatusOr<ImportedModel> ImportOnnxWithTail(const std::string& path,
                                                 const ImportOptions& options) {
  std::vector<std::string> warnings;
  ImportOptions own = options;
  own.warnings = &warnings;
  absl::StatusOr<graph::Graph> whole = ImportOnnx(path, own);
  absl::StatusOr<ImportedModel> model = absl::UnknownError("not read yet");
  if (whole.ok()) {
    model = ImportedModel{*std::move(whole), nullptr};
  } else if (!absl::IsFailedPrecondition(whole.status())) {
    return whole.status();
  } else {
    warnings.clear();
    HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    const std::string folder = std::filesystem::path(path).parent_path().string();
    model = ImportBeforeTail(file, file->bytes(), folder.empty() ? "." : folder, own);
    if (absl::IsNotFound(model.status())) return whole.status();
    if (!model.ok()) {
      return absl::Status(model.status().code(),
                          absl::StrCat(path, ": ", model.status().message()));
    }
  }
  if (options.warnings != nullptr) {
    options.warnings->insert(options.warnings->end(), warnings.begin(), warnings.end());
  }
  return model;
}

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
  HONE_ASSIGN_OR_RETURN(const std::set<std::string> locations, ExternalFilesOf(model.model));
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

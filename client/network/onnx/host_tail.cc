#include "client/network/onnx/host_tail.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/body/running_order.h"
#include "client/network/onnx/import_model.h"
#include "client/network/onnx/supported_operators.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using NameSet = std::set<std::string>;

// Whether the number of a node's results depends on elements, or that of a node in its bodies.
bool SelectsElements(const ::onnx::NodeProto& node) {
  static const auto* const operators =
      new NameSet{"Compress", "NonMaxSuppression", "NonZero", "Unique"};
  if (operators->contains(OperatorName(node))) return true;
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
    return attribute.has_g() &&
           std::any_of(attribute.g().node().begin(), attribute.g().node().end(), SelectsElements);
  });
}

// Stores the elements of a tensor in it.
void SetElements(absl::string_view bytes, ::onnx::TensorProto& proto) {
  proto.clear_external_data();
  proto.clear_data_location();
  proto.set_raw_data(bytes.data(), bytes.size());
}

// Stores the elements of files beside the model in the tensors of nodes and their bodies.
absl::Status EmbedFiles(ExternalData& files, ::onnx::TensorProto& tensor) {
  if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const Tensor read, ReadTensor(tensor, files));
  SetElements(read.data.bytes(), tensor);
  return absl::OkStatus();
}

template <typename Nodes>
absl::Status EmbedFilesOfNodes(ExternalData& files, Nodes& nodes) {
  for (::onnx::NodeProto& node : nodes) {
    for (::onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) HONE_RETURN_IF_ERROR(EmbedFiles(files, *attribute.mutable_t()));
      if (!attribute.has_g()) continue;
      for (::onnx::TensorProto& tensor : *attribute.mutable_g()->mutable_initializer())
        HONE_RETURN_IF_ERROR(EmbedFiles(files, tensor));
      HONE_RETURN_IF_ERROR(EmbedFilesOfNodes(files, *attribute.mutable_g()->mutable_node()));
    }
  }
  return absl::OkStatus();
}

::onnx::ValueInfoProto InfoOf(const std::string& name, const graph::TensorType& type,
                              bool fixes_shape) {
  ::onnx::ValueInfoProto info;
  info.set_name(name);
  ::onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(ElementNumber(type.dtype));
  tensor.mutable_shape();  // of no dimensions, for a scalar
  for (const int64_t extent : type.shape) {
    auto* const dimension = tensor.mutable_shape()->add_dim();
    if (fixes_shape) dimension->set_dim_value(extent);
  }
  return info;
}

bool ContainsAny(const NameSet& names, const NameSet& of) {
  return std::any_of(of.begin(), of.end(),
                     [&](const std::string& name) { return names.contains(name); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostTail::Model>> TakeTail(
    const RawData& raw_data, const std::map<std::string, Tensor>& constants,
    ::onnx::ModelProto& model) {
  ::onnx::GraphProto& graph = *model.mutable_graph();
  NameSet given;
  for (const auto& initializer : graph.initializer()) given.insert(initializer.name());
  NameSet computed;  // tensors whose elements are not known yet
  for (const auto& input : graph.input()) {
    const bool is_new = given.insert(input.name()).second;
    if (is_new && !constants.contains(input.name())) computed.insert(input.name());
  }
  HONE_ASSIGN_OR_RETURN(
      const RunningOrder order,
      FindRunningOrder(graph, given, /*is_outside=*/[](const std::string&) { return false; }));

  auto tail = std::make_unique<HostTail::Model>();
  ::onnx::GraphProto& end = *tail->proto.mutable_graph();
  NameSet made, read;  // by the nodes of the tail
  for (const int n : order.nodes) {
    const ::onnx::NodeProto& node = graph.node(n);
    const NameSet names = NamesReadBy(node);
    const bool is_computed = ContainsAny(computed, names);
    const bool is_in_tail = ContainsAny(made, names) || (is_computed && SelectsElements(node));
    // The types of tensors are known.
    const bool is_known = node.op_type() == "Shape" || node.op_type() == "Size";
    if (is_in_tail) {
      made.insert(node.output().begin(), node.output().end());
      read.insert(names.begin(), names.end());
      tail->nodes.push_back(Describe(node));
      *end.add_node() = node;
    } else if (is_computed && !is_known) {
      computed.insert(node.output().begin(), node.output().end());
    }
  }
  if (made.empty()) return nullptr;

  tail->proto.set_ir_version(model.ir_version());
  *tail->proto.mutable_opset_import() = model.opset_import();
  *tail->proto.mutable_functions() = model.functions();
  end.set_name(graph.name());
  for (int i = 0; i < graph.initializer_size(); ++i) {
    if (!read.contains(graph.initializer(i).name())) continue;
    *end.add_initializer() = graph.initializer(i);
    tail->raw_data.push_back(raw_data[i]);
    read.erase(graph.initializer(i).name());
  }
  NameSet outputs;  // of the rest
  auto all = std::move(*graph.mutable_output());
  graph.mutable_output()->Clear();
  for (::onnx::ValueInfoProto& output : all) {
    tail->outputs.push_back(output.name());
    const bool is_made = made.contains(output.name());
    if (!is_made && !outputs.insert(output.name()).second) continue;
    *(is_made ? end.add_output() : graph.add_output()) = std::move(output);
  }
  for (const std::string& name : read) {
    if (name.empty() || made.contains(name)) continue;
    end.add_input()->set_name(name);
    if (outputs.insert(name).second) graph.add_output()->set_name(name);
  }
  return tail;
}

HostTail::HostTail(std::unique_ptr<const Model> model) : model_(std::move(model)) {}
HostTail::~HostTail() = default;

const std::vector<std::string>& HostTail::outputs() const { return model_->outputs; }
const std::vector<std::string>& HostTail::nodes() const { return model_->nodes; }

std::string HostTail::Describe() const {
  const auto more = static_cast<int64_t>(nodes().size()) - 1;
  return absl::StrCat(nodes()[0], more == 0 ? " runs" : "",
                      more > 0 ? absl::StrCat(" and ", Counted(more, "node"), " after it run") : "",
                      " on the host");
}

absl::StatusOr<std::string> HostTail::ToModel(bool fixes_shapes) const {
  ::onnx::ModelProto proto = model_->proto;
  proto.set_producer_name("hone");
  // Since this version, initializers need not be inputs.
  proto.set_ir_version(std::max<int64_t>(proto.ir_version(), 4));
  ::onnx::GraphProto& graph = *proto.mutable_graph();
  ExternalData files(model_->folder);
  NameSet given;
  for (int i = 0; i < graph.initializer_size(); ++i) {
    ::onnx::TensorProto& tensor = *graph.mutable_initializer(i);
    if (model_->raw_data[i]) SetElements(model_->raw_data[i]->bytes(), tensor);
    HONE_RETURN_IF_ERROR(EmbedFiles(files, tensor));
    given.insert(tensor.name());
  }
  HONE_RETURN_IF_ERROR(EmbedFilesOfNodes(files, *graph.mutable_node()));
  for (::onnx::FunctionProto& function : *proto.mutable_functions())
    HONE_RETURN_IF_ERROR(EmbedFilesOfNodes(files, *function.mutable_node()));
  std::map<std::string, ::onnx::ValueInfoProto> types;  // of all outputs
  for (auto& output : *graph.mutable_output()) types[output.name()].Swap(&output);
  graph.clear_output();
  graph.clear_input();
  for (const graph::Value& value : model_->computed) {
    types[value.name] = InfoOf(value.name, value.type, fixes_shapes);
    *graph.add_input() = types[value.name];
  }
  for (const auto& [name, tensor] : model_->constants) {
    types.emplace(name, InfoOf(name, tensor.type, fixes_shapes));
    if (given.contains(name)) continue;
    ::onnx::TensorProto& initializer = *graph.add_initializer();
    initializer.set_name(name);
    initializer.set_data_type(ElementNumber(tensor.type.dtype));
    for (const int64_t extent : tensor.type.shape) initializer.add_dims(extent);
    SetElements(tensor.data.bytes(), initializer);
  }
  for (const std::string& name : model_->outputs) *graph.add_output() = types.at(name);
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) {
    return absl::ResourceExhaustedError("what the nodes on the host read has more than 2 GiB");
  }
  return bytes;
}

absl::StatusOr<std::vector<Tensor>> HostTail::Run(absl::Span<const std::string> computed) const {
  std::map<std::string, Tensor> known = model_->constants;
  for (size_t i = 0; i < computed.size(); ++i) {
    const graph::Value& value = model_->computed[i];
    known.emplace(value.name, Tensor{value.type, graph::ConstantData(computed[i])});
  }
  ::onnx::ModelProto proto = model_->proto;
  ImportOptions options;
  for (const auto& input : proto.graph().input()) {
    options.constants.emplace(input.name(), known.at(input.name()));
  }
  ExternalData files(model_->folder);
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph,
                        ImportModel(proto, model_->raw_data, files, options));
  // What was too large to be folded at once is computed here.
  std::vector<ir::Scalars> elements;
  if (!graph.nodes.empty()) {
    HONE_ASSIGN_OR_RETURN(elements, graph::Interpret(graph, {}));
  }
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::Value& value = graph.value(graph.outputs[o]);
    known.insert_or_assign(model_->proto.graph().output(static_cast<int>(o)).name(),
                           Tensor{value.type, value.constant ? *value.constant
                                                             : graph::ConstantData(graph::Encode(
                                                                   value.type, elements[o]))});
  }
  std::vector<Tensor> outputs;
  for (const std::string& name : model_->outputs) outputs.push_back(known.at(name));
  return outputs;
}

}  // namespace hone::onnx

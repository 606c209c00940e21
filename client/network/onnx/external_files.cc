#include "client/network/onnx/external_files.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/body/function.h"
#include "client/network/onnx/body/running_order.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

constexpr int kMostDepth = 64;

class Finder {
 public:
  explicit Finder(const ::onnx::ModelProto& model) : functions_(model) {}

  // `depth`: the number of graphs and functions around it.
  absl::Status AddGraph(const ::onnx::GraphProto& graph, bool is_inside, int depth = 0) {
    if (depth > kMostDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("graphs and functions are nested more than ", kMostDepth, " deep"));
    }
    std::set<std::string> given;
    for (const auto& input : graph.input()) given.insert(input.name());
    for (const ::onnx::TensorProto& tensor : graph.initializer()) given.insert(tensor.name());
    HONE_ASSIGN_OR_RETURN(
        const RunningOrder order,
        FindRunningOrder(graph, given, [&](const std::string&) { return is_inside; }));
    for (const ::onnx::TensorProto& tensor : graph.initializer()) {
      if (order.read.contains(tensor.name())) AddTensor(tensor);
    }
    for (const int n : order.nodes) HONE_RETURN_IF_ERROR(AddNode(graph.node(n), depth));
    return absl::OkStatus();
  }

  std::set<std::string> TakeLocations() { return std::move(locations_); }

 private:
  void AddTensor(const ::onnx::TensorProto& tensor) {
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") locations_.insert(entry.value());
    }
  }

  absl::Status AddNode(const ::onnx::NodeProto& node, int depth) {
    for (const ::onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_t()) AddTensor(attribute.t());
      if (attribute.has_g())
        HONE_RETURN_IF_ERROR(AddGraph(attribute.g(), /*is_inside=*/true, depth + 1));
    }
    // A call needs the nodes for as many outputs as it has, and the defaults of attributes that it
    // does not give. Functions may call themselves.
    std::set<std::string> given;
    for (const ::onnx::AttributeProto& attribute : node.attribute()) given.insert(attribute.name());
    if (!functions_.Has(node) ||
        !called_.emplace(node.domain(), node.op_type(), node.output_size(), given).second) {
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const Functions::Body body, functions_.BodyFor(node, /*opset=*/0));
    return AddGraph(*body.graph, /*is_inside=*/false, depth + 1);
  }

  Functions functions_;
  std::set<std::tuple<std::string, std::string, int, std::set<std::string>>> called_;
  std::set<std::string> locations_;
};

}  // namespace

absl::StatusOr<std::set<std::string>> ExternalFilesOf(const ::onnx::ModelProto& model) {
  Finder finder(model);
  HONE_RETURN_IF_ERROR(finder.AddGraph(model.graph(), /*is_inside=*/false));
  return finder.TakeLocations();
}

}  // namespace hone::onnx

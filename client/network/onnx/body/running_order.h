#ifndef HONE_CLIENT_NETWORK_ONNX_BODY_RUNNING_ORDER_H_
#define HONE_CLIENT_NETWORK_ONNX_BODY_RUNNING_ORDER_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// "node 'conv1' (Conv)".
std::string Describe(const ::onnx::NodeProto& node);

// The tensors that a node and the graphs inside of it read.
std::set<std::string> NamesReadBy(const ::onnx::NodeProto& node);

// The nodes that the outputs of a graph need.
struct RunningOrder {
  std::vector<int> nodes;      // in topological order: the order of the graph if it is topological
  std::set<std::string> read;  // the tensors that these nodes, their subgraphs and the outputs read
};

// `given`: the tensors that are known, which are inputs and initializers. `is_outside`: whether a
// name that the graph does not define is known around it.
//
// InvalidArgument, with the names of nodes and tensors: a tensor is computed twice, or read or
// output but never computed; the nodes form a cycle.
absl::StatusOr<RunningOrder> FindRunningOrder(
    const ::onnx::GraphProto& graph, const std::set<std::string>& given,
    const std::function<bool(const std::string&)>& is_outside);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_BODY_RUNNING_ORDER_H_

#ifndef HONE_CLIENT_NETWORK_ONNX_ATTRIBUTE_H_
#define HONE_CLIENT_NETWORK_ONNX_ATTRIBUTE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/onnx/tensor_file.h"
#include "client/network/onnx/tensor_proto.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// The attributes of a node. Tensors and graphs are separate, because graph::Attribute cannot hold
// them.
struct Attributes {
  std::map<std::string, graph::Attribute> plain;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, const ::onnx::GraphProto*> graphs;  // in the node
};

// InvalidArgument: an attribute is given twice, or refers to a function's attribute. Unimplemented:
// it is a list of graphs, a sparse tensor or a type. Other errors are those of ReadTensor. The
// messages name the attribute.
absl::StatusOr<Attributes> ReadAttributes(const ::onnx::NodeProto& node, ExternalData& files);

// The names of the node's attributes that its operator does not have in this opset. Empty for an
// operator that is not supported.
std::vector<std::string> UnknownAttributes(const ::onnx::NodeProto& node, int64_t opset);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_ATTRIBUTE_H_

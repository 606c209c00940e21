#ifndef HONE_CLIENT_NETWORK_ONNX_IMPORT_MODEL_H_
#define HONE_CLIENT_NETWORK_ONNX_IMPORT_MODEL_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/onnx/host_tail.h"
#include "client/network/onnx/import.h"
#include "client/network/onnx/model_file.h"
#include "client/network/onnx/tensor_proto.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// The raw data of each initializer of a model, if it has any.
using RawData = std::vector<std::optional<graph::ConstantData>>;

// Converts a parsed model, out of which the initializers are moved. The graph shares the raw data.
// Errors are those of ImportOnnx.
absl::StatusOr<graph::Graph> ImportModel(::onnx::ModelProto& model, const RawData& raw_data,
                                         ExternalData& files, const ImportOptions& options);

struct HostTail::Model {
  // Its nodes, and the initializers that they read. What else they read are its inputs.
  ::onnx::ModelProto proto;
  RawData raw_data;
  std::string folder;                       // of files with weights
  std::vector<std::string> nodes;           // see HostTail
  std::vector<std::string> outputs;         // of the whole model
  std::vector<graph::Value> computed;       // outputs of the graph of the other nodes
  std::map<std::string, Tensor> constants;  // inputs that are known when the model is read
};

// Finds the nodes of a model that must run on the host, and removes them: the model then outputs
// what they read. Null: there are none, and the model stays as it is. `constants`: inputs whose
// values are known. InvalidArgument: the nodes have no order.
absl::StatusOr<std::unique_ptr<HostTail::Model>> TakeTail(
    const RawData& raw_data, const std::map<std::string, Tensor>& constants,
    ::onnx::ModelProto& model);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_IMPORT_MODEL_H_

#ifndef HONE_CLIENT_NETWORK_ONNX_MODEL_IMPORTER_H_
#define HONE_CLIENT_NETWORK_ONNX_MODEL_IMPORTER_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/onnx/external_data.h"
#include "client/network/onnx/import.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// Converts a parsed model. `raw_data`: the raw data of each initializer, if it has any; the graph
// shares it. Errors are those of ImportOnnx.
absl::StatusOr<graph::Graph> ImportModel(
    ::onnx::ModelProto& model, const std::vector<std::optional<graph::ConstantData>>& raw_data,
    ExternalData& files, const ImportOptions& options);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_MODEL_IMPORTER_H_

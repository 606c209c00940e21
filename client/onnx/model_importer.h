#ifndef HONE_CLIENT_ONNX_MODEL_IMPORTER_H_
#define HONE_CLIENT_ONNX_MODEL_IMPORTER_H_

#include "absl/status/statusor.h"
#include "client/onnx/external_data.h"
#include "client/onnx/import.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// Converts a parsed model, whose weights are moved into the graph. Errors are those of ImportOnnx.
absl::StatusOr<graph::Graph> ImportModel(::onnx::ModelProto& model, ExternalData& files,
                                         const ImportOptions& options);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_ONNX_MODEL_IMPORTER_H_

#ifndef HONE_CLIENT_NETWORK_ONNX_EXTERNAL_FILES_H_
#define HONE_CLIENT_NETWORK_ONNX_EXTERNAL_FILES_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// The locations of the files beside a model with elements of tensors that its outputs need. All
// branches and loops of the nodes that the outputs need count, whether or not they run, and so do
// the functions that these nodes call. Errors are those of FindRunningOrder and
// Functions::BodyFor.
absl::StatusOr<std::set<std::string>> ExternalFilesOf(const ::onnx::ModelProto& model);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_EXTERNAL_FILES_H_

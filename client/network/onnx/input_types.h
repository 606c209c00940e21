#ifndef HONE_CLIENT_NETWORK_ONNX_INPUT_TYPES_H_
#define HONE_CLIENT_NETWORK_ONNX_INPUT_TYPES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// Returns the types of a model's inputs, in order. Dimensions that the model leaves open come from
// `shapes`, which has shapes of inputs by name. A dimension with a name has the same extent
// everywhere; `shapes` may also give it by this name, as a list of one extent. The first dimension
// of an input, which is its batch, is 1 if nobody gives it; `assumed` gets a sentence that says so.
//
// InvalidArgument: another dimension is open; the message says what to give. A shape contradicts
// the model or another one, or is not that of an input. Unimplemented: an input is not a dense
// tensor, or has an element type that Hone does not have.
absl::StatusOr<std::vector<graph::TensorType>> InputTypes(
    const std::vector<const ::onnx::ValueInfoProto*>& inputs,
    const std::map<std::string, std::vector<int64_t>>& shapes, std::vector<std::string>& assumed);

// "[N, 3, 224, 224]".
std::string ShapeText(const ::onnx::TensorShapeProto& shape);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_INPUT_TYPES_H_

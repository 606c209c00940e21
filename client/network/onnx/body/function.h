#ifndef HONE_CLIENT_NETWORK_ONNX_BODY_FUNCTION_H_
#define HONE_CLIENT_NETWORK_ONNX_BODY_FUNCTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// The functions that a model defines. A node that names one is replaced by the nodes of its body.
class Functions {
 public:
  explicit Functions(const ::onnx::ModelProto& model);

  // Whether a node calls a function of the model.
  bool Has(const ::onnx::NodeProto& node) const;

  struct Body {
    ::onnx::GraphProto* graph;  // stays valid
    int64_t opset;
  };
  // The body of the function that a node calls, with the attributes of the call in place of the
  // references to them. `opset`: that of the caller. REQUIRES: Has(call). InvalidArgument: the call
  // has more inputs or outputs than the function. Unimplemented: there are several such functions,
  // or all bodies are too large together.
  absl::StatusOr<Body> BodyFor(const ::onnx::NodeProto& call, int64_t opset);

 private:
  // By domain and name; null for a name that several functions have.
  std::map<std::pair<std::string, std::string>, const ::onnx::FunctionProto*> functions_;
  std::deque<::onnx::GraphProto> bodies_;
  size_t copied_bytes_ = 0;  // to the bodies
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_BODY_FUNCTION_H_

#ifndef HONE_TESTS_CLIENT_NETWORK_ONNX_MODEL_TEXT_H_
#define HONE_TESTS_CLIENT_NETWORK_ONNX_MODEL_TEXT_H_

#include <string>

#include "onnx/onnx_pb.h"

namespace hone::onnx {

// A model whose graph is given as text of its protocol message. Its name is "g".
::onnx::ModelProto ModelOf(const std::string& graph, int opset = 17);
// The bytes of its file.
std::string BytesOf(const std::string& graph, int opset = 17);

// Parts of the text: an input or output, an initializer with elements of a typed field, a node.
//   Input("x", 1, "2, N")            f32[2, N]
//   Initializer("w", 1, "2", "float_data: [1, 2]")
//   NodeText("Add", "x w", "y", "attribute { … }")    named "n_y" after its first output
// "_" is an input or output that is absent.
std::string Input(const std::string& name, int type, const std::string& shape);
std::string Output(const std::string& name);
std::string Initializer(const std::string& name, int type, const std::string& shape,
                        const std::string& elements);
std::string NodeText(const std::string& op, const std::string& inputs, const std::string& outputs,
                     const std::string& attributes = "");
// Attributes of a node.
std::string Ints(const std::string& name, const std::string& list);
std::string Int(const std::string& name, int64_t value);
std::string Float(const std::string& name, double value);
std::string Floats(const std::string& name, const std::string& list);
std::string String(const std::string& name, const std::string& value);

}  // namespace hone::onnx

#endif  // HONE_TESTS_CLIENT_NETWORK_ONNX_MODEL_TEXT_H_

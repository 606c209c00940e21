#ifndef HONE_CLIENT_NETWORK_ONNX_SUPPORTED_OPERATORS_H_
#define HONE_CLIENT_NETWORK_ONNX_SUPPORTED_OPERATORS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace hone::onnx {

// Whether a domain is that of ONNX itself.
bool IsOwnDomain(absl::string_view domain);
// The newest version of a domain that the importer reads; nullopt if it has none of its operators.
std::optional<int64_t> NewestVersion(absl::string_view domain);

// The name of a node's operator: its type, and before it the domain if this is not ONNX's own one:
// "Conv", "com.microsoft.MatMulNBits".
std::string OperatorName(const ::onnx::NodeProto& node);

// An operator that models may use.
struct SupportedOperator {
  std::string name;
  std::string limits;  // "" if there are none
};

// All of them, in the order of their names.
std::vector<SupportedOperator> SupportedOperators();

// Unimplemented: some of these nodes have operators that Hone does not support. The message lists
// all of these operators, with the opset or the domain, the number of nodes and the first node.
// `is_function`: whether a node calls a function of the model instead of an operator.
absl::Status CheckOperators(const ::onnx::GraphProto& graph, const std::vector<int>& nodes,
                            int64_t opset,
                            const std::function<bool(const ::onnx::NodeProto&)>& is_function);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_SUPPORTED_OPERATORS_H_

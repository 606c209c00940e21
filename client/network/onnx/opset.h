#ifndef HONE_CLIENT_NETWORK_ONNX_OPSET_H_
#define HONE_CLIENT_NETWORK_ONNX_OPSET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/network/onnx/graph_builder.h"

namespace hone::onnx {

// The newest version of ONNX's operators that the importer reads.
inline constexpr int64_t kNewestOpset = 25;

// The oldest opset from which the importer reads an operator: 7, or an older one if the operator is
// the same there.
int64_t OldestOpset(absl::string_view op);

// A node of a model. Its inputs are values of the graph that is being built.
struct VersionedNode {
  graph::Node node;
  std::vector<std::string> outputs;  // "" for one that is not wanted; the last one is wanted
  int64_t opset;                     // of the operator's domain
  int64_t all_outputs = 0;           // in the model, with the last ones that are not wanted
};

// The name of the operator that replaces `op` in opset 25, which is usually the same.
absl::string_view CurrentName(absl::string_view op);

// Rewrites a node to the semantics of opset 25. Adds the constants and nodes that it then needs.
// Unimplemented: opset 25 has no counterpart; the message names the node.
absl::Status ConvertToNewest(VersionedNode& node, GraphBuilder& builder);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_OPSET_H_

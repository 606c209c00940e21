#ifndef HONE_CLIENT_NETWORK_ONNX_PRUNE_H_
#define HONE_CLIENT_NETWORK_ONNX_PRUNE_H_

#include "client/network/graph/graph.h"

namespace hone::onnx {

// Removes the constants that no node reads and that are not outputs of the graph. Renumbers the
// other values, so a ValueId that is kept elsewhere becomes invalid.
void RemoveUnusedConstants(graph::Graph& graph);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_PRUNE_H_

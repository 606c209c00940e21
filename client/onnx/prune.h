#ifndef HONE_CLIENT_ONNX_PRUNE_H_
#define HONE_CLIENT_ONNX_PRUNE_H_

#include "common/graph/graph.h"

namespace hone::onnx {

// Removes the constants that no node reads and that are not outputs.
void RemoveUnusedConstants(graph::Graph& graph);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_ONNX_PRUNE_H_

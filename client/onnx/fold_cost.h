#ifndef HONE_CLIENT_ONNX_FOLD_COST_H_
#define HONE_CLIENT_ONNX_FOLD_COST_H_

#include "common/graph/operator_def.h"

namespace hone::onnx {

// Estimates the work of computing a node with the interpreter: the elements of its constants and
// results, and the points of its stages. `types`: the types of all its results. Only the first
// `outputs` results may be wanted.
double FoldCost(const graph::Graph& graph, const graph::Node& node, const graph::Types& types,
                size_t outputs);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_ONNX_FOLD_COST_H_

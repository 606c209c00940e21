#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_QUANTIZED_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_QUANTIZED_H_

#include "client/network/graph/node_view.h"
#include "common/ir/dtype.h"

namespace hone::graph {

// u8 or i8.
bool IsByte(ir::DType dtype);

// Whether an optional zero point is absent or known to be 0, so that formulas leave it out.
bool IsZero(const NodeView& node, int zero_point);
// Whether two nodes, QuantizeLinear or DequantizeLinear, are known to have the same zero point.
bool HaveSameZeroPoint(const NodeView& a, const NodeView& b);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_QUANTIZED_H_

#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_QUANTIZED_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_QUANTIZED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/stage_writer.h"
#include "common/ir/dtype.h"

namespace hone::graph {

// u8 or i8.
bool IsByte(ir::DType dtype);

// An f32 value rounded to nearest even, plus a zero point, saturated to u8 or i8.
std::string Saturated(absl::string_view value, absl::string_view zero_point, ir::DType dtype);

// Whether an optional zero point is absent or known to be 0, so that formulas leave it out.
bool IsZero(const NodeView& node, int zero_point);
// Whether two nodes, QuantizeLinear or DequantizeLinear, are known to have the same zero point.
bool HaveSameZeroPoint(const NodeView& a, const NodeView& b);
// Whether a scale is known to be 1.
bool IsOne(const NodeView& node, int scale);

// Returns the element of a scale or zero point that has either one element or one per channel.
std::string PerChannel(const NodeView& node, StageWriter& writer, int input,
                       absl::string_view channel);
// Checks the size of a scale or zero point. InvalidArgument: it has neither one element nor one
// per channel.
absl::Status NeedPerChannel(const NodeView& node, int input, int64_t channels);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_QUANTIZED_H_

#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_FORMULA_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_FORMULA_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/stage_writer.h"
#include "common/ir/dtype.h"

// Pieces of stages in the language of workloads.
namespace hone::graph {

// A number of this type: "f32(0.5)", "i64(3)", "bool(1)".
std::string Literal(ir::DType dtype, ir::Scalar value);
// Converts a value from one type to another: "f32(X[i])"; the value itself if the types are equal.
std::string Convert(ir::DType from, ir::DType to, std::string value);

// The sum of terms (factor, axis) and a constant, as an index: "2*i + r - 1".
std::string Affine(const std::vector<std::pair<int64_t, std::string>>& terms, int64_t constant);
// "i - 1".
std::string Offset(absl::string_view axis, int64_t constant);

// The value, or `instead` if the value is NaN; the value itself if its type has no NaN.
std::string WithoutNaN(ir::DType dtype, const std::string& value, absl::string_view instead);

// "T[i, j + 1]": an element of an intermediate tensor.
std::string Element(absl::string_view tensor, const std::vector<std::string>& indices);

// "(<value> where <guards> else <otherwise>)"; the value if there are no guards.
std::string Guarded(std::string value, const std::vector<std::string>& guards,
                    absl::string_view otherwise);

// "sum(k: 3 where <guards>) ", to be followed by a value. Without axes, the reduction is over one
// point.
std::string Reduction(absl::string_view reducer, const std::vector<std::string>& axes,
                      const std::vector<int64_t>& extents,
                      const std::vector<std::string>& guards = {});

// The first element of an input; for scalars.
std::string First(const NodeView& node, StageWriter& writer, int input);
// The same, but a literal if the input is constant, so that it becomes a part of the code.
std::string FirstAsNumber(const NodeView& node, StageWriter& writer, int input);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_FORMULA_H_

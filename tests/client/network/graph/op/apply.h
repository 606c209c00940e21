#ifndef HONE_TESTS_CLIENT_NETWORK_GRAPH_OP_APPLY_H_
#define HONE_TESTS_CLIENT_NETWORK_GRAPH_OP_APPLY_H_

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "common/ir/interpreter.h"

namespace hone::graph {

// An input of a node under test; without a type it is absent.
struct Given {
  std::optional<TensorType> type;
  ir::Scalars elements;
  bool constant = false;
};

inline constexpr int kOneOutput = 1;

// Runs one node. Outputs are all of the operator's, up to `outputs`.
absl::StatusOr<std::vector<ir::Scalars>> Apply(const std::string& op,
                                               const std::vector<Given>& inputs,
                                               std::map<std::string, Attribute> attributes = {},
                                               int outputs = kOneOutput);
// The type of the first output.
absl::StatusOr<TensorType> TypeOf(const std::string& op, const std::vector<Given>& inputs,
                                  std::map<std::string, Attribute> attributes = {});

// The workload of the node with its first output, as text.
std::string TextOf(const std::string& op, const std::vector<Given>& inputs,
                   std::map<std::string, Attribute> attributes = {});

// f32 numbers between -2 and 2, and whole numbers of a type between two bounds.
Given Floats(std::vector<int64_t> shape, std::mt19937& random, bool constant = false);
Given Wholes(ir::DType dtype, std::vector<int64_t> shape, int64_t least, int64_t most,
             std::mt19937& random, bool constant = false);
// A constant list of i64, such as axes.
Given List(const std::vector<int64_t>& numbers);
Given Number(float number);

// Expects floats within 1e-5 of the largest magnitude, and equal whole numbers.
void ExpectNear(const absl::StatusOr<std::vector<ir::Scalars>>& actual,
                const std::vector<double>& expected, int output = 0);

}  // namespace hone::graph

#endif  // HONE_TESTS_CLIENT_NETWORK_GRAPH_OP_APPLY_H_

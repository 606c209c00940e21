#ifndef HONE_TESTS_BENCH_COMPARE_OPERATOR_MATCH_H_
#define HONE_TESTS_BENCH_COMPARE_OPERATOR_MATCH_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"

namespace hone::compare {

// A workload as an operator of the library with its keys, which is what other libraries understand.
struct OperatorMatch {
  std::string op;
  std::map<std::string, int64_t> keys;
  int64_t operator[](const std::string& key) const { return keys.at(key); }
  // "conv2d n=1 h=14 …".
  std::string ToText() const;
};

// Finds the operator whose workload has the same structural hash. Unimplemented: none of matmul,
// batch_matmul, dense_relu and conv2d does.
absl::StatusOr<OperatorMatch> MatchOperator(const ir::Workload& workload);

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_OPERATOR_MATCH_H_

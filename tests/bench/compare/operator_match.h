#ifndef HONE_TESTS_BENCH_COMPARE_OPERATOR_MATCH_H_
#define HONE_TESTS_BENCH_COMPARE_OPERATOR_MATCH_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"

namespace hone::compare {

// A workload as one of the library's operators with keys, for use with other libraries.
struct OperatorMatch {
  std::string op;
  std::map<std::string, int64_t> keys;
  // Returns a key's value, or the operator's default. REQUIRES: the operator has the key.
  int64_t operator[](const std::string& key) const;
  // "conv2d n=1 h=14 …".
  std::string ToText() const;
};

// Finds the operator whose workload has the same structural hash: the one in `words`, or without
// words one of matmul, batch_matmul, dense_relu and conv2d. InvalidArgument: `words` describes
// another workload. Unimplemented: none matches.
absl::StatusOr<OperatorMatch> MatchOperator(const ir::Workload& workload, const std::string& words);

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_OPERATOR_MATCH_H_

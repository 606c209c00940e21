#ifndef HONE_COMMON_OPERATOR_OPERATOR_H_
#define HONE_COMMON_OPERATOR_OPERATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::op {

// The arguments of an operator, checked and complete: every key has a value.
struct Arguments {
  std::map<std::string, int64_t, std::less<>> values;
  ir::DType dtype = ir::DType::kF32;
  int64_t operator[](absl::string_view key) const { return values.find(std::string(key))->second; }
};

struct KeyInfo {
  std::string name;
  std::string meaning;
  int64_t default_value = -1;  // -1: must be given
  int64_t minimum = 1;
};

// One entry of the library.
struct OperatorInfo {
  std::string name;
  std::string meaning;         // with the layouts of inputs and output
  std::vector<KeyInfo> keys;   // "dtype" goes without saying
  absl::StatusOr<ir::Workload> (*build)(const Arguments&);
};

// Every operator, sorted by name. To add one: a builder in a file of this folder and a line in operator.cc.
const std::vector<OperatorInfo>& Operators();

// Builds a workload from words like {"m=512", "n=512", "k=64", "dtype=f32"}.
// NotFound: no operator of that name (the message suggests the nearest). InvalidArgument: an unknown, repeated, missing or
// malformed key, a value below its minimum, or shapes that do not fit or overflow; the message says which.
absl::StatusOr<ir::Workload> BuildWorkload(absl::string_view name, absl::Span<const std::string> words);

// The name of `known` nearest to `word` by edit distance, or "" when none is near.
std::string Nearest(absl::string_view word, absl::Span<const std::string> known);

// The builders, a file each.
absl::StatusOr<ir::Workload> Matmul(const Arguments& arguments);
absl::StatusOr<ir::Workload> BatchMatmul(const Arguments& arguments);
absl::StatusOr<ir::Workload> Conv2d(const Arguments& arguments);
absl::StatusOr<ir::Workload> DenseRelu(const Arguments& arguments);

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_OPERATOR_H_

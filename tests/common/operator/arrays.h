#ifndef HONE_TESTS_COMMON_OPERATOR_ARRAYS_H_
#define HONE_TESTS_COMMON_OPERATOR_ARRAYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"

namespace hone::op {

// A dense row-major array of doubles. The references of these tests use it instead of Hone's types.
struct Array {
  Array() = default;
  explicit Array(std::vector<int64_t> s);

  template <typename... Indices>
  double& operator()(Indices... indices) {
    return data[Offset({static_cast<int64_t>(indices)...})];
  }
  template <typename... Indices>
  double operator()(Indices... indices) const {
    return data[Offset({static_cast<int64_t>(indices)...})];
  }
  // Aborts if an index is out of range.
  size_t Offset(std::initializer_list<int64_t> indices) const;

  std::vector<int64_t> shape;
  std::vector<double> data;
};

// "conv2d n=1 h=4 …".
absl::StatusOr<ir::Workload> Build(const std::string& line);
ir::Workload Built(const std::string& line);

// Integers −3…3 (0…3 if unsigned), so that sums are exact in every type, or reals in (−2, 2)
// representable in the dtype.
enum class Kind { kWhole, kReal };
std::vector<Array> Inputs(const ir::Workload& workload, uint64_t seed, Kind kind);

// Returns the outputs that the interpreter computes.
std::vector<Array> Compute(const ir::Workload& workload, const std::vector<Array>& inputs);

// Expects equal shapes, and every element within `tolerance` · max(1, |expected|).
void ExpectNear(const Array& got, const Array& expected, double tolerance, const std::string& what);

}  // namespace hone::op

#endif  // HONE_TESTS_COMMON_OPERATOR_ARRAYS_H_

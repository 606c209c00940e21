#ifndef HONE_TESTS_BENCH_STORE_KNOWN_WORKLOADS_H_
#define HONE_TESTS_BENCH_STORE_KNOWN_WORKLOADS_H_

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/ir/workload.h"
#include "common/operator/operator.h"

namespace hone {

// The workloads with a best in a store filled by store_scale_benchmark.
inline constexpr int kKnownWorkloads = 200;

inline absl::StatusOr<ir::Workload> KnownWorkload(int number) {
  return op::BuildWorkload("matmul", {absl::StrCat("m=", 16 + number), "n=64", "k=64"});
}

}  // namespace hone

#endif  // HONE_TESTS_BENCH_STORE_KNOWN_WORKLOADS_H_

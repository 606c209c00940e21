#ifndef HONE_COMMON_TARGET_CPU_CLUSTERS_H_
#define HONE_COMMON_TARGET_CPU_CLUSTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::target {

// CPUs of a machine with cores of one kind. A big.LITTLE or hybrid processor has several clusters,
// and a kernel that is best for one of them may be slow on another.
struct CpuCluster {
  std::vector<int> cpus;  // ascending, not empty
  std::string core;       // "cortex-a76", "core", "atom"; "" if the kind has no known name
  int64_t speed = 0;      // larger is faster; comparable only within a machine; 0: unknown
};

// Returns the clusters of these CPUs, in the order of their first CPUs. CPUs are in one cluster if
// Linux reports the same kind of core and the same capacity for them. `root` replaces / in tests.
std::vector<CpuCluster> CpuClusters(const std::string& root, absl::Span<const int> cpus);

// Finds a cluster by its position ("0", "1", ...), or the fastest or slowest one ("big", "little").
// InvalidArgument: there is no such cluster, or their speeds are unknown; the message lists them.
absl::StatusOr<CpuCluster> FindCluster(absl::Span<const CpuCluster> clusters,
                                       absl::string_view name);

// "0: CPUs 0-3, cortex-a55; 1: CPUs 4-7, cortex-a76".
std::string DescribeClusters(absl::Span<const CpuCluster> clusters);

// Restricts the calling thread, and the threads and programs that it starts from now on, to these
// CPUs. Unavailable: the system refuses.
absl::Status UseCpus(absl::Span<const int> cpus);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_CPU_CLUSTERS_H_

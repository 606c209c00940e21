#ifndef HONE_COMMON_TARGET_HOST_H_
#define HONE_COMMON_TARGET_HOST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/target.h"

// A description of this machine for users and for the environment of a record. It is read from
// CPUID, /proc and /sys. Fields that cannot be read are empty.
namespace hone::target {

struct HostFacts {
  std::string name;
  std::string cpu;       // the vendor's model name
  std::string isa;       // widest vector extensions, "avx2 fma avx512f avx512vnni"
  std::string os;        // "Linux 6.1.0-18-amd64"
  std::string governor;  // "performance", "schedutil", …; "unknown" if the machine hides it
  int cores = 1;         // UsableCores()
  int64_t memory_bytes = 0;
};
HostFacts DescribeHost();

// Whether a user-mode emulator (QEMU) runs this program on a processor of another architecture:
// /proc/cpuinfo then describes that one. Times mean nothing there.
bool IsEmulated();

// The CPUs that this process may use, ascending: those of its affinity mask.
std::vector<int> UsableCpus();

// The number of CPUs that this process may keep busy: UsableCpus, limited by the quotas of
// its control groups (rounded up). Those of the default threads of thread_pool.h.
int UsableCores();

// The folder with the clock rates of the first CPU that this process may use. `root` replaces / in
// tests.
std::string FrequencyFolder(const std::string& root = "");

// Returns the first line of a file of /proc or /sys without blanks at its ends; "" if it cannot be
// read.
std::string FirstLine(const std::string& path);

// Parses a CPU list of /sys: "0-3,8" → 0 1 2 3 8. Empty if the text is not such a list.
std::vector<int> ParseCpuList(absl::string_view text);

// Reads a target's cache sizes and line size from /sys, for a process that may run on `cpus` and
// keep `target.cores` of them busy. L1 and L2 are those of the first CPU. L3 is the sum over the
// chiplets and sockets that the cores can use; one core can fill only one at a time. Values that
// cannot be read are left unchanged. `root` replaces / in tests.
void ReadCaches(const std::string& root, const std::vector<int>& cpus, Target& target);

// Bytes of L3 that one core can fill. Assumes that at most sixteen cores share a cache, because a
// target stores only the sum over chiplets and sockets.
int64_t ReachableL3Bytes(const Target& target);

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

#endif  // HONE_COMMON_TARGET_HOST_H_

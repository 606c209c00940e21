#ifndef HONE_COMMON_TARGET_HOST_H_
#define HONE_COMMON_TARGET_HOST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

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

// Returns LLVM's name of the CPU with this CPUID identity, or "" if it is unknown; detection then
// falls back to a level of the x86-64 psABI. The features distinguish CPUs that share a model
// number.
absl::string_view X86CpuName(absl::string_view vendor, int family, int model, bool has_vnni,
                             bool has_bf16);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_HOST_H_

#ifndef HONE_COMMON_TARGET_HOST_H_
#define HONE_COMMON_TARGET_HOST_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// What this machine says about itself, for a person and for the environment of a record. Everything
// is read from CPUID, /proc and /sys; what cannot be read is empty.
namespace hone::target {

struct HostFacts {
  std::string name;      // host name
  std::string cpu;       // model name as the vendor writes it
  std::string isa;       // widest vector extensions, "avx2 fma avx512f avx512vnni"
  std::string os;        // "Linux 6.1.0-18-amd64"
  std::string governor;  // "performance", "schedutil", …; "unknown" when the machine hides it
  int cores = 1;         // UsableCores()
  int64_t memory_bytes = 0;
};
HostFacts DescribeHost();

// CPUs that this process may keep busy: its affinity mask, limited by the CPU quota of its cgroup
// (rounded down, at least 1).
int UsableCores();

// LLVM's name for a CPU by its CPUID identity, "" when not known: detection then falls back to a
// level of the x86-64 psABI. Pure; the features decide where one model number has several members.
absl::string_view X86CpuName(absl::string_view vendor, int family, int model, bool has_vnni,
                             bool has_bf16);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_HOST_H_

#ifndef HONE_COMMON_TARGET_ARM_CPU_H_
#define HONE_COMMON_TARGET_ARM_CPU_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/target.h"

namespace hone::target {

// Returns the part of the text of /proc/cpuinfo that describes these CPUs, or all of it if none of
// them is described.
std::string CpuInfoOf(absl::string_view cpuinfo, absl::Span<const int> cpus);

// Returns the kind of the last core that /proc/cpuinfo describes: "cortex-a76", or its implementer
// and part, "0x41 0xd99", if it has no known name; "" for other architectures.
std::string ArmCoreName(absl::string_view cpuinfo);

// Sets triple, CPU name, features and vectors of a target from what Linux reports about an Arm CPU.
// `arch` is "aarch64" or "armv7"; `cpuinfo` is the text of /proc/cpuinfo, of which the last
// processor is used; `sve_bits` is the length of SVE vectors, 0 without SVE. The name is "generic"
// if the CPU is unknown or lacks features of its model, as in some virtual machines.
void DescribeArmCpu(absl::string_view arch, absl::string_view cpuinfo, int sve_bits,
                    Target& target);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_ARM_CPU_H_

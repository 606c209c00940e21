#ifndef HONE_COMMON_TARGET_ARM_CPU_H_
#define HONE_COMMON_TARGET_ARM_CPU_H_

#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::target {

// Sets what a Linux kernel tells of an Arm CPU: the triple, the CPU's name, features, and vectors.
// `arch` is "aarch64" or "armv7"; `cpuinfo` is the text of /proc/cpuinfo, in which the last
// processor counts; `sve_bits` is the length of SVE's vectors, 0 without SVE. A CPU that is
// unknown, or that lacks features of its kind (as some virtual machines hide), is "generic".
void DescribeArmCpu(absl::string_view arch, absl::string_view cpuinfo, int sve_bits,
                    Target& target);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_ARM_CPU_H_

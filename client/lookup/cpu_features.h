#ifndef HONE_CLIENT_LOOKUP_CPU_FEATURES_H_
#define HONE_CLIENT_LOOKUP_CPU_FEATURES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hone::lookup {

// Whether an AArch64 CPU has all of these features, which are named as in LLVM. A feature whose
// name is not known here counts as missing. `hwcap` and `hwcap2` are what getauxval returns for
// AT_HWCAP and AT_HWCAP2 on that CPU.
bool AArch64Has(const std::vector<std::string>& features, uint64_t hwcap, uint64_t hwcap2);

// The same for this CPU if it is an AArch64 one. True on x86-64, where kernels check the CPU
// themselves.
bool ThisCpuHas(const std::vector<std::string>& features);

}  // namespace hone::lookup

#endif  // HONE_CLIENT_LOOKUP_CPU_FEATURES_H_

#ifndef HONE_COMMON_TARGET_X86_FEATURES_H_
#define HONE_COMMON_TARGET_X86_FEATURES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

// Features of x86-64 CPUs beyond the baseline, by their LLVM names: how to query a CPU for them,
// and which ones LLVM assumes for each CPU name. Detection chooses the CPU name from this table and
// the guard in every kernel makes the same queries, so a kernel built for this machine runs on it.
namespace hone::target {

enum class CpuidRegister : uint8_t { kEax, kEbx, kEcx, kEdx };

// Bits of XCR0 (read with XGETBV): registers that the operating system must save.
inline constexpr uint32_t kSavesAvx = 0x6;
inline constexpr uint32_t kSavesAvx512 = 0xe6;
inline constexpr uint32_t kSavesAmx = 0x60000;

struct X86Feature {
  absl::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  CpuidRegister in;
  int bit;
  uint32_t saved;  // bits of XCR0 without which the instructions trap, or 0
};

// A feature whose instructions code generation may choose; nullptr if it is unknown.
const X86Feature* FindX86Feature(absl::string_view name);

// The features that FindX86Feature knows and LLVM assumes for a CPU name, sorted; nullopt if
// detection does not use the name.
std::optional<std::vector<absl::string_view>> FeaturesOfX86Cpu(absl::string_view cpu);
// All CPU names that detection uses.
std::vector<absl::string_view> X86CpuNames();

// Returns LLVM's name of the CPU with this CPUID identity, or "" if it is unknown; detection then
// falls back to a level of the x86-64 psABI. The features distinguish CPUs that share a model
// number.
absl::string_view X86CpuName(absl::string_view vendor, int family, int model, bool has_vnni,
                             bool has_bf16);

// Chooses the CPU name to generate code for: `model` if the machine has everything that it implies
// (hypervisors hide some features), otherwise the highest level of the x86-64 psABI that the
// machine supports.
absl::string_view UsableX86CpuName(absl::string_view model,
                                   const std::function<bool(const X86Feature&)>& has);

// Whether this CPU has a feature and the operating system saves its registers. False on other
// architectures.
bool HostHas(const X86Feature& feature);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_X86_FEATURES_H_

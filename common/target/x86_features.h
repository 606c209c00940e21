#ifndef HONE_COMMON_TARGET_X86_FEATURES_H_
#define HONE_COMMON_TARGET_X86_FEATURES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// What x86-64 CPUs can do beyond the baseline, by LLVM's names: how to ask a CPU, and what LLVM
// takes for granted on a CPU of a name and may use unasked. Detection names a CPU by it, and the
// guard of every kernel asks the same questions, so that a kernel built for this machine runs on
// it.
namespace hone::target {

enum class CpuidRegister : uint8_t { kEax, kEbx, kEcx, kEdx };

// Registers that the operating system must save: bits of XCR0, which XGETBV reads.
inline constexpr uint32_t kSavesAvx = 0x6;
inline constexpr uint32_t kSavesAvx512 = 0xe6;
inline constexpr uint32_t kSavesAmx = 0x60000;

struct X86Feature {
  absl::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  CpuidRegister in;
  int bit;
  uint32_t saved;  // bits of XCR0 without which the instructions trap; 0: none
};

// Every feature whose instructions code generation may choose, sorted by name.
absl::Span<const X86Feature> X86Features();
// nullptr when the table has none of that name.
const X86Feature* FindX86Feature(absl::string_view name);

// Those of X86Features() that LLVM takes for granted on a CPU of that name, sorted; nullopt:
// detection does not use the name.
std::optional<std::vector<absl::string_view>> FeaturesOfX86Cpu(absl::string_view cpu);
// All names that it knows.
std::vector<absl::string_view> X86CpuNames();

// The name that code for a machine may be generated for: `model`, where the machine has all that it
// implies (hypervisors hide some), else the highest level of the x86-64 psABI of which that is
// true.
absl::string_view UsableX86CpuName(absl::string_view model,
                                   const std::function<bool(const X86Feature&)>& has);

// Whether this CPU has a feature and the operating system saves its registers. Nothing on other
// architectures.
bool HostHas(const X86Feature& feature);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_X86_FEATURES_H_

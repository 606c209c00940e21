#include "client/lookup/cpu_features.h"

#include <algorithm>
#include <iterator>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace hone::lookup {
namespace {

constexpr uint64_t Bit(int number) { return uint64_t{1} << number; }

// The bits that Linux sets for a feature. Their numbers are those of its asm/hwcap.h for AArch64,
// which other architectures do not have.
struct Feature {
  const char* name;
  uint64_t hwcap;
  uint64_t hwcap2 = 0;
};
constexpr Feature kFeatures[] = {
    {"bf16", 0, Bit(14)},            // BF16
    {"dotprod", Bit(20)},            // ASIMDDP
    {"fp-armv8", Bit(0)},            // FP
    {"fp16fml", Bit(23)},            // ASIMDFHM
    {"fullfp16", Bit(9) | Bit(10)},  // FPHP, ASIMDHP
    {"i8mm", 0, Bit(13)},            // I8MM
    {"lse", Bit(8)},                 // ATOMICS
    {"neon", Bit(1)},                // ASIMD
    {"rdm", Bit(12)},                // ASIMDRDM
    {"sve", Bit(22)},                // SVE
    {"sve2", Bit(22), Bit(1)},       // SVE, SVE2
};

}  // namespace

bool AArch64Has(const std::vector<std::string>& features, uint64_t hwcap, uint64_t hwcap2) {
  return std::all_of(features.begin(), features.end(), [&](const std::string& name) {
    const Feature* const known =
        std::find_if(std::begin(kFeatures), std::end(kFeatures),
                     [&](const Feature& feature) { return feature.name == name; });
    return known != std::end(kFeatures) && (known->hwcap & ~hwcap) == 0 &&
           (known->hwcap2 & ~hwcap2) == 0;
  });
}

#if defined(__aarch64__)
bool ThisCpuHas(const std::vector<std::string>& features) {
  return AArch64Has(features, getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}
#else
bool ThisCpuHas(const std::vector<std::string>&) { return true; }
#endif

}  // namespace hone::lookup

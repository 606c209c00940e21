#include "client/lookup/cpu_features.h"

#include "gtest/gtest.h"

namespace hone::lookup {
namespace {

// What Linux reports: fp asimd evtstrm aes pmull sha1 sha2 crc32.
constexpr uint64_t kCortexA72 = 0xff;
// The same and atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp.
constexpr uint64_t kCortexA76 = 0x119fff;
constexpr uint64_t kSve = 1 << 22, kSve2 = 1 << 1, kI8mm = 1 << 13, kBf16 = 1 << 14;

TEST(CpuFeaturesTest, AnAArch64CpuNeedsEveryFeature) {
  EXPECT_TRUE(AArch64Has({}, 0, 0));
  EXPECT_TRUE(AArch64Has({"neon"}, kCortexA72, 0));
  EXPECT_FALSE(AArch64Has({"dotprod", "fullfp16", "neon"}, kCortexA72, 0));
  EXPECT_TRUE(AArch64Has({"dotprod", "fullfp16", "neon"}, kCortexA76, 0));
  EXPECT_FALSE(AArch64Has({"neon", "sve"}, kCortexA76, ~uint64_t{0}));
  EXPECT_TRUE(AArch64Has({"neon", "sve"}, kCortexA76 | kSve, 0));
  EXPECT_FALSE(AArch64Has({"sve2"}, kCortexA76 | kSve, ~kSve2));
  EXPECT_TRUE(AArch64Has({"bf16", "i8mm", "sve2"}, kCortexA76 | kSve, kSve2 | kI8mm | kBf16));
}

TEST(CpuFeaturesTest, HalfOfTheBitsOfAFeatureAreNotEnough) {
  EXPECT_FALSE(AArch64Has({"fullfp16"}, 1 << 9, 0));
  EXPECT_FALSE(AArch64Has({"fullfp16"}, 1 << 10, 0));
}

TEST(CpuFeaturesTest, AnUnknownFeatureIsMissing) {
  EXPECT_FALSE(AArch64Has({"neon", "sme9000"}, ~uint64_t{0}, ~uint64_t{0}));
  EXPECT_FALSE(AArch64Has({""}, ~uint64_t{0}, ~uint64_t{0}));
}

TEST(CpuFeaturesTest, KernelsForX86CheckTheCpuThemselves) {
#if defined(__x86_64__)
  EXPECT_TRUE(ThisCpuHas({"avx9000"}));
#else
  EXPECT_TRUE(ThisCpuHas({"neon"}));
  EXPECT_FALSE(ThisCpuHas({"neon", "sme9000"}));
#endif
}

}  // namespace
}  // namespace hone::lookup

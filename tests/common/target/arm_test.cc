// Arm CPUs: as Linux describes them, and presets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/target/arm_cpu.h"
#include "common/target/presets.h"

namespace hone::target {
namespace {

using ::testing::ElementsAre;

std::string CpuInfo(absl::string_view features, absl::string_view implementer,
                    absl::string_view part) {
  return absl::StrCat("processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: ", features,
                      "\nCPU implementer\t: ", implementer, "\nCPU part\t: ", part, "\n");
}

Target Described(absl::string_view arch, absl::string_view cpuinfo, int sve_bits = 0) {
  Target target;
  DescribeArmCpu(arch, cpuinfo, sve_bits, target);
  return target;
}

TEST(ArmCpuTest, AKnownCoreIsThatOfItsPreset) {
  const Target pi5 = Described(
      "aarch64", CpuInfo("fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid "
                         "asimdrdm lrcpc dcpop asimddp",
                         "0x41", "0xd0b"));
  EXPECT_EQ(pi5.cpu, "cortex-a76");
  EXPECT_THAT(pi5.features, ElementsAre("dotprod", "fullfp16", "neon"));
  EXPECT_EQ(pi5.triple, "aarch64-unknown-linux-gnu");
  const Target pi2 = Described(
      "armv7", CpuInfo("half thumb fastmult vfp neon vfpv3 vfpv4 idiva", "0x41", "0xc07"));
  EXPECT_EQ(pi2.cpu, "cortex-a7");
  EXPECT_EQ(pi2.arch, "armv7");
  EXPECT_THAT(pi2.features, ElementsAre("neon", "vfp4"));
  EXPECT_EQ(pi2.vector_registers, 16);
}

TEST(ArmCpuTest, VectorsOfSveHaveTheLengthThatTheKernelTells) {
  const std::string info = CpuInfo("fp asimd crc32 asimdhp asimddp sve bf16 i8mm", "0x41", "0xd40");
  EXPECT_EQ(Described("aarch64", info, 256).vector_bits, 256);
  EXPECT_EQ(Described("aarch64", info, 256).cpu, "neoverse-v1");
  EXPECT_TRUE(Described("aarch64", info, 256).HasFeature("sve"));
  EXPECT_FALSE(Described("aarch64", info, 256).HasFeature("sve2"));
}

TEST(ArmCpuTest, ACoreWithoutTheFeaturesOfItsKindIsGeneric) {
  const Target hidden =
      Described("aarch64", CpuInfo("fp asimd crc32 asimdhp asimddp", "0x41", "0xd40"));
  EXPECT_EQ(hidden.cpu, "generic");
  EXPECT_EQ(hidden.vector_bits, 128);
  EXPECT_EQ(Described("aarch64", "").cpu, "generic");
  EXPECT_THAT(Described("aarch64", "").features, ElementsAre("neon"));
  EXPECT_EQ(Described("aarch64", CpuInfo("fp asimd", "0x99", "0xd0b")).cpu, "generic");
}

// On a chip with two kinds of cores, the last cores are usually the large ones.
TEST(ArmCpuTest, TheLastUsableCoreCounts) {
  const std::string small = CpuInfo("fp asimd crc32 asimdhp asimddp", "0x41", "0xd05");
  const std::string large = absl::StrReplaceAll(
      CpuInfo("fp asimd crc32 asimdhp asimddp", "0x41", "0xd0b"), {{": 0\nBogo", ": 4\nBogo"}});
  const std::string both = small + "\n" + large;
  EXPECT_EQ(Described("aarch64", both).cpu, "cortex-a76");
  EXPECT_EQ(Described("aarch64", CpuInfoOf(both, {0})).cpu, "cortex-a55");
  EXPECT_EQ(Described("aarch64", CpuInfoOf(both, {4})).cpu, "cortex-a76");
  EXPECT_EQ(Described("aarch64", CpuInfoOf(both, {0, 4})).cpu, "cortex-a76");
  EXPECT_EQ(CpuInfoOf(both, {7}), both) << "no CPU is described";
}

TEST(ArmCpuTest, NamesTheKindOfCore) {
  EXPECT_EQ(ArmCoreName(CpuInfo("fp asimd", "0x41", "0xd05")), "cortex-a55")
      << "even without the features that the target's name implies";
  EXPECT_EQ(ArmCoreName(CpuInfo("fp asimd", "0x41", "0xfff")), "0x41 0xfff");
  EXPECT_EQ(ArmCoreName("vendor_id\t: GenuineIntel\n"), "");
}

TEST(ArmPresetTest, BoardsHaveNamesOfTheirCores) {
  for (const ArmPreset& preset : ArmPresets()) {
    EXPECT_EQ(preset.name, "arm/" + preset.target.cpu);
    EXPECT_EQ(*TargetByName(preset.name), preset.target);
  }
  EXPECT_EQ(*TargetByName("arm/cortex-a72"), *TargetByName("arm-neon"));
  EXPECT_EQ(*TargetByName("arm/cortex-a76"), *TargetByName("arm-dotprod"));
}

}  // namespace
}  // namespace hone::target

#include "common/target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/target/host.h"
#include "common/target/presets.h"
#include "common/target/x86_features.h"
#include "tests/status.h"

namespace hone::target {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Refusal(absl::string_view text) {
  const absl::Status status = Target::FromText(text).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  return std::string(status.message());
}

TEST(TargetTest, TextRoundTripsForEveryName) {
  for (const std::string& name : TargetNames()) {
    HONE_ASSERT_OK_AND_ASSIGN(const Target target, TargetByName(name));
    HONE_ASSERT_OK_AND_ASSIGN(const Target back, Target::FromText(target.ToText()));
    EXPECT_EQ(back, target);
    EXPECT_EQ(back.Key(), target.Key());
  }
}

TEST(TargetTest, KeysAreReadableAndStable) {
  // Records are stored under keys, so this key must never change.
  EXPECT_THAT(TargetByName("x86-avx512")->Key(), StartsWith("x86_64-skylake-avx512-avx512-4c-"));
  EXPECT_EQ(TargetByName("x86-avx2")->Key(), "x86_64-x86-64-v3-avx2-4c-8a577baa");
  EXPECT_THAT(TargetByName("arm-neon")->Key(), StartsWith("aarch64-cortex-a72-neon-4c-"));
  EXPECT_THAT(TargetByName("arm-dotprod")->Key(), StartsWith("aarch64-cortex-a76-neon-4c-"));
}

TEST(TargetTest, EveryFieldIsPartOfTheKey) {
  const Target base = *TargetByName("x86-avx2");
  std::vector<Target> others(12, base);
  others[0].arch = "aarch64";
  others[1].triple = "x86_64-unknown-linux-musl";
  others[2].cpu = "haswell";
  others[3].features.pop_back();
  others[4].cores = 8;
  others[5].vector_bits = 128;
  others[6].vector_registers = 8;
  others[7].l1_bytes *= 2;
  others[8].l2_bytes *= 2;
  others[9].l3_bytes *= 2;
  others[10].cache_line_bytes = 128;
  others[11].kind = Kind::kOpenCl;
  for (const Target& other : others) EXPECT_NE(other.Key(), base.Key()) << other.ToText();
}

// Texts and keys of CPUs are as they were before there were other kinds.
TEST(TargetTest, OnlyOtherKindsThanCpusAreWritten) {
  Target target = *TargetByName("x86-avx2");
  EXPECT_THAT(target.ToText(), Not(HasSubstr("kind")));
  target.kind = Kind::kCuda;
  EXPECT_THAT(target.ToText(), StartsWith("target kind=cuda arch="));
  HONE_ASSERT_OK_AND_ASSIGN(const Target back, Target::FromText(target.ToText()));
  EXPECT_EQ(back, target);
  EXPECT_THAT(Refusal(absl::StrReplaceAll(target.ToText(), {{"cuda", "vulkan"}})),
              HasSubstr("kind='vulkan' is not one of cpu, cuda and opencl"));
}

TEST(TargetTest, ParseErrorsNameTheCause) {
  const std::string good = TargetByName("x86-avx2")->ToText();
  EXPECT_THAT(Refusal(""), HasSubstr("does not begin with 'target'"));
  EXPECT_THAT(Refusal("workload x"), HasSubstr("does not begin with 'target'"));
  EXPECT_THAT(Refusal(good + " speed=9"), HasSubstr("unknown word 'speed'"));
  EXPECT_THAT(Refusal(good + " fast"), HasSubstr("key=value"));
  EXPECT_THAT(Refusal(good + " cores=2"), HasSubstr("'cores' is given twice"));
  EXPECT_THAT(Refusal(absl::StrReplaceAll(good, {{" cores=4", ""}})), HasSubstr("missing cores"));
  for (const absl::string_view bad : {"0", "-1", "many", "99999999999999999999", "1.5", ""}) {
    EXPECT_THAT(Refusal(absl::StrReplaceAll(good, {{"cores=4", absl::StrCat("cores=", bad)}})),
                HasSubstr("cores="));
  }
  EXPECT_THAT(Refusal(absl::StrReplaceAll(good, {{"avx,avx2", "avx2,avx"}})), HasSubstr("sorted"));
  EXPECT_THAT(Refusal(absl::StrReplaceAll(good, {{"avx,avx2", "avx,avx"}})), HasSubstr("sorted"));
  EXPECT_THAT(Refusal(absl::StrReplaceAll(good, {{"arch=x86_64", "arch=$(rm)"}})),
              HasSubstr("not a name"));
}

TEST(TargetTest, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(TargetByName("pdp11"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("x86-avx512")));
}

TEST(TargetTest, DetectionDescribesThisMachine) {
  const Target host = DetectHost();
  EXPECT_EQ(host.cores, UsableCores());
  EXPECT_GE(host.cores, 1);
  EXPECT_GE(host.l1_bytes, 8 << 10);
  EXPECT_GE(host.l2_bytes, host.l1_bytes);
  EXPECT_EQ(host, DetectHost());
#if defined(__x86_64__)
  __builtin_cpu_init();
  EXPECT_EQ(host.HasFeature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(host.HasFeature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(host.vector_bits == 512, host.HasFeature("avx512f") && host.HasFeature("avx512vl"));
#endif
}

TEST(TargetTest, DescribesTheHost) {
  const HostFacts facts = DescribeHost();
  EXPECT_FALSE(facts.cpu.empty());
  EXPECT_FALSE(facts.name.empty());
  EXPECT_THAT(facts.os, StartsWith("Linux"));
  EXPECT_GT(facts.memory_bytes, 0);
}

TEST(TargetTest, ANvidiaGpuHasTheFeaturesOfEarlierArchitectures) {
  const Target ampere = CudaTarget(8, 6, 72, 6 << 20, "a10");
  EXPECT_TRUE(ampere.HasFeature("sm_61"));
  EXPECT_TRUE(ampere.HasFeature("sm_86"));
  EXPECT_FALSE(ampere.HasFeature("sm_90"));
  EXPECT_TRUE(ampere.HasFeature("a10"));
  EXPECT_TRUE(CudaTarget(9, 0, 132, 50 << 20, "").HasFeature("sm_90"));  // its name is sm_90a
  EXPECT_TRUE(CudaTarget(10, 0, 148, 126 << 20, "").HasFeature("sm_80"));
  Target cpu;
  cpu.cpu = "sm_90";
  EXPECT_FALSE(cpu.HasFeature("sm_61"));
}

TEST(X86CpuNameTest, NamesTheServersOfTheLastTenYears) {
  const auto intel = [](int model, bool vnni, bool bf16) {
    return std::string(X86CpuName("GenuineIntel", 6, model, vnni, bf16));
  };
  EXPECT_EQ(intel(0x3f, false, false), "haswell");
  EXPECT_EQ(intel(0x55, false, false), "skylake-avx512");
  EXPECT_EQ(intel(0x55, true, false), "cascadelake");
  EXPECT_EQ(intel(0x55, true, true), "cooperlake");
  EXPECT_EQ(intel(0x6a, true, false), "icelake-server");
  EXPECT_EQ(intel(0x8f, true, true), "sapphirerapids");
  const auto amd = [](int family, int model) {
    return std::string(X86CpuName("AuthenticAMD", family, model, false, false));
  };
  EXPECT_EQ(amd(0x17, 0x31), "znver2");
  EXPECT_EQ(amd(0x19, 0x01), "znver3");
  EXPECT_EQ(amd(0x19, 0x11), "znver4");
  EXPECT_EQ(amd(0x19, 0x21), "znver3");
  EXPECT_EQ(amd(0x1a, 0x02), "znver5");
  EXPECT_EQ(amd(0x18, 0), "");
  EXPECT_EQ(X86CpuName("SomebodyElse", 6, 0x55, true, true), "");
}

TEST(X86CpuNameTest, FeaturesOfEveryNameAreKnown) {
  for (const absl::string_view vendor : {"GenuineIntel", "AuthenticAMD"}) {
    for (int family = 0; family < 0x40; ++family) {
      for (int model = 0; model < 0x100; ++model) {
        for (const bool vnni : {false, true}) {
          const absl::string_view name = X86CpuName(vendor, family, model, vnni, false);
          EXPECT_TRUE(name.empty() || FeaturesOfX86Cpu(name).has_value()) << name;
        }
      }
    }
  }
  for (const absl::string_view name : X86CpuNames()) {
    const auto features = FeaturesOfX86Cpu(name);
    for (const absl::string_view feature : *features) {
      EXPECT_NE(FindX86Feature(feature), nullptr) << name << ": " << feature;
    }
  }
}

TEST(X86CpuNameTest, NameNeedsAllOfItsFeatures) {
  const auto without = [](absl::string_view model, absl::string_view hidden) {
    return std::string(
        UsableX86CpuName(model, [&](const X86Feature& f) { return f.name != hidden; }));
  };
  EXPECT_EQ(without("znver5", ""), "znver5");
  EXPECT_EQ(without("icelake-server", "avxvnni"), "icelake-server");
  for (const absl::string_view hidden : {"gfni", "avx512vbmi2", "avx512bitalg", "avxvnni"}) {
    EXPECT_EQ(without("znver5", hidden), "x86-64-v4") << hidden;
  }
  EXPECT_EQ(without("sapphirerapids", "avx512fp16"), "x86-64-v4");
  EXPECT_EQ(without("znver4", "avx512cd"), "x86-64-v3");
  EXPECT_EQ(without("haswell", "movbe"), "x86-64");
  EXPECT_EQ(without("", ""), "x86-64-v4") << "an unknown model";
}

}  // namespace
}  // namespace hone::target

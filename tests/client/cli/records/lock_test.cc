#include "client/cli/records/lock.h"

#include "client/cli/exit_code.h"
#include "common/target/kernel_abi.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

LockedKernel Kernel() {
  return {.workload = "00000000000000000000000000000001",
          .signature = "relu(f32[8])",
          .target = "cpu",
          .tolerance = 0,
          .trace = "00000000000000000000000000000002",
          .record = 7,
          .measured_unix_ms = 1'700'000'000'000,
          .latency_ns = 1234.5,
          .kernel_abi = target::kKernelAbiVersion};
}

record::Record Record() {
  record::Record record;
  record.id = Kernel().record;
  record.workload_digest = Kernel().workload;
  record.target = Kernel().target;
  return record;
}

std::string Missing(absl::string_view workload, absl::string_view target, double tolerance,
                    const std::vector<LockedKernel>& kernels = {Kernel()}) {
  const auto found = FindLocked(kernels, workload, target, tolerance);
  return found.ok() ? "" : std::string(found.status().message());
}

TEST(LockFileTest, TextHasEverything) {
  LockedKernel other = Kernel();
  other.tolerance = 0.001;
  const std::string text = LockToText({Kernel(), other});
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<LockedKernel> parsed, ParseLock(text));
  ASSERT_EQ(parsed.size(), 2u);
  EXPECT_EQ(parsed[0].workload, Kernel().workload);
  EXPECT_EQ(parsed[0].signature, "relu(f32[8])");
  EXPECT_EQ(parsed[0].target, "cpu");
  EXPECT_EQ(parsed[0].trace, Kernel().trace);
  EXPECT_EQ(parsed[0].record, 7);
  EXPECT_EQ(parsed[0].measured_unix_ms, 1'700'000'000'000);
  EXPECT_EQ(parsed[0].latency_ns, 1234.5);
  EXPECT_EQ(parsed[0].kernel_abi, target::kKernelAbiVersion);
  EXPECT_EQ(parsed[1].tolerance, 0.001);
  EXPECT_EQ(LockToText(parsed), text);
}

TEST(LockFileTest, OtherFilesAreRefused) {
  GoldenOfTest golden;
  for (const char* const text :
       {"", "[]", "{\"hone_lock\": 1}", "{\"hone_lock\": 2, \"kernels\": []}",
        "{\"hone_lock\": 1, \"kernels\": [{\"workload_digest\": 3}]}"}) {
    golden.Add(text, std::string(ParseLock(text).status().message()));
  }
}

TEST(LockFileTest, AKernelReplacesThatOfTheSameTask) {
  std::vector<LockedKernel> kernels;
  EXPECT_FALSE(AddKernel(Kernel(), kernels).has_value());
  LockedKernel other = Kernel();
  other.target = "gpu";
  EXPECT_FALSE(AddKernel(other, kernels).has_value());
  LockedKernel later = Kernel();
  later.record = 9;
  const auto replaced = AddKernel(later, kernels);
  ASSERT_TRUE(replaced.has_value());
  EXPECT_EQ(replaced->record, 7);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].record, 9);
}

TEST(FindLockedTest, SaysWhyThereIsNoKernel) {
  const LockedKernel kernel = Kernel();
  EXPECT_EQ(Missing(kernel.workload, "cpu", 0), "");
  EXPECT_EQ(Missing("3", "cpu", 0), "it is not in the file");
  EXPECT_EQ(Missing(kernel.workload, "gpu", 0), "it is locked for cpu, not for gpu");
  EXPECT_EQ(Missing(kernel.workload, "cpu", 0.01),
            "it is locked for cpu, not for cpu with tolerance 0.01");
  LockedKernel old = kernel;
  old.kernel_abi = 1;
  EXPECT_THAT(Missing(kernel.workload, "cpu", 0, {old}),
              HasSubstr("version 1 of the kernel ABI, and this program has version 2"));
  LockedKernel other = old;
  other.target = "gpu";
  EXPECT_EQ(Missing(kernel.workload, "cpu", 0, {other, kernel}), "")
      << "those of other targets do not matter";
}

TEST(DriftTest, EachDifferenceIsNamed) {
  const LockedKernel locked = Kernel();
  EXPECT_EQ(DriftOf(locked, Record(), locked.trace), "");
  EXPECT_EQ(DriftOf(locked, std::nullopt, locked.trace), "record 7 is not in the store");
  EXPECT_EQ(DriftOf(locked, Record(), ""), "the kernel of record 7 is no longer in the store");
  EXPECT_EQ(DriftOf(locked, Record(), locked.workload), "record 7 is now of another schedule");
  record::Record record = Record();
  record.target = "gpu";
  EXPECT_EQ(DriftOf(locked, record, locked.trace), "record 7 is now of another workload or target");
  record = Record();
  record.tolerance = 0.01;
  EXPECT_NE(DriftOf(locked, record, locked.trace), "");
  record = Record();
  record.quarantined = true;
  record.quarantine_reason = "the output is wrong";
  EXPECT_EQ(DriftOf(locked, record, locked.trace), "record 7 is quarantined: the output is wrong");
}

TEST(DriftTest, HasAnExitCodeOfItsOwn) { EXPECT_EQ(ExitCodeFor(DriftError("it is gone")), 6); }

}  // namespace
}  // namespace hone::cli

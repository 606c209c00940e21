// Every trace of tests/bench/traces, built as the benchmarks do: it replays, compiles, and computes
// its workload within the tolerance that its rewrites state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "common/base/file.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "tests/common/schedule/tolerance_needed.h"
#include "tests/status.h"
#include "tests/worker/builder/measured_trace.h"

namespace hone {
namespace {

constexpr char kFolder[] = "tests/bench/traces";
constexpr double kRelaxed = 1e-3;

std::vector<std::string> Names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class BenchmarkTraceTest : public ::testing::TestWithParam<std::string> {};

TEST(BenchmarkTracesTest, Exist) { EXPECT_FALSE(Names().empty()) << kFolder; }

TEST_P(BenchmarkTraceTest, ComputesItsWorkload) {
  const std::string text = ReadFile(std::string(kFolder) + "/" + GetParam() + ".trace").value();
  const target::Target host = target::DetectHost();
  if (!host.HasFeature("avx512f")) GTEST_SKIP() << "the traces are for AVX-512";
  if (absl::StrContains(text, "vnni") && !host.HasFeature("avx512vnni"))
    GTEST_SKIP() << "this CPU has no VNNI";
  HONE_ASSERT_OK_AND_ASSIGN(const schedule::TraceFile file, schedule::ParseTraceFile(text));
  HONE_ASSERT_OK_AND_ASSIGN(
      const double needed,
      schedule::ToleranceNeeded(file.workload, file.parsed.trace, file.parsed.decisions));
  ASSERT_LE(needed, kRelaxed);
  const record::MeasureResult result = MeasuredTrace().Run(text, needed > 0 ? kRelaxed : 0);
  EXPECT_EQ(result.outcome, record::Outcome::kOk) << result.detail;
}

INSTANTIATE_TEST_SUITE_P(Traces, BenchmarkTraceTest, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone

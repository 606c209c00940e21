#include "client/cli/records/explanation.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

TEST(ExplanationTest, CostsAreTimesOnlyIfTheClockIsKnown) {
  EXPECT_EQ(CyclesText(1.5e6, 0.5), "750.0 us");
  EXPECT_EQ(CyclesText(812, 0), "812 cycles");
  EXPECT_EQ(CyclesText(1.52e5, 0), "152.0 kcycles");
  EXPECT_EQ(CyclesText(1.52e7, 0), "15.2 Mcycles");
}

TEST(ExplanationTest, WhatWasMeasuredIsNamed) {
  EXPECT_EQ(MeasuredText(v1::Best()), "not measured");
  v1::Best best = Measured(/*record=*/7, /*job=*/"1", /*latency_ns=*/1000, /*processes=*/3);
  EXPECT_EQ(MeasuredText(best), "record 7, 1.000 us, 1.0 GFLOP/s");
  best.set_disturbed(true);
  EXPECT_EQ(MeasuredText(best), "record 7, ~1.000 us, ~1.0 GFLOP/s");
  best.set_latency_ns(0);
  best.mutable_record()->mutable_result()->set_outcome(v1::OUTCOME_CRASH);
  EXPECT_EQ(MeasuredText(best), "record 7, crash");
  EXPECT_TRUE(MeasuredJson(best)["latency_ns"].is_null());
}

TEST(ExplanationTest, CountersAreShownAndMissingOnesAreNamedWithTheReason) {
  v1::Explanation explanation;
  explanation.mutable_best()->mutable_record()->set_id(7);
  const auto add = [](auto& values, const char* name, double value, const char* missing) {
    v1::MeasuredValue& row = *values.Add();
    row.set_name(name);
    row.set_meaning("of a test");
    row.set_value(value);
    row.set_missing(missing);
    return &row;
  };
  add(*explanation.mutable_ratios(), "instructions per cycle", 2.5, "");
  add(*explanation.mutable_ratios(), "bytes from beyond L2", 3'071'000, "")->set_estimate(12'500);
  add(*explanation.mutable_ratios(), "last-level misses", 0, "no such counter");
  add(*explanation.mutable_counters(), "page_faults", 0, "");
  add(*explanation.mutable_counters(), "llc_misses", 0, "no such counter");
  ::testing::internal::CaptureStdout();
  PrintCounters(explanation);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "\nmeasured in extra runs after the timing, for one run:\n\n"
            "measured                  value  estimate  what it is\n"
            "instructions per cycle      2.5         -  of a test\n"
            "bytes from beyond L2    3.071 M    12.5 k  of a test\n"
            "page_faults                   0         -  of a test\n"
            "\nmissing: last-level misses, llc_misses: no such counter\n");
  const Json json = CountersJson(explanation);
  EXPECT_EQ(json["ratios"][0]["value"], 2.5);
  EXPECT_TRUE(json["ratios"][0]["missing"].is_null());
  EXPECT_EQ(json["ratios"][1]["estimate"], 12'500);
  EXPECT_TRUE(json["ratios"][2]["value"].is_null()) << "a missing value is not 0";
  EXPECT_EQ(json["ratios"][2]["missing"], "no such counter");
  EXPECT_TRUE(json["not_counted"].is_null());

  explanation.set_not_counted("the kernel failed");
  ::testing::internal::CaptureStdout();
  PrintCounters(explanation);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "\nmeasured: no counters, because the kernel failed\n");
  ::testing::internal::CaptureStdout();
  PrintCounters(v1::Explanation());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "") << "a trace was not measured";
}

TEST(ExplanationTest, AWordIsARecordOrATrace) {
  const auto record = ReadScheduleArgument("4711");
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->record, 4711);
  for (const char* const number : {"0", "99999999999999999999"}) {
    EXPECT_THAT(ReadScheduleArgument(number),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("number of a record")));
  }
  const TemporaryFolder folder;
  std::ofstream(folder / "w.hone") << "workload relu\ninput A: f32[8]\noutput C[i: 8] = A[i]\n";
  EXPECT_THAT(ReadScheduleArgument(folder / "w.hone"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("w.hone is not a trace")));
  EXPECT_THAT(ReadScheduleArgument(folder / "missing.trace"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::cli

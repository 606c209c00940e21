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

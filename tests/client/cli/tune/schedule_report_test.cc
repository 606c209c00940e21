#include <string>

#include "client/cli/tune/tune_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Best MeasuredSchedule(int64_t record, const std::string& policy, int decision,
                          double latency_ns, int processes) {
  v1::Best best = Measured(record, "7", latency_ns, processes);
  best.mutable_record()->mutable_policy()->set_name(policy);
  best.set_confirmed(record > 0 && policy == "confirm");
  best.mutable_record()->mutable_candidate()->add_decisions(decision);
  return best;
}

v1::Job Checked() {
  v1::Job job = DoneJob();
  *job.mutable_default_schedule() = MeasuredSchedule(1, "confirm", 0, 4000, 3);
  *job.mutable_given() = MeasuredSchedule(0, "confirm", 1, 1000, 3);
  *job.mutable_best() = MeasuredSchedule(2, "confirm", 1, 1000, 3);
  return job;
}

std::string CheckReport(const v1::Job& job) {
  ::testing::internal::CaptureStdout();
  PrintCheck(job);
  return ::testing::internal::GetCapturedStdout();
}

TEST(ScheduleReportTest, AConfirmedScheduleIsTheBest) {
  const v1::Job job = Checked();
  EXPECT_THAT(CheckReport(job),
              AllOf(HasSubstr("latency   1.000 us on t\n"),
                    HasSubstr("default   4.000 us, speed-up 4.00x\n"),
                    HasSubstr("best      this schedule; no faster one is known\n"),
                    Not(HasSubstr("not confirmed")), Not(HasSubstr("~"))));
  Json json;
  AddCheckJson(job, json);
  EXPECT_EQ(json["confirmed"], true);
  EXPECT_EQ(json["best"]["confirmed"], true);
  EXPECT_EQ(json["default"]["confirmed"], true);
}

TEST(ScheduleReportTest, LeavesOutWhatIsUnknown) {
  v1::Job job = Checked();
  EXPECT_THAT(CheckReport(job), Not(HasSubstr("- of"))) << "the peak is unknown";
  job.mutable_given()->set_peak_gflops(4);
  EXPECT_THAT(CheckReport(job), HasSubstr("GFLOP/s   1.0 (25.0 % of the peak of 4.0)\n"));
  job.mutable_given()->set_gflops(0);
  EXPECT_THAT(CheckReport(job), Not(HasSubstr("GFLOP/s"))) << "it only moves data";
}

TEST(ScheduleReportTest, NamesAFasterBest) {
  v1::Job job = Checked();
  *job.mutable_best() = MeasuredSchedule(2, "confirm", 5, 900, 3);
  EXPECT_THAT(CheckReport(job), HasSubstr("best      900.0 ns\n"));
  job.mutable_best()->mutable_record()->set_is_default(true);
  EXPECT_THAT(CheckReport(job), HasSubstr("best      900.0 ns, the untiled default\n"));
  job.mutable_best()->mutable_record()->set_job_id("3");
  EXPECT_THAT(CheckReport(job), HasSubstr("best      900.0 ns, published by job 3\n"));
}

// Without this line, the latency of the check would contradict the best that is known.
TEST(ScheduleReportTest, NamesThePublishedFigureOfThisSchedule) {
  v1::Job job = Checked();
  *job.mutable_best() = MeasuredSchedule(2, "confirm", 1, 950, 3);
  job.mutable_best()->mutable_record()->set_job_id("3");
  EXPECT_THAT(CheckReport(job),
              AllOf(HasSubstr("latency   1.000 us on t\n"),
                    HasSubstr("best      this schedule, with 950.0 ns, published by job 3; that "
                              "figure stays, because this check is not clearly faster\n")));
  job.mutable_given()->mutable_record()->mutable_policy()->set_name("screen");
  job.mutable_given()->set_confirmed(false);
  EXPECT_THAT(CheckReport(job),
              AllOf(HasSubstr("with 950.0 ns, published by job 3; that figure stays, because this "
                              "check is not confirmed\n"),
                    HasSubstr("stays the best, as job 3 confirmed it")));
  job.mutable_best()->set_pinned_unix_ms(1'700'000'000'000);
  EXPECT_THAT(CheckReport(job), HasSubstr("that figure stays, because it is pinned\n"));
}

// Other work disturbed every measurement of the confirmation.
TEST(ScheduleReportTest, AnUnconfirmedScheduleIsMarkedAndNotTheBest) {
  v1::Job job = Checked();
  *job.mutable_given() = MeasuredSchedule(2, "screen", 1, 1000, 1);
  *job.mutable_best() = MeasuredSchedule(2, "screen", 1, 1000, 1);
  job.set_default_confirmed(false);
  job.set_disturbed(26);
  job.set_note("0 of 2 finalists were confirmed");
  EXPECT_THAT(CheckReport(job),
              AllOf(HasSubstr("latency   ~1.000 us on t\n"), HasSubstr("GFLOP/s   ~1.0\n"),
                    HasSubstr("default   ~4.000 us\n"),
                    HasSubstr("not confirmed: the schedule did not become the best"),
                    HasSubstr("0 of 2 finalists"), Not(HasSubstr("this schedule;"))));
  Json json;
  AddCheckJson(job, json);
  EXPECT_EQ(json["checked"], true);
  EXPECT_EQ(json["confirmed"], false);
  EXPECT_EQ(json["best"]["confirmed"], false);
}

// An earlier job has confirmed the same schedule.
TEST(ScheduleReportTest, AnEarlierConfirmationIsNotThatOfThisCheck) {
  v1::Job job = Checked();
  *job.mutable_given() = MeasuredSchedule(0, "screen", 1, 1000, 1);
  job.mutable_best()->mutable_record()->set_job_id("3");
  EXPECT_THAT(CheckReport(job),
              AllOf(HasSubstr("~1.000 us"), HasSubstr("not confirmed: the schedule stays the best"),
                    Not(HasSubstr("no faster one is known"))));
}

}  // namespace
}  // namespace hone::cli

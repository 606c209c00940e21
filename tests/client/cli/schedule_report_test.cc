#include "client/cli/schedule_report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

client::Best Measured(int64_t record, const std::string& policy, int decision, double latency_ns,
                      int processes) {
  client::Best best;
  best.record.id = record;
  best.record.job_id = "7";
  best.record.policy.name = policy;
  best.record.candidate.decisions = {decision};
  best.record.result.outcome = record::Outcome::kOk;
  best.record.result.latency_ns = latency_ns;
  best.record.result.reference_drift = 1;
  best.record.result.processes = processes;
  best.gflops = 1;
  return best;
}

client::Job Checked() {
  client::Job job;
  job.id = "7";
  job.target = "t";
  job.state = client::JobState::kDone;
  job.default_schedule = Measured(1, "confirm", 0, 4000, 3);
  job.given = Measured(0, "confirm", 1, 1000, 3);
  job.best = Measured(2, "confirm", 1, 1000, 3);
  return job;
}

std::string CheckReport(const client::Job& job) {
  ::testing::internal::CaptureStdout();
  PrintCheck(job);
  return ::testing::internal::GetCapturedStdout();
}

TEST(ScheduleReportTest, AConfirmedScheduleIsTheBest) {
  const client::Job job = Checked();
  EXPECT_THAT(CheckReport(job),
              AllOf(HasSubstr("latency   1.000 us on t\n"),
                    HasSubstr("default   4.000 us, 4.00 times as long\n"),
                    HasSubstr("best      this schedule; no faster one is known\n"),
                    Not(HasSubstr("not confirmed")), Not(HasSubstr("~"))));
  Json json;
  AddCheckJson(job, json);
  EXPECT_EQ(json["confirmed"], true);
  EXPECT_EQ(json["best"]["confirmed"], true);
  EXPECT_EQ(json["default"]["confirmed"], true);
}

TEST(ScheduleReportTest, NamesAFasterBest) {
  client::Job job = Checked();
  job.best = Measured(2, "confirm", 5, 900, 3);
  EXPECT_THAT(CheckReport(job), HasSubstr("best      900.0 ns is known\n"));
}

// Other work disturbed every measurement of the confirmation.
TEST(ScheduleReportTest, AnUnconfirmedScheduleIsMarkedAndNotTheBest) {
  client::Job job = Checked();
  job.given = job.best = Measured(2, "screen", 1, 1000, 1);
  job.default_schedule->record.result.processes = 1;
  job.disturbed = 26;
  job.note = "0 of 2 finalists were confirmed";
  EXPECT_THAT(CheckReport(job),
              AllOf(HasSubstr("latency   ~1.000 us on t\n"), HasSubstr("   ~1.0 ("),
                    HasSubstr("default   ~4.000 us, ~4.00 times as long\n"),
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
  client::Job job = Checked();
  job.given = Measured(0, "screen", 1, 1000, 1);
  EXPECT_THAT(CheckReport(job),
              AllOf(HasSubstr("~1.000 us"), HasSubstr("not confirmed: the schedule stays the best"),
                    Not(HasSubstr("no faster one is known"))));
}

}  // namespace
}  // namespace hone::cli

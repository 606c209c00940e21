#include "client/cli/tune/tune_report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Report(const client::Job& job) {
  ::testing::internal::CaptureStdout();
  PrintTuneReport(job, "matmul", /*peak=*/0, /*trace=*/false);
  return ::testing::internal::GetCapturedStdout();
}

TEST(TuneReportTest, ShowsTheSpeedUpOfConfirmedLatencies) {
  client::Job job = DoneJob();
  EXPECT_THAT(Report(job), AllOf(HasSubstr("2.00x"), Not(HasSubstr("less certain"))));
  job.default_schedule->record.result.processes = 0;
  EXPECT_THAT(Report(job), AllOf(HasSubstr("default, not confirmed"), Not(HasSubstr("2.00x"))));
}

TEST(TuneReportTest, AnOperatorThatOnlyMovesDataHasNoShareOfThePeak) {
  client::Job job = DoneJob();
  job.best->peak_gflops = 4;
  job.default_schedule->peak_gflops = 4;
  EXPECT_THAT(Report(job), HasSubstr("25.0 %"));
  job.best->gflops = 0;
  job.default_schedule->gflops = 0;
  EXPECT_THAT(Report(job), Not(HasSubstr("0.0 %")));
}

TEST(TuneReportTest, AShareAboveThePeakIsExplained) {
  client::Job job = DoneJob();
  job.best->peak_gflops = 4;
  job.default_schedule->peak_gflops = 4;
  EXPECT_THAT(Report(job), Not(HasSubstr("*")));
  job.best->gflops = 5;
  EXPECT_THAT(Report(job), AllOf(HasSubstr("125.0 % *"), HasSubstr("\n* more than 100 %: ")));
}

TEST(TuneReportTest, NamesTheJobForOtherCommands) {
  client::Job job = DoneJob();
  job.trials = 1;
  EXPECT_THAT(Report(job), StartsWith("job 7: matmul on t: 1 trial in 0:00\n"));
}

TEST(TuneReportTest, MarksWhatIsNotConfirmed) {
  client::Job job = DoneJob();
  EXPECT_THAT(Report(job), Not(HasSubstr("~")));
  job.default_schedule->record.result.processes = 0;
  EXPECT_THAT(Report(job), AllOf(HasSubstr("~2.000 us"), HasSubstr("  1.000 us")));
  job.best->record.id = 0;  // the fastest of a search that was cancelled at once
  EXPECT_THAT(Report(job), AllOf(HasSubstr("best, not confirmed"), HasSubstr("~1.000 us")));
}

// The best known may be that of a network, whose tasks get one even on a busy machine.
TEST(TuneReportTest, MarksABestThatWasOnlyMeasuredWhileDisturbed) {
  client::Job job = DoneJob();
  job.best->record.job_id = "3.1";
  job.best->record.result.detail = record::kOnlyDisturbed;
  EXPECT_THAT(Report(job), AllOf(HasSubstr("~1.000 us"), HasSubstr("disturbed every process"),
                                 Not(HasSubstr("2.00x")), Not(HasSubstr("does not return it"))));
}

TEST(TuneReportTest, SaysWhoMeasuredTooFewProcesses) {
  client::Job job = DoneJob();
  job.best->record.result.processes = 1;
  EXPECT_THAT(Report(job), HasSubstr("the best was measured in only one undisturbed process"));
  job.best->record.job_id = "3";
  EXPECT_THAT(Report(job), HasSubstr("job 3 measured the best known in only one undisturbed"));
}

TEST(TuneReportTest, DefaultThatIsTheBestIsAsConfirmedAsTheBest) {
  client::Job job = DoneJob();
  job.best = Measured(2, "7", 1000, 2);
  job.default_schedule = Measured(2, "7", 1000, 2);
  job.best->record.is_default = true;
  EXPECT_TRUE(client::DefaultIsConfirmed(job));
  EXPECT_THAT(Report(job), AllOf(Not(HasSubstr("default, not confirmed")), HasSubstr("1.00x")));
  job.best->record.result.detail = record::kOnlyDisturbed;
  EXPECT_FALSE(client::DefaultIsConfirmed(job));
  job.best->record.policy.name = "screen";
  EXPECT_FALSE(client::DefaultIsConfirmed(job));
}

TEST(TuneReportTest, SaysThatTheDefaultIsTheBest) {
  client::Job job = DoneJob();
  job.best = job.default_schedule;
  job.best->record.is_default = true;
  EXPECT_THAT(Report(job), HasSubstr("the best is the untiled default"));
}

TEST(TuneReportTest, ExplainsADefaultThatSeemsFaster) {
  client::Job job = DoneJob();
  EXPECT_THAT(Report(job), Not(HasSubstr("seems faster")));
  job.default_schedule = Measured(1, "7", 900, 1);
  EXPECT_THAT(Report(job), HasSubstr("the untiled default seems faster"));
  job.default_schedule = Measured(1, "7", 980, 1);
  EXPECT_THAT(Report(job), Not(HasSubstr("seems faster"))) << "it may be noise";
}

TEST(TuneReportTest, SaysThatTheBestKnownIsPinned) {
  client::Job job = DoneJob();
  job.best->record.job_id = "3";
  job.best->pinned_unix_ms = 1'700'000'000'000;
  job.best->pinned_by = "ann";
  EXPECT_THAT(Report(job), HasSubstr("the best known, of job 3, was pinned by ann on 2023-11-1"));
  job.best->record.job_id = job.id;
  job.best->record.is_default = true;
  EXPECT_THAT(Report(job), AllOf(HasSubstr("of job 7, was pinned by ann"),
                                 Not(HasSubstr("no candidate of this run was clearly faster"))));
}

TEST(TuneReportTest, NamesADisturbanceOnce) {
  client::Job job = DoneJob();
  job.disturbed = 3;
  job.disturbance = "repeated runs differed";
  EXPECT_THAT(Report(job), HasSubstr("other work disturbed 3 measurements"));
  job.note = "none could be confirmed; the last: repeated runs differed";
  EXPECT_THAT(Report(job), Not(HasSubstr("other work disturbed 3 measurements")));
}

}  // namespace
}  // namespace hone::cli

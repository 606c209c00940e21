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

std::string Report(const v1::Job& job) {
  ::testing::internal::CaptureStdout();
  PrintTuneReport(job, "matmul", /*peak=*/0, /*trace=*/false);
  return ::testing::internal::GetCapturedStdout();
}

TEST(TuneReportTest, ShowsTheSpeedUpOfConfirmedLatencies) {
  v1::Job job = DoneJob();
  EXPECT_THAT(Report(job), AllOf(HasSubstr("2.00x"), Not(HasSubstr("less certain"))));
  job.set_default_confirmed(false);
  EXPECT_THAT(Report(job), AllOf(HasSubstr("default, not confirmed"), Not(HasSubstr("2.00x"))));
}

TEST(TuneReportTest, AnOperatorThatOnlyMovesDataHasNoShareOfThePeak) {
  v1::Job job = DoneJob();
  job.mutable_best()->set_peak_gflops(4);
  job.mutable_default_schedule()->set_peak_gflops(4);
  EXPECT_THAT(Report(job), HasSubstr("25.0 %"));
  job.mutable_best()->set_gflops(0);
  job.mutable_default_schedule()->set_gflops(0);
  EXPECT_THAT(Report(job), Not(HasSubstr("0.0 %")));
}

TEST(TuneReportTest, AShareAboveThePeakIsExplained) {
  v1::Job job = DoneJob();
  job.mutable_best()->set_peak_gflops(4);
  job.mutable_default_schedule()->set_peak_gflops(4);
  EXPECT_THAT(Report(job), Not(HasSubstr("*")));
  job.mutable_best()->set_gflops(5);
  EXPECT_THAT(Report(job), AllOf(HasSubstr("125.0 % *"), HasSubstr("\n* more than 100 %: ")));
}

TEST(TuneReportTest, NamesTheJobForOtherCommands) {
  v1::Job job = DoneJob();
  job.set_trials(1);
  EXPECT_THAT(Report(job), StartsWith("job 7: matmul on t: 1 trial in 0:00\n"));
}

TEST(TuneReportTest, MarksWhatIsNotConfirmed) {
  v1::Job job = DoneJob();
  EXPECT_THAT(Report(job), Not(HasSubstr("~")));
  job.set_default_confirmed(false);
  EXPECT_THAT(Report(job), AllOf(HasSubstr("~2.000 us"), HasSubstr("  1.000 us")));
  job.mutable_best()->set_confirmed(false);  // the fastest of a search that was cancelled at once
  EXPECT_THAT(Report(job), AllOf(HasSubstr("best, not confirmed"), HasSubstr("~1.000 us")));
}

// The best known may be that of a network, whose tasks get one even on a busy machine.
TEST(TuneReportTest, MarksABestThatWasOnlyMeasuredWhileDisturbed) {
  v1::Job job = DoneJob();
  job.mutable_best()->mutable_record()->set_job_id("3.1");
  job.mutable_best()->set_disturbed(true);
  EXPECT_THAT(Report(job), AllOf(HasSubstr("~1.000 us"), HasSubstr("disturbed every process"),
                                 Not(HasSubstr("2.00x")), Not(HasSubstr("does not return it"))));
}

TEST(TuneReportTest, SaysWhoMeasuredTooFewProcesses) {
  v1::Job job = DoneJob();
  job.mutable_best()->set_processes(1);
  EXPECT_THAT(Report(job), HasSubstr("the best was measured in only one undisturbed process"));
  job.mutable_best()->mutable_record()->set_job_id("3");
  EXPECT_THAT(Report(job), HasSubstr("job 3 measured the best known in only one undisturbed"));
}

TEST(TuneReportTest, SaysThatTheDefaultIsTheBest) {
  v1::Job job = DoneJob();
  *job.mutable_best() = job.default_schedule();
  job.mutable_best()->mutable_record()->set_is_default(true);
  EXPECT_THAT(Report(job), HasSubstr("the best is the untiled default"));
}

TEST(TuneReportTest, ExplainsADefaultThatSeemsFaster) {
  v1::Job job = DoneJob();
  EXPECT_THAT(Report(job), Not(HasSubstr("seems faster")));
  job.set_default_confirmed(false);
  job.mutable_default_schedule()->set_latency_ns(900);
  EXPECT_THAT(Report(job), HasSubstr("the untiled default seems faster"));
  job.mutable_default_schedule()->set_latency_ns(980);
  EXPECT_THAT(Report(job), Not(HasSubstr("seems faster"))) << "it may be noise";
}

TEST(TuneReportTest, SaysThatTheBestKnownIsPinned) {
  v1::Job job = DoneJob();
  job.mutable_best()->mutable_record()->set_job_id("3");
  job.mutable_best()->set_pinned_unix_ms(1'700'000'000'000);
  job.mutable_best()->set_pinned_by("ann");
  EXPECT_THAT(Report(job), HasSubstr("the best known, of job 3, was pinned by ann on 2023-11-1"));
  job.mutable_best()->mutable_record()->set_job_id(job.id());
  job.mutable_best()->mutable_record()->set_is_default(true);
  EXPECT_THAT(Report(job), AllOf(HasSubstr("of job 7, was pinned by ann"),
                                 Not(HasSubstr("no candidate of this run was clearly faster"))));
}

TEST(TuneReportTest, NamesADisturbanceOnce) {
  v1::Job job = DoneJob();
  job.set_disturbed(3);
  job.set_disturbance("repeated runs differed");
  EXPECT_THAT(Report(job), HasSubstr("other work disturbed 3 measurements"));
  job.set_note("none could be confirmed; the last: repeated runs differed");
  EXPECT_THAT(Report(job), Not(HasSubstr("other work disturbed 3 measurements")));
}

}  // namespace
}  // namespace hone::cli

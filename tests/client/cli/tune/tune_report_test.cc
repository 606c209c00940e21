#include "client/cli/tune/tune_report.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

std::string Report(const v1::Job& job) {
  ::testing::internal::CaptureStdout();
  PrintTuneReport(job, "matmul", /*peak=*/0, /*trace=*/false);
  return ::testing::internal::GetCapturedStdout();
}

// The whole reports of the kinds of results are in a golden file.
TEST(TuneReportTest, TellsWhatIsKnown) {
  GoldenTexts golden("tests/client/cli/tune/testdata/tune_report.txt");
  const auto add = [&](const std::string& heading, const std::function<void(v1::Job&)>& change) {
    v1::Job job = DoneJob();
    job.set_trials(1);
    change(job);
    golden.Add(heading, WithoutTimes(Report(job)));
  };
  const auto peak = [](v1::Job& job) {
    job.mutable_best()->set_peak_gflops(4);
    job.mutable_default_schedule()->set_peak_gflops(4);
  };
  add("confirmed latencies have a speed-up", [](v1::Job&) {});
  add("the default is not confirmed", [](v1::Job& job) { job.set_default_confirmed(false); });
  add("nothing is confirmed: the fastest of a search that was cancelled at once", [](v1::Job& job) {
    job.set_default_confirmed(false);
    job.mutable_best()->set_confirmed(false);
  });
  add("the share of the peak", peak);
  add("a share above the peak", [&](v1::Job& job) {
    peak(job);
    job.mutable_best()->set_gflops(5);
  });
  add("an operator that only moves data", [&](v1::Job& job) {
    peak(job);
    job.mutable_best()->set_gflops(0);
    job.mutable_default_schedule()->set_gflops(0);
  });
  // The best known may be that of a network, whose tasks get one even on a busy machine.
  add("a best that was only measured while disturbed", [](v1::Job& job) {
    job.mutable_best()->mutable_record()->set_job_id("3.1");
    job.mutable_best()->set_disturbed(true);
  });
  add("too few processes", [](v1::Job& job) { job.mutable_best()->set_processes(1); });
  add("too few processes of another job", [](v1::Job& job) {
    job.mutable_best()->set_processes(1);
    job.mutable_best()->mutable_record()->set_job_id("3");
  });
  add("the default is the best", [](v1::Job& job) {
    *job.mutable_best() = job.default_schedule();
    job.mutable_best()->mutable_record()->set_is_default(true);
  });
  add("the default seems faster", [](v1::Job& job) {
    job.set_default_confirmed(false);
    job.mutable_default_schedule()->set_latency_ns(900);
  });
  add("the default seems faster, but it may be noise", [](v1::Job& job) {
    job.set_default_confirmed(false);
    job.mutable_default_schedule()->set_latency_ns(980);
  });
  const auto disturbed = [](v1::Job& job) {
    job.set_disturbed(3);
    job.set_disturbance("repeated runs differed");
  };
  add("disturbed measurements", disturbed);
  add("disturbed measurements that the note names", [&](v1::Job& job) {
    disturbed(job);
    job.set_note("none could be confirmed; the last: repeated runs differed");
  });
  add("the best known is pinned", [](v1::Job& job) {
    job.mutable_best()->mutable_record()->set_job_id("3");
    job.mutable_best()->set_pinned_unix_ms(1'700'000'000'000);
    job.mutable_best()->set_pinned_by("ann");
  });
  add("the best of this run is the default and pinned", [](v1::Job& job) {
    job.mutable_best()->mutable_record()->set_is_default(true);
    job.mutable_best()->set_pinned_unix_ms(1'700'000'000'000);
    job.mutable_best()->set_pinned_by("ann");
  });
}

}  // namespace
}  // namespace hone::cli

#include <functional>
#include <string>

#include "client/cli/tune/tune_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

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

// The whole reports of the kinds of results are in a golden file.
TEST(ScheduleReportTest, TellsWhatIsKnown) {
  GoldenTexts golden("tests/client/cli/tune/testdata/schedule_report.txt");
  const auto add = [&](const std::string& heading, const std::function<void(v1::Job&)>& change) {
    v1::Job job = Checked();
    change(job);
    golden.Add(heading, CheckReport(job));
    return job;
  };
  const auto add_json = [&](const v1::Job& job) {
    Json json;
    AddCheckJson(job, json);
    golden.Add("the same as JSON", json.dump(2) + "\n");
  };
  add_json(add("a confirmed schedule is the best", [](v1::Job&) {}));
  add("the share of the peak", [](v1::Job& job) { job.mutable_given()->set_peak_gflops(4); });
  add("an operator that only moves data", [](v1::Job& job) {
    job.mutable_given()->set_peak_gflops(4);
    job.mutable_given()->set_gflops(0);
  });
  const auto faster = [](v1::Job& job) {
    *job.mutable_best() = MeasuredSchedule(2, "confirm", 5, 900, 3);
  };
  add("a faster best", faster);
  add("a faster best, the default", [&](v1::Job& job) {
    faster(job);
    job.mutable_best()->mutable_record()->set_is_default(true);
  });
  add("a faster best of another job", [&](v1::Job& job) {
    faster(job);
    job.mutable_best()->mutable_record()->set_job_id("3");
  });
  // Without the line "best", the latency of the check would contradict the best that is known.
  const auto published = [](v1::Job& job) {
    *job.mutable_best() = MeasuredSchedule(2, "confirm", 1, 950, 3);
    job.mutable_best()->mutable_record()->set_job_id("3");
  };
  add("another job has published a better figure of this schedule", published);
  const auto not_confirmed = [&](v1::Job& job) {
    published(job);
    job.mutable_given()->mutable_record()->mutable_policy()->set_name("screen");
    job.mutable_given()->set_confirmed(false);
  };
  add("the same, and this check is not confirmed", not_confirmed);
  add("the same, and the figure is pinned", [&](v1::Job& job) {
    not_confirmed(job);
    job.mutable_best()->set_pinned_unix_ms(1'700'000'000'000);
  });
  add_json(add("other work disturbed every measurement of the confirmation", [](v1::Job& job) {
    *job.mutable_given() = MeasuredSchedule(2, "screen", 1, 1000, 1);
    *job.mutable_best() = MeasuredSchedule(2, "screen", 1, 1000, 1);
    job.set_default_confirmed(false);
    job.set_disturbed(26);
    job.set_note("0 of 2 finalists were confirmed");
  }));
  add("only an earlier job has confirmed this schedule", [](v1::Job& job) {
    *job.mutable_given() = MeasuredSchedule(0, "screen", 1, 1000, 1);
    job.mutable_best()->mutable_record()->set_job_id("3");
  });
}

}  // namespace
}  // namespace hone::cli

#include "client/cli/network/network_report.h"

#include "client/cli/output/svg_plot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

NetworkReport Report() {
  NetworkReport report{.network = "models/a<b.onnx", .target = "cpu & more"};
  report.tasks = {{.name = "small", .types = "f32[1] -> f32[1]", .weight = 2, .latency_ns = 1000},
                  {.name = "large",
                   .types = "f32[8] -> f32[8]",
                   .weight = 1,
                   .latency_ns = 6000,
                   .gflops = 30,
                   .limit_gflops = 40,
                   .bound = "memory",
                   .trials = 12,
                   .default_latency_ns = 9000},
                  {.name = "unknown", .weight = 1}};
  return report;
}

// The body of a report, without its style.
std::string Body(const NetworkReport& report) {
  const std::string html = ReportHtml(report);
  return WithoutTimes(html.substr(html.find("<body>")));
}

TEST(NetworkReportTest, ADisturbedTimeIsMarked) {
  GoldenOfTest golden;
  NetworkReport report = Report();
  report.measured = NetworkTiming{.fastest_ns = 2e6};
  report.measured->speed.latency_ns = 3e6;
  golden.Add(Body(report));
  report.disturbance = "others ran";
  golden.Add(Body(report));
}

TEST(NetworkReportTest, ShowsTheTasksWithTheLargestFirst) { GoldenOfTest().Add(Body(Report())); }

TEST(NetworkReportTest, MarksALatencyThatIsNotConfirmed) {
  NetworkReport report = Report();
  report.tasks[1].confirmed = false;
  GoldenOfTest().Add(Body(report));
}

TEST(NetworkReportTest, ShowsTheJob) {
  NetworkReport report = Report();
  report.measured = NetworkTiming{.speed = {.latency_ns = 8500}, .fastest_ns = 8000};
  v1::Job& job = report.job.emplace();
  job.set_id("7");
  job.set_trials(40);
  for (const int step : {1, 2}) {
    v1::NetworkEstimate& estimate = *job.mutable_network()->add_estimates();
    estimate.set_wall_ms(1000 * step);
    estimate.set_trials(8 * step);
    estimate.set_latency_ns(1e6 * (10 - step));
  }
  GoldenOfTest().Add(Body(report));
}

// Without the model, which only the client that created the job has.
TEST(NetworkReportTest, IsMadeOfAJobOfAServer) {
  v1::Job job;
  job.set_id("7");
  job.set_target("cpu");
  job.set_trials(40);
  job.mutable_network()->set_name("net.onnx");
  while (job.network().tasks_size() < 2) job.mutable_network()->add_tasks();
  for (v1::NetworkTaskProgress& task : *job.mutable_network()->mutable_tasks()) {
    task.set_workload("workload relu\ninput X: f32[8]\noutput Y[i: 8] = max(X[i], 0.0)\n");
    task.add_weights(1);
    task.add_weights(2);
    task.set_trials(20);
    task.set_default_latency_ns(9000);
    task.set_latency_ns(6000);
  }
  v1::Best best;
  best.set_confirmed(true);
  best.set_latency_ns(3000);
  HONE_ASSERT_OK_AND_ASSIGN(const auto report, MakeReport(job, {best, std::nullopt}));
  EXPECT_EQ(report.network, "net.onnx");
  EXPECT_EQ(report.tasks[0].name, "relu");
  EXPECT_EQ(report.tasks[0].types, "f32[8] -> f32[8]");
  EXPECT_EQ(report.tasks[0].weight, 3);
  EXPECT_EQ(report.tasks[0].latency_ns, 3000);
  EXPECT_EQ(report.tasks[1].latency_ns, 6000) << "of the search";
  EXPECT_FALSE(report.tasks[1].confirmed);
  EXPECT_EQ(report.tasks[1].default_latency_ns, 9000);
  GoldenOfTest().Add(Body(report));
  job.mutable_network()->mutable_tasks(0)->set_workload("nonsense");
  EXPECT_FALSE(MakeReport(job, {best, std::nullopt}).ok());
}

TEST(NetworkReportTest, ShowsOtherAlgorithmsAndTheirError) {
  NetworkReport report = Report();
  report.tasks[1].algorithm = "winograd 4";
  report.algorithm_error = 2e-6;
  GoldenOfTest().Add(Body(report));
}

TEST(NetworkReportTest, NeedsNothingElse) {
  const std::string html = ReportHtml(Report());
  for (const char* const outside :
       {"http:", "https:", "src=", "href=", "url(", "<script", "@import"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  GoldenOfTest().Add(html.substr(0, html.find("<body>")));
}

TEST(NetworkReportTest, TheFolderMustExist) {
  EXPECT_THAT(CheckReportPath(""), IsOk());
  EXPECT_THAT(CheckReportPath("report.html"), IsOk());
  EXPECT_THAT(CheckReportPath("/nowhere/report.html").message(),
              HasSubstr("there is no folder /nowhere"));
}

TEST(SvgPlotTest, TicksAreRound) {
  EXPECT_THAT(Ticks(0), ElementsAre(0, 1));
  EXPECT_THAT(Ticks(1), ElementsAre(0, 0.2, 0.4, 0.6000000000000001, 0.8, 1));
  EXPECT_THAT(Ticks(70), ElementsAre(0, 20, 40, 60, 80));
  EXPECT_THAT(Ticks(230), ElementsAre(0, 50, 100, 150, 200, 250));
}

TEST(SvgPlotTest, AValueHoldsUntilTheNextPoint) {
  const std::string svg = StepPlot({{0, 4}, {10, 2}}, "s", "ms");
  EXPECT_THAT(svg, HasSubstr("d=\"M64.0 24.0 H704.0 V132.0\""));
}

TEST(SvgPlotTest, TheLargestBarHasTheWholeWidth) {
  const std::string svg = BarPlot({{"a & b", 2, "two"}, {"c", 1, "one"}});
  GoldenOfTest().Add(svg);
}

}  // namespace
}  // namespace hone::cli

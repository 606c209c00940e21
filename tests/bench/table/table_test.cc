#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/table/markdown.h"
#include "tests/bench/table/results.h"
#include "tests/status.h"

namespace hone::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two kernels of one convolution, one of another, and a matmul. The rows of libraries are not
// kernels of Hone.
constexpr char kLines[] =
    R"({"machine":{"cpu":"A CPU","target":"x86_64-a","cores":2,"date":"2026-01-02"}}
{"comparison":{"operator":"conv2d n=1 h=4 w=4 ci=8 co=8 k=3 s=1 p=1","threads":1,"rows":[{"name":"Hone direct","algorithm":"","latency_ns":2000,"share_of_peak":0.9,"share_of_copy":0.5,"over":{"oneDNN":0.9}},{"name":"Hone fast","algorithm":"winograd","latency_ns":1000,"share_of_peak":1.8,"share_of_copy":0.9,"over":{"oneDNN":1.8}},{"name":"oneDNN","algorithm":"","latency_ns":1800,"share_of_peak":1,"share_of_copy":0.5,"over":{}}]}}
{"comparison":{"operator":"conv2d n=1 h=4 w=4 ci=8 co=8 k=1 s=1 p=0","threads":1,"rows":[{"name":"Hone one","algorithm":"","latency_ns":2000,"share_of_peak":0.4,"share_of_copy":0.5,"over":{"oneDNN":1.6}}]}}

{"comparison":{"operator":"matmul m=8 n=8 k=8","threads":2,"rows":[{"name":"Hone product","algorithm":"","latency_ns":500,"share_of_peak":0.8,"share_of_copy":0.2,"over":{"oneDNN":1.5,"OpenBLAS":0.75}}]}}
{"comparison":{"operator":"global_avg_pool n=1 h=7 w=7 c=8","threads":1,"rows":[{"name":"Hone pool","algorithm":"","latency_ns":400,"share_of_peak":0.01,"share_of_copy":0.95,"over":{"oneDNN":1.1}}]}}
{"candidates":{"operator":"matmul m=8 n=8 k=8","samples":10,"compile_median_ms":12.5,"compile_p99_ms":30,"replay_median_us":20,"replay_p99_us":50,"replay_us_per_primitive":0.8,"decision_bytes":24}}
)";

std::string Table(absl::string_view notes = "") {
  const absl::StatusOr<Results> results = ParseResults(kLines);
  EXPECT_THAT(results, IsOk());
  return results.ok() ? ToMarkdown(*results, notes) : "";
}

TEST(TableTest, NamesTheMachine) {
  EXPECT_THAT(Table(), HasSubstr("Machine: A CPU, 2 cores (x86_64-a). 2026-01-02."));
}

TEST(TableTest, SummarizesGroupsByTheGeometricMeanAndTheWorst) {
  EXPECT_THAT(Table(), HasSubstr("direct | 2 | 1 | 1.20 | 0.90 | 60 % | 40 % | 50 % |"));
}

TEST(TableTest, GlobalPoolingIsInThePoolingGroup) {
  EXPECT_THAT(Table(), HasSubstr("pooling, depthwise | 1 | 1 | 1.10 | 1.10 | 1 % | 1 % | 95 % |"));
  EXPECT_THAT(Table(), Not(HasSubstr("## Others")));
}

TEST(TableTest, TheFastestKernelOfAnOperatorCounts) {
  EXPECT_THAT(Table(), HasSubstr("Winograd allowed | 1 | 1 | 1.80 | 1.80 |"));
}

TEST(TableTest, TheFastestLibraryCounts) {
  EXPECT_THAT(Table(), HasSubstr("Matrix products | 1 | 2 | 0.75 | 0.75 |"));
}

TEST(TableTest, ListsKernelsWithoutALibraryCounterpart) {
  EXPECT_THAT(Table(), HasSubstr("| matmul m=8 n=8 k=8 | product | 2 | 500.0 ns | 80 % | 20 % | "
                                 "1.50 | 0.75 |"));
  EXPECT_THAT(Table(), HasSubstr("| fast | 1 |"));
  EXPECT_THAT(Table(), Not(HasSubstr("| oneDNN | 1 |")));
}

TEST(TableTest, ReportsTheCostOfCandidates) {
  EXPECT_THAT(Table(), HasSubstr("| matmul m=8 n=8 k=8 | 10 | 12.5 ms | 30.0 ms | 20.0 us | 50.0 "
                                 "us | 0.80 us | 24 |"));
}

TEST(TableTest, EndsWithTheNotes) { EXPECT_TRUE(Table("Because.\n").ends_with("\nBecause.\n")); }

TEST(TableTest, ParseErrorNamesTheLine) {
  EXPECT_THAT(ParseResults("{\"machine\":{}}\n").status().message(), HasSubstr("line 1"));
  EXPECT_THAT(ParseResults("\n{oops\n").status().message(), HasSubstr("line 2"));
}

}  // namespace
}  // namespace hone::bench

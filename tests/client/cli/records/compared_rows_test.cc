#include "client/cli/records/compared_rows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

using ::testing::StartsWith;

class ComparedRowsTest : public ::testing::Test {
 protected:
  // Adds processes in which a job measured the candidate with this decision; 0 is the default.
  void Measure(const std::string& job, int decision, double latency_ns, int processes) {
    for (int i = 0; i < processes; ++i) {
      record::Record record{.job_id = job, .is_default = decision == 0};
      record.candidate.decisions = {decision};
      record.policy.name = "confirm";
      record.result.outcome = record::Outcome::kOk;
      record.result.latency_ns = latency_ns;
      records_.push_back(record);
    }
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const ComparedRow& row : RowsOf(Best(), records_)) names.push_back(row.name);
    return names;
  }
  static record::Record Best() {
    record::Record best{.job_id = "1"};
    best.result.latency_ns = 10;
    best.candidate.decisions = {1};
    return best;
  }

  std::vector<record::Record> records_;
};

TEST_F(ComparedRowsTest, ShowsWhatOneJobMeasuredOftenEnough) {
  Measure("1", 0, 90, 3);
  Measure("1", 1, 10, 3);
  Measure("1", 2, 20, 3);
  Measure("1", 3, 15, 2);
  EXPECT_THAT(Names(), testing::ElementsAre("default", "best", "runner-up"));
  EXPECT_EQ(RowsOf(Best(), records_).back().latency_ns, 20);
}

// A job confirms a slow default with as few samples as its screening takes.
TEST_F(ComparedRowsTest, TheScreeningOfASlowDefaultCounts) {
  Measure("1", 0, 90, 3);
  records_.front().policy.name = "screen";
  EXPECT_THAT(Names(), testing::ElementsAre("default", "best"));
  records_.front().policy.repeats = 1 + records_.back().policy.repeats;
  EXPECT_THAT(Names(), testing::ElementsAre("best"));
}

TEST_F(ComparedRowsTest, TheCombinedResultIsNotAProcess) {
  Measure("1", 2, 20, 3);
  records_.back().result.processes = 1;  // as if the job had published it
  EXPECT_THAT(Names(), testing::ElementsAre("best"));
}

TEST_F(ComparedRowsTest, SaysWhyARowIsMissing) {
  GoldenOfTest golden;
  Measure("1", 1, 10, 3);
  EXPECT_THAT(Names(), testing::ElementsAre("best"));
  EXPECT_EQ(
      WhyMissing(/*is_default=*/true, Best(), records_),
      "no default: no job has measured the untiled default in 3 undisturbed processes. A "
      "search confirms it too, unless that takes too much of its time or other work disturbs it");
  EXPECT_THAT(WhyMissing(/*is_default=*/false, Best(), records_),
              StartsWith("no runner-up: no job has measured another program in 3 undisturbed "
                         "processes. With more trials"));
  Measure("1", 0, 90, 1);
  Measure("1", 2, 20, 2);
  Measure("2", 2, 20, 2);
  EXPECT_THAT(Names(), testing::ElementsAre("best"));
  golden.Add(WhyMissing(/*is_default=*/true, Best(), records_));
  golden.Add(WhyMissing(/*is_default=*/false, Best(), records_));
}

}  // namespace
}  // namespace hone::cli

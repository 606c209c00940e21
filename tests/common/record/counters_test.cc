#include "common/record/counters.h"

#include "common/record/processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::record {
namespace {

using ::testing::ElementsAre;

TEST(CountersTest, TextsNameValuesAndReasonsOnce) {
  const std::vector<Counter> counters = {{"cycles", 1234.5, ""},
                                         {"page_faults", 0, ""},
                                         {"l2_misses", 0, "none here"},
                                         {"llc_misses", 0, "none here"},
                                         {"flops", 0, "not allowed: ask"}};
  const std::string text = CountersText(counters);
  EXPECT_EQ(text,
            "cycles 1234.5\npage_faults 0\nl2_misses,llc_misses ? none here\n"
            "flops ? not allowed: ask\n");
  EXPECT_EQ(ParseCounters(text), counters);
}

TEST(CountersTest, MalformedLinesAreLeftOut) {
  EXPECT_THAT(ParseCounters(""), ElementsAre());
  EXPECT_THAT(ParseCounters("cycles 1e3\n\nnot a number\ncycles\ncycles nan\ncycles -1\nBAD 1\n"
                            "a,<b> ? why\nx ? \n? y"),
              ElementsAre(Counter{"cycles", 1000, ""}, Counter{"a", 0, "why"}));
}

TEST(CountersTest, SeveralProcessesHaveTheCountersOfTheLastOne) {
  MeasureResult counted;
  counted.latency_ns = 10;
  counted.counters = "cycles 1\n";
  MeasureResult later = counted, uncounted = counted;
  later.counters = "cycles 2\n";
  uncounted.counters.clear();
  EXPECT_EQ(MedianOfProcesses({counted, later, uncounted}).counters, "cycles 2\n");
}

}  // namespace
}  // namespace hone::record

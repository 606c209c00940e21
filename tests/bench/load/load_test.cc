// Tests of the load benchmark's arithmetic.

#include <cmath>

#include "gtest/gtest.h"
#include "tests/bench/load/counts.h"
#include "tests/bench/load/scrape.h"
#include "tests/bench/load/spread.h"
#include "tests/bench/load/usage.h"
#include "tests/status.h"

namespace hone::load {
namespace {

TEST(SpreadTest, QuantilesAreWithinABucket) {
  Spread spread;
  for (int i = 1; i <= 1000; ++i) spread.Add(absl::Milliseconds(i));
  EXPECT_EQ(spread.count(), 1000);
  EXPECT_NEAR(spread.QuantileMs(0.5), 500, 30);
  EXPECT_NEAR(spread.QuantileMs(0.99), 990, 55);
  EXPECT_NEAR(spread.QuantileMs(1), 1000, 55);
  EXPECT_EQ(Spread().QuantileMs(0.99), 0);
}

TEST(SpreadTest, TextRoundTrips) {
  Spread spread;
  spread.Add(absl::Microseconds(3));
  spread.Add(absl::Hours(1000));
  HONE_ASSERT_OK_AND_ASSIGN(const Spread again, Spread::Decode(spread.Encode()));
  EXPECT_EQ(again.Encode(), spread.Encode());
  EXPECT_EQ(again.count(), 2);
  for (const char* bad : {"x", "1", "1:x", "-1:2", "480:1"}) {
    EXPECT_FALSE(Spread::Decode(bad).ok()) << bad;
  }
}

TEST(CountsTest, JsonRoundTripsAndAddsUp) {
  Counts counts;
  counts.finished = 3;
  counts.failed_calls = 2;
  counts.acknowledge.Add(absl::Milliseconds(1));
  Counts sum;
  ASSERT_THAT(Counts::AddJson(counts.ToJson(), &sum), IsOk());
  ASSERT_THAT(Counts::AddJson(counts.ToJson(), &sum), IsOk());
  EXPECT_EQ(sum.finished, 6);
  EXPECT_EQ(sum.failed_calls, 4);
  EXPECT_EQ(sum.acknowledge.count(), 2);
  EXPECT_FALSE(Counts::AddJson("", &sum).ok());
}

TEST(ScrapeTest, ReadsNumbersAndHistograms) {
  const Scrape earlier = Scrape::Parse(
      "# TYPE h histogram\nh_bucket{le=\"0.01\"} 10\nh_bucket{le=\"0.1\"} "
      "10\nh_bucket{le=\"+Inf\"} "
      "10\n");
  const Scrape later = Scrape::Parse(
      "c_total{outcome=\"ok\"} 5\nc_total{outcome=\"crash\"} 2\nc_totals 9\ng 1.5\n"
      "h_bucket{le=\"0.01\"} 60\nh_bucket{le=\"0.1\"} 109\nh_bucket{le=\"+Inf\"} 110\n");
  EXPECT_EQ(later["g"], 1.5);
  EXPECT_EQ(later["missing"], 0);
  EXPECT_EQ(later.Sum("c_total"), 7);
  EXPECT_NEAR(later.Quantile(earlier, "h", 0.5), 0.01, 1e-9);
  EXPECT_NEAR(later.Quantile(earlier, "h", 0.25), 0.005, 1e-9);
  EXPECT_NEAR(later.Quantile(earlier, "h", 0.99), 0.1, 1e-9);
  EXPECT_TRUE(std::isinf(later.Quantile(earlier, "h", 0.999)));
  EXPECT_EQ(later.Quantile(later, "h", 0.5), 0) << "nothing since";
}

TEST(UsageTest, RiseFitsALineThroughNoise) {
  EXPECT_NEAR(Rise({1, 2, 3, 4}), 3, 1e-9);
  EXPECT_NEAR(Rise({5, 4, 5, 4, 5}), 0, 1e-9);
  EXPECT_EQ(Rise({7}), 0);
}

}  // namespace
}  // namespace hone::load

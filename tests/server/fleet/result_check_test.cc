#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/fleet/fleet_parts.h"

namespace hone::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

record::MeasureResult Ok(double latency_ns, double drift = 0) {
  record::MeasureResult result;
  result.latency_ns = latency_ns;
  result.samples_ns = {latency_ns};
  result.reference_drift = drift;
  return result;
}

TEST(ResultCheckTest, NoKernelIsFasterThanThePeak) {
  const WorkItem work{.fixed_flops = 1e6};
  const Capabilities device{.peak_gflops = 100};
  EXPECT_THAT(WhyImpossible(work, Ok(10000), device), IsEmpty());
  EXPECT_THAT(WhyImpossible(work, Ok(8100), device), IsEmpty())
      << "the measured peak has a tolerance";
  EXPECT_THAT(WhyImpossible(work, Ok(7900), device), HasSubstr("7900 ns"));
  EXPECT_THAT(WhyImpossible(work, Ok(1), {}), IsEmpty()) << "no peak is known";
  EXPECT_THAT(WhyImpossible({}, Ok(1), device), IsEmpty())
      << "an algorithm with fewer operations may be used";
}

TEST(ResultCheckTest, AMachineMayBeFasterThanAtItsRegistration) {
  const WorkItem work{.fixed_flops = 1e6};
  const Capabilities device{.peak_gflops = 100};
  EXPECT_THAT(WhyImpossible(work, Ok(5500, 0.5), device), IsEmpty());
  EXPECT_THAT(WhyImpossible(work, Ok(5500, 1), device), HasSubstr("5500"));
}

TEST(ResultCheckTest, DisturbedReferenceIsNotALie) {
  const WorkItem work{.fixed_flops = 1e6};
  const Capabilities device{.peak_gflops = 100};
  const auto dropped = [&](record::MeasureResult result) {
    DropImpossibleDrift(work, device, &result);
    return result;
  };
  const record::MeasureResult disturbed = dropped(Ok(12000, 1.9));
  EXPECT_EQ(disturbed.reference_drift, 1);
  EXPECT_THAT(disturbed.detail, HasSubstr("1.90"));
  EXPECT_THAT(WhyImpossible(work, disturbed, device), IsEmpty());
  EXPECT_EQ(dropped(Ok(12000, 1.2)).reference_drift, 1.2) << "plausible";
  EXPECT_EQ(dropped(Ok(5500, 0.9)).reference_drift, 0.9) << "the kernel itself is too fast";
  EXPECT_THAT(WhyImpossible(work, dropped(Ok(7900, 1.9)), device), HasSubstr("7900"));
}

TEST(ResultCheckTest, RejectsInvalidSamples) {
  record::MeasureResult result = Ok(100);
  result.samples_ns = {100, -5};
  EXPECT_THAT(WhyImpossible({}, result, {}), HasSubstr("-5"));
  result.samples_ns = {NAN};
  EXPECT_THAT(WhyImpossible({}, result, {}), HasSubstr("nan"));
}

}  // namespace
}  // namespace hone::fleet

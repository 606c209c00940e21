#include "server/fleet/result_check.h"

#include <cmath>
#include <limits>

#include "common/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

TEST(ResultCheckTest, NoKernelBeatsItsLeastOperationsAtThePeak) {
  const WorkItem work{.least_operations = 1e6};
  const Capabilities device{.peak_gflops = 100};
  EXPECT_THAT(WhyImpossible(work, Ok(10000), device), IsEmpty());
  EXPECT_THAT(WhyImpossible(work, Ok(8100), device), IsEmpty()) << "the peak was measured";
  EXPECT_THAT(WhyImpossible(work, Ok(7900), device), HasSubstr("7900 ns"));
  EXPECT_THAT(WhyImpossible(work, Ok(1), {}), IsEmpty()) << "no peak is known";
  EXPECT_THAT(WhyImpossible({}, Ok(1), device), IsEmpty()) << "nothing is known of the workload";
}

TEST(ResultCheckTest, AMachineThatIsFasterThanAtItsRegistrationIsReckonedIn) {
  const WorkItem work{.least_operations = 1e6};
  const Capabilities device{.peak_gflops = 100};
  EXPECT_THAT(WhyImpossible(work, Ok(5500, 0.5), device), IsEmpty());
  EXPECT_THAT(WhyImpossible(work, Ok(5500, 1), device), HasSubstr("5500"));
}

TEST(ResultCheckTest, ADisturbedReferenceMakesNoLiar) {
  const WorkItem work{.least_operations = 1e6};
  const Capabilities device{.peak_gflops = 100};
  const auto dropped = [&](record::MeasureResult result) {
    DropImpossibleDrift(work, device, &result);
    return result;
  };
  const record::MeasureResult disturbed = dropped(Ok(12000, 1.9));
  EXPECT_EQ(disturbed.reference_drift, 1);
  EXPECT_THAT(disturbed.detail, HasSubstr("1.90"));
  EXPECT_THAT(WhyImpossible(work, disturbed, device), IsEmpty());
  EXPECT_EQ(dropped(Ok(12000, 1.2)).reference_drift, 1.2) << "it may be so";
  EXPECT_EQ(dropped(Ok(5500, 0.9)).reference_drift, 0.9) << "this is the kernel's";
  EXPECT_THAT(WhyImpossible(work, dropped(Ok(7900, 1.9)), device), HasSubstr("7900"));
}

TEST(ResultCheckTest, ADeviceIsNotBelievedMoreThanItsTargetCanDo) {
  const target::Target target = *target::TargetByName("x86-avx2");
  const double most = MostGflops(target.ToText());
  EXPECT_EQ(most, kMostGigahertz * 4 * 8 * target.cores);
  const WorkItem work{.least_operations = 1e6};
  Capabilities boaster{.peak_gflops = 1e12, .most_gflops = most};
  EXPECT_THAT(WhyImpossible(work, Ok(0.9e6 / most), boaster), HasSubstr("its target"));
  boaster.peak_gflops = 0;
  EXPECT_THAT(WhyImpossible(work, Ok(0.9e6 / most, 1e-9), boaster), HasSubstr("its target"));
  EXPECT_EQ(MostGflops("no target"), std::numeric_limits<double>::infinity());
}

TEST(ResultCheckTest, SamplesAreNumbers) {
  record::MeasureResult result = Ok(100);
  result.samples_ns = {100, -5};
  EXPECT_THAT(WhyImpossible({}, result, {}), HasSubstr("-5"));
  result.samples_ns = {NAN};
  EXPECT_THAT(WhyImpossible({}, result, {}), HasSubstr("nan"));
}

}  // namespace
}  // namespace hone::fleet

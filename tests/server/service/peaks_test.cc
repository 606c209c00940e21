#include <utility>

#include "gtest/gtest.h"
#include "server/service/job_convert.h"
#include "tests/fakes/fake_clock.h"

namespace hone::service {
namespace {

class PeaksTest : public ::testing::Test {
 protected:
  PeaksTest() {
    fleet::WorkerReport report{.worker_id = "w", .epoch = "e"};
    report.capabilities = {
        .target = "t text", .target_key = "t", .can_run = true, .peak_gflops = 50, .read_gbps = 9};
    fleet_.Synchronize(std::move(report), [](const fleet::SynchronizeReply&) {});
  }
  ~PeaksTest() override { fleet_.Shutdown(); }

  static v1::Best BestWith(double gflops, double peak) {
    v1::Best best;
    best.mutable_record()->set_target("t");
    best.set_gflops(gflops);
    best.set_peak_gflops(peak);
    return best;
  }

  FakeClock clock_;
  fleet::ArtifactCache artifacts_;
  fleet::Fleet fleet_{&clock_, &artifacts_, {}};
};

TEST_F(PeaksTest, AStoredBestGetsThePeakOfWorkersUnlessItsWorkloadHasNone) {
  v1::Best best = BestWith(/*gflops=*/60, /*peak=*/0);
  SetPeaks(fleet_, {.has_fma_peak = true}, best);
  EXPECT_EQ(best.peak_gflops(), 50) << "not raised to what the kernel reached";
  SetPeaks(fleet_, {.has_fma_peak = false}, best);
  EXPECT_EQ(best.peak_gflops(), 0);
  EXPECT_EQ(best.read_gbps(), 9);
}

// The peak may have been measured while other programs ran.
TEST_F(PeaksTest, AKernelThatNeedsAllOperationsRaisesThePeak) {
  v1::Best best = BestWith(/*gflops=*/60, /*peak=*/0);
  v1::MeasureResult& result = *best.mutable_record()->mutable_result();
  best.mutable_record()->mutable_policy()->set_name("confirm");
  best.mutable_record()->mutable_policy()->set_cache("warm");
  result.set_outcome(v1::OUTCOME_OK);
  result.set_latency_ns(1000);
  SetPeaks(fleet_, {.fixed_flops = 60'000, .has_fma_peak = true}, best);
  EXPECT_EQ(best.peak_gflops(), 60);
  best.set_peak_gflops(0);
  SetPeaks(fleet_, {.fixed_flops = 30'000, .has_fma_peak = true}, best);
  EXPECT_EQ(best.peak_gflops(), 50);
  // With a tolerance, a kernel may need fewer operations.
  best.mutable_record()->set_tolerance(1e-3);
  SetPeaks(fleet_, {.fixed_flops = 60'000, .has_fma_peak = true}, best);
  EXPECT_EQ(best.peak_gflops(), 50);
}

TEST_F(PeaksTest, TheResultsOfAJobGetTheLargestPeakOrKeepNone) {
  v1::Job job;
  job.set_target("t");
  *job.mutable_best() = BestWith(60, 40);
  job.mutable_network()->add_tasks()->set_gflops(100);
  job.mutable_network()->add_tasks()->set_peak_gflops(45);
  SetPeaks(fleet_, job);
  EXPECT_EQ(job.best().peak_gflops(), 50);
  EXPECT_EQ(job.network().tasks(0).peak_gflops(), 0);
  EXPECT_EQ(job.network().tasks(1).peak_gflops(), 50);
  *job.mutable_best() = BestWith(60, 0);
  SetPeaks(fleet_, job);
  EXPECT_EQ(job.best().peak_gflops(), 0);
  EXPECT_EQ(job.best().read_gbps(), 9);
}

}  // namespace
}  // namespace hone::service

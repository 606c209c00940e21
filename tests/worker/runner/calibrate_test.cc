#include "worker/runner/calibrate.h"

#include <gtest/gtest.h>

#include "common/target/target.h"

namespace hone::runner {
namespace {

// Loose, because other tests use this machine at the same time.
TEST(CalibrateTest, MeasuresAPlausibleMachine) {
  const target::Target host = target::DetectHost();
  const target::Calibration measured = MeasureCalibration(host);
  std::printf("%s\n", measured.ToText().c_str());
  EXPECT_GT(measured.fma, 0);
  // Every core has several multiply-adds in flight.
  EXPECT_GT(measured.fma_latency, 1.5 * measured.fma);
  EXPECT_GT(measured.load, 0);
  EXPECT_GT(measured.store, 0);
  EXPECT_GT(measured.memory_line, 0);
  if (measured.l2_line > 0) {
    EXPECT_GT(measured.memory_line, 0.8 * measured.l2_line);
  }
  if (host.cores == 1) {  // 0 on a busy machine, too
    EXPECT_EQ(measured.fork, 0);
  }
  const auto read = target::Calibration::FromText(measured.ToText());
  EXPECT_TRUE(read.ok()) << read.status();
}

}  // namespace
}  // namespace hone::runner

#include "common/target/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/target/target.h"
#include "tests/status.h"

namespace hone::target {
namespace {

using ::testing::HasSubstr;

const Calibration kMeasured = {.fma = 0.25, .fma_latency = 1, .l2_line = 0.5, .fork = 1500};

TEST(CalibrationTest, TextsGiveTheSameValues) {
  EXPECT_EQ(kMeasured.ToText(), "fma:0.25,fma_latency:1,l2_line:0.5,fork:1500");
  HONE_ASSERT_OK_AND_ASSIGN(const Calibration read, Calibration::FromText(kMeasured.ToText()));
  EXPECT_EQ(read, kMeasured);
  HONE_ASSERT_OK_AND_ASSIGN(const Calibration none, Calibration::FromText(""));
  EXPECT_TRUE(none.empty());
}

TEST(CalibrationTest, RefusesWhatNoMachineCanHave) {
  const auto refused = [](const char* text, const char* why) {
    EXPECT_THAT(Calibration::FromText(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)))
        << text;
  };
  refused("fma:1e-9", "fma=1e-9 ns is impossible: a vector multiply-add takes 0.02 to 1000 ns");
  refused("fork:-5", "fork=-5 ns is impossible");
  refused("l2_line:nan", "impossible");
  refused("fma:inf", "impossible");
  refused("warp:1", "no constant 'warp'");
  refused("fma=1", "not of the form");
  refused("fma:1,,fork:100", "not of the form");
}

TEST(CalibrationTest, RemovesWhatNoMachineCanHave) {
  Calibration measured = {.fma = 1e-9, .load = 0.5, .memory_line = INFINITY, .fork = -5};
  measured.launch = 2000;
  measured.RemoveImpossible();
  EXPECT_EQ(measured.ToText(), "load:0.5,launch:2000");
}

// Records and bests of a machine stay valid when it is measured again.
TEST(CalibrationTest, IsNotPartOfTheKey) {
  Target target = DetectHost();
  const std::string key = target.Key(), text = target.ToText();
  target.calibration = kMeasured;
  EXPECT_EQ(target.Key(), key);
  EXPECT_EQ(target.KindText(), text);
  EXPECT_THAT(target.ToText(), HasSubstr(" calibration=fma:0.25,"));
  HONE_ASSERT_OK_AND_ASSIGN(const Target read, Target::FromText(target.ToText()));
  EXPECT_EQ(read, target);
}

}  // namespace
}  // namespace hone::target

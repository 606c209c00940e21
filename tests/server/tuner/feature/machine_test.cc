// The constants of the estimate, for people: measured ones, presets, and those that are unusual.
#include "server/tuner/feature/machine.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace hone::feature {
namespace {

MachineConstant ConstantOf(const target::Target& target, absl::string_view name) {
  const std::vector<MachineConstant> all = MachineConstants(target);
  const auto found = std::ranges::find(all, name, &MachineConstant::name);
  EXPECT_NE(found, all.end()) << name;
  return found == all.end() ? MachineConstant() : *found;
}

TEST(MachineConstants, WithoutMeasurementsTheyAreThoseOfTheKind) {
  const target::Target target = target::TargetByName("x86-avx512").value();
  EXPECT_EQ(MachineConstants(target).size(), target::CalibrationFields().size() - 1)
      << "a launch is of a GPU";
  for (const MachineConstant& constant : MachineConstants(target)) {
    EXPECT_FALSE(constant.measured) << constant.name;
    EXPECT_FALSE(constant.unusual) << constant.name;
    EXPECT_EQ(constant.ns, 0) << "the duration of a cycle is not known";
    EXPECT_EQ(constant.cycles, constant.preset_cycles);
  }
  EXPECT_EQ(ConstantOf(target, "fma").cycles, 0.5);  // two are started per cycle
}

TEST(MachineConstants, MeasuredOnesAreInCyclesOfTheLatency) {
  target::Target target = target::TargetByName("x86-avx512").value();
  target.calibration = {.fma = 0.125, .fma_latency = 1, .l2_line = 5, .memory_line = 5};
  const MachineConstant fma = ConstantOf(target, "fma");
  EXPECT_TRUE(fma.measured);
  EXPECT_DOUBLE_EQ(fma.ns, 0.125);
  EXPECT_DOUBLE_EQ(fma.cycles, 0.5);  // a cycle is 0.25 ns
  EXPECT_FALSE(fma.unusual);
  const MachineConstant l2 = ConstantOf(target, "l2_line");
  EXPECT_DOUBLE_EQ(l2.cycles, 20);
  EXPECT_TRUE(l2.unusual) << "ten times the preset";
  EXPECT_FALSE(ConstantOf(target, "memory_line").unusual);
  const MachineConstant fork = ConstantOf(target, "fork");
  EXPECT_FALSE(fork.measured);
  EXPECT_DOUBLE_EQ(fork.ns, fork.cycles / 4);
}

TEST(MachineConstants, AGpuHasNone) {
  EXPECT_TRUE(MachineConstants(target::TargetByName("nvidia/a100").value()).empty());
}

}  // namespace
}  // namespace hone::feature

// What `hone doctor` and `hone models show draft` say about the constants of machines.
#include "client/cli/fleet/machine_constants.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using State = HealthCheck::State;

v1::WorkerInfo Worker(const std::string& id) {
  v1::WorkerInfo worker;
  worker.set_id(id);
  worker.set_target("x86_64-znver4-avx512-2c-01234567");
  worker.set_connected(true);
  worker.set_can_run(true);
  return worker;
}

void AddTo(v1::WorkerInfo& worker, const std::string& name, double ns, double cycles,
           double preset_cycles, bool measured, bool unusual = false) {
  v1::MachineConstant& constant = *worker.add_constants();
  constant.set_name(name);
  constant.set_meaning("meaning of " + name);
  constant.set_ns(ns);
  constant.set_cycles(cycles);
  constant.set_preset_cycles(preset_cycles);
  constant.set_measured(measured);
  constant.set_unusual(unusual);
}

TEST(MachineConstants, EveryWorkerThatRunsKernelsIsChecked) {
  v1::WorkerInfo usual = Worker("usual"), odd = Worker("odd"), gpu = Worker("gpu"),
                 preset = Worker("preset"), away = Worker("away"), builder = Worker("builder");
  AddTo(usual, "fma", 0.13, 0.5, 0.5, true);
  AddTo(usual, "fork", 0, 12000, 12000, false);
  AddTo(odd, "fma", 0.13, 0.5, 0.5, true);
  AddTo(odd, "l2_line", 6.2, 24, 2, true, /*unusual=*/true);
  AddTo(preset, "fma", 0, 0.5, 0.5, false);
  gpu.set_calibration("fma:0.29,memory_shared_line:0.02,launch:5200");
  AddTo(away, "fma", 0.13, 0.5, 0.5, true);
  away.set_connected(false);
  builder.set_can_run(false);
  const auto checks = CheckConstants({usual, odd, gpu, preset, away, builder});
  ASSERT_EQ(checks.size(), 4u);
  for (const HealthCheck& check : checks) EXPECT_EQ(check.name, "calibration");
  EXPECT_EQ(checks[0].state, State::kOk);
  EXPECT_EQ(checks[0].finding, "usual (x86_64-znver4-avx512-2c-01234567): fma 0.13 ns");
  EXPECT_EQ(checks[1].state, State::kWarning);
  EXPECT_THAT(checks[1].finding, HasSubstr("fma 0.13 ns, l2_line 6.2 ns"));
  EXPECT_THAT(checks[1].advice, HasSubstr("l2_line is 12x the usual 2 cycles"));
  EXPECT_THAT(checks[1].advice, Not(HasSubstr("fma is")));
  EXPECT_EQ(checks[2].finding,
            "gpu (x86_64-znver4-avx512-2c-01234567): fma 0.29 ns, memory_shared_line 0.02 ns, "
            "launch 5200 ns");
  EXPECT_EQ(checks[2].state, State::kOk);
  EXPECT_THAT(checks[3].finding, HasSubstr("those of the kind of CPU"));
}

TEST(MachineConstants, AWorkerWithoutAnyIsSaidToHaveMeasuredNone) {
  v1::WorkerInfo none = Worker("none"), odd = Worker("odd");
  odd.set_calibration("fma:fast");
  for (const HealthCheck& check : CheckConstants({none, odd}))
    EXPECT_THAT(check.finding, EndsWith("): none measured"));
}

TEST(MachineConstants, TheTableSaysWhereEachComesFrom) {
  v1::WorkerInfo worker = Worker("w");
  AddTo(worker, "fma", 0.13, 0.5, 0.5, true);
  AddTo(worker, "l2_line", 6.2, 24, 2, true, /*unusual=*/true);
  AddTo(worker, "fork", 0, 12000, 12000, false);
  EXPECT_TRUE(IsMeasured(worker.constants()));
  const std::string table = ConstantsTable(worker.constants()).ToText();
  EXPECT_THAT(table, HasSubstr("measured, 12x the usual 2 cycles"));
  EXPECT_THAT(table, HasSubstr("preset"));
  const Json json = ConstantsJson(worker.constants());
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["source"], "measured");
  EXPECT_EQ(json[2]["source"], "preset");
  EXPECT_EQ(json[1]["unusual"], true);
}

}  // namespace
}  // namespace hone::cli

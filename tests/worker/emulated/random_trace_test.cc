// Code for ARM agrees with the interpreter after any legal primitives, under emulation.
//
// HONE_ARM_TRACES: number of traces per target. HONE_SEED: first seed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "tests/worker/compile/run_trace.h"
#include "tests/worker/compile/trace_check.h"

namespace hone::codegen {
namespace {

constexpr char kCount[] = "HONE_ARM_TRACES";

struct Machine {
  const char* preset;
  int vector_bits;
  int64_t traces;
};
void PrintTo(const Machine& machine, std::ostream* out) {
  *out << machine.preset << " with " << machine.vector_bits << " bits";
}

class ArmRandomTraces : public testing::TestWithParam<Machine> {};

TEST_P(ArmRandomTraces, MatchTheWorkload) {
  target::Target target = Preset(GetParam().preset);
  target.cores = 2;
  target.vector_bits = GetParam().vector_bits;
  ExpectTracesMatch(schedule::SeedRange::FromEnvironment(kCount, GetParam().traces), target,
                    kCount);
}

// Under emulation, the lengths of SVE's vectors are those that CPUs have.
INSTANTIATE_TEST_SUITE_P(
    Machines, ArmRandomTraces,
    testing::Values(Machine{"arm/cortex-a72", 128, 300}, Machine{"arm/cortex-a76", 128, 250},
                    Machine{"arm/cortex-a7", 128, 100}, Machine{"arm/neoverse-v2", 128, 100},
                    Machine{"arm/neoverse-v1", 256, 100}, Machine{"arm/neoverse-v1", 512, 100}),
    [](const auto& info) {
      return absl::StrReplaceAll(info.param.preset, {{"/", "_"}, {"-", "_"}}) + "_" +
             std::to_string(info.param.vector_bits);
    });

}  // namespace
}  // namespace hone::codegen

// Candidates of the rules and the templates for GPUs compute their workloads on an OpenCL device,
// which may be the CPU.

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/ir/dtype.h"
#include "common/target/module_call.h"
#include "common/target/open_gpu.h"
#include "common/target/opencl/targets.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/maker.h"
#include "tests/server/research/template/gpu_template_workloads.h"
#include "tests/server/tuner/space/gpu_workloads.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::space {
namespace {

std::string ToBytes(ir::DType dtype, const ir::Values& values) {
  std::string bytes(values.size() * ir::DTypeBytes(dtype), '\0');
  for (size_t e = 0; e < values.size(); ++e) {
    ir::WriteElement(dtype, bytes.data(), static_cast<int64_t>(e),
                     ir::CastTo(dtype, ir::Scalar(values[e])));
  }
  return bytes;
}

// The tensors as a device stores them.
std::vector<std::string> ToBytes(const ir::Workload& workload,
                                 const std::vector<ir::BufferId>& tensors,
                                 const std::vector<ir::Values>& values) {
  std::vector<std::string> bytes;
  for (size_t i = 0; i < tensors.size(); ++i)
    bytes.push_back(ToBytes(workload.tensors[tensors[i]].dtype, values[i]));
  return bytes;
}

// Returns "" or what is wrong.
std::string Problem(const ir::Program& program, const target::Target& target,
                    target::GpuContext& gpu, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& wanted) {
  const auto lowered = lower::Lower(program, target);
  if (!lowered.ok()) return lowered.status().ToString();
  const absl::StatusOr<codegen::Code> code = codegen::Generate(*lowered, target);
  if (!code.ok()) return code.status().ToString();
  target::GpuModule module = *code->module;
  module.code = code->bytes;
  std::vector<int64_t> sizes;
  for (const std::string& output : wanted) sizes.push_back(static_cast<int64_t>(output.size()));
  const auto outputs = target::CallModule(
      gpu, module, std::vector<absl::string_view>(inputs.begin(), inputs.end()), sizes);
  if (!outputs.ok()) return absl::StrCat(outputs.status().ToString(), "\n", module.code);
  for (size_t o = 0; o < wanted.size(); ++o) {
    if ((*outputs)[o] != wanted[o]) return absl::StrCat("output ", o, " differs\n", module.code);
  }
  return "";
}

// Runs a candidate of each space of a maker.
void ExpectRightResultsOnTheDevice(const char* text, absl::string_view maker, double tolerance) {
  constexpr int kCandidates = 1;  // a driver takes seconds to compile some of them
  const absl::StatusOr<target::Target> target = opencl::TargetOf("opencl");
  if (!target.ok()) GTEST_SKIP() << target.status().message();
  HONE_ASSERT_OK_AND_ASSIGN(const auto gpu, target::OpenGpuFor(*target));
  const auto workload = MakeWorkload(text);
  const std::vector<ir::Values> values = SmallIntegers(*workload, 3);
  const std::vector<std::string> inputs = ToBytes(*workload, workload->Inputs(), values);
  const std::vector<std::string> wanted =
      ToBytes(*workload, workload->Outputs(), ir::Interpret(*workload, values).value());
  HONE_ASSERT_OK_AND_ASSIGN(
      auto spaces,
      MakeSpaces({.workload = workload, .target = &*target, .generation = {.tolerance = tolerance}},
                 maker));
  spaces.push_back(DefaultCandidate(workload, *target).value());
  for (const auto& space : spaces) {
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(19, i);
      const auto drawn = space->Sample(rng);
      ASSERT_THAT(drawn, IsOk()) << space->name();
      const auto program = space->Replay(*drawn);
      if (!program.ok()) continue;
      ASSERT_EQ(Problem(*program, *target, *gpu, inputs, wanted), "")
          << schedule::TraceFileText(*space->workload(), space->trace(), *drawn)
          << program->ToText();
      if (space->decision_count() == 0) break;
    }
  }
}

class GpuCandidates : public testing::TestWithParam<const char*> {};
TEST_P(GpuCandidates, ComputeTheWorkloadOnTheDevice) {
  ExpectRightResultsOnTheDevice(GetParam(), "rules", /*tolerance=*/0);
}
INSTANTIATE_TEST_SUITE_P(All, GpuCandidates, testing::ValuesIn(kSmallGpuWorkloads));

class GpuTemplateCandidates : public testing::TestWithParam<const char*> {};
TEST_P(GpuTemplateCandidates, ComputeTheWorkloadOnTheDevice) {
  // The tolerance allows F(2, 3), whose results on small integers are exact.
  ExpectRightResultsOnTheDevice(GetParam(), "templates", /*tolerance=*/1e-5);
}
INSTANTIATE_TEST_SUITE_P(All, GpuTemplateCandidates, testing::ValuesIn(kSmallGpuTemplates));

}  // namespace
}  // namespace hone::space

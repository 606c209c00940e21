// AutoTVM's templates for GPUs: candidates are launches within the limits of the target and compute
// the workload, and few are invalid.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/tuner/space/maker.h"
#include "tests/server/research/template/gpu_template_workloads.h"
#include "tests/server/tuner/space/gpu_candidates.h"
#include "tests/server/tuner/space/gpu_program.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::unique_ptr<DesignSpace>> OfTemplates(
    const std::shared_ptr<const ir::Workload>& workload, const target::Target& target,
    double tolerance) {
  auto spaces =
      MakeSpaces({.workload = workload, .target = &target, .generation = {.tolerance = tolerance}},
                 "templates");
  EXPECT_THAT(spaces, IsOk());
  return spaces.ok() ? *std::move(spaces) : std::vector<std::unique_ptr<DesignSpace>>();
}

// Allows F(2, 3), whose results on small integers are exact.
std::vector<std::unique_ptr<DesignSpace>> OfExactTemplates(
    const std::shared_ptr<const ir::Workload>& workload, const target::Target& target) {
  return OfTemplates(workload, target, 1e-5);
}
std::vector<std::unique_ptr<DesignSpace>> OfAllTemplates(
    const std::shared_ptr<const ir::Workload>& workload, const target::Target& target) {
  return OfTemplates(workload, target, 1e-3);
}

class SmallGpuTemplate : public testing::TestWithParam<const char*> {};

TEST_P(SmallGpuTemplate, EveryCandidateComputesTheWorkload) {
  ExpectRightResults(GetParam(), OfExactTemplates);
}
TEST_P(SmallGpuTemplate, FewCandidatesAreInvalid) {
  ExpectFewInvalid(GetParam(), OfAllTemplates, 24);
}

INSTANTIATE_TEST_SUITE_P(All, SmallGpuTemplate, testing::ValuesIn(kSmallGpuTemplates), GpuTestName);

class LargeGpuTemplate : public testing::TestWithParam<const char*> {};

TEST_P(LargeGpuTemplate, FewCandidatesAreInvalid) {
  ExpectFewInvalid(GetParam(), OfAllTemplates, 64);
}

TEST_P(LargeGpuTemplate, CandidatesDiffer) {
  constexpr int kCandidates = 200;
  for (const auto& space : OfAllTemplates(MakeWorkload(GetParam()), Sm80())) {
    std::set<std::vector<int64_t>> vectors;
    std::set<Digest> programs;
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(17, i);
      const auto drawn = space->Sample(rng);
      ASSERT_THAT(drawn, IsOk()) << space->name();
      if (!vectors.insert(*drawn).second) continue;  // strategies propose a vector only once
      const auto program = space->Replay(*drawn);
      if (program.ok()) programs.insert(program->StructuralDigest());
    }
    // The templates for few rows only have the divisors of the reduction.
    if (space->decision_count() > 2) {
      EXPECT_GE(vectors.size(), kCandidates / 2u) << space->name();
    }
    EXPECT_GE(programs.size() * 50, vectors.size() * 49) << space->name();
  }
}

INSTANTIATE_TEST_SUITE_P(All, LargeGpuTemplate,
                         testing::Values("matmul m=1024 n=1024 k=1024",
                                         "matmul m=1009 n=997 k=1013", "dense m=8 n=1024 k=1024",
                                         // More than a grid has along y and z.
                                         "batch_matmul b=70000 m=8 n=16 k=16",
                                         "matmul m=1048576 n=64 k=64",
                                         "conv2d_nchw n=70000 h=3 w=3 ci=4 co=32 k=3 s=1 p=1",
                                         "batch_matmul b=12 m=128 n=128 k=64",
                                         // C7 and C12.
                                         "conv2d n=1 h=28 w=28 ci=128 co=256 k=3 s=2 p=1",
                                         "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1",
                                         "conv2d_nchw n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1",
                                         "conv2d_nchw n=1 h=224 w=224 ci=3 co=64 k=7 s=2 p=3",
                                         "conv2d_bn_relu n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1"),
                         GpuTestName);

std::vector<std::string> NamesOn(const target::Target& target, const char* text) {
  std::vector<std::string> names;
  for (const auto& space : OfAllTemplates(MakeWorkload(text), target))
    names.push_back(space->name());
  return names;
}

TEST(GpuTemplates, EachOperatorHasItsOwn) {
  EXPECT_THAT(NamesOn(Sm80(), "matmul m=64 n=64 k=64"), ElementsAre("gpu_matmul"));
  EXPECT_THAT(NamesOn(Sm80(), "dense m=8 n=64 k=64"),
              ElementsAre("gpu_matmul", "gpu_matmul_few_rows"));
  EXPECT_THAT(NamesOn(Sm80(), "batch_matmul b=2 m=64 n=64 k=64"), ElementsAre("gpu_batch_matmul"));
  EXPECT_THAT(NamesOn(Sm80(), "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1"),
              ElementsAre("gpu_conv2d_direct", "gpu_conv2d_winograd2", "gpu_conv2d_winograd4"));
  EXPECT_THAT(NamesOn(Sm80(), "conv2d_nchw n=1 h=7 w=7 ci=64 co=64 k=3 s=1 p=1"),
              ElementsAre("gpu_conv2d_nchw"));
  // Those for CPUs are not offered, and the other way round.
  const target::Target cpu = Avx2();
  EXPECT_THAT(NamesOn(cpu, "matmul m=64 n=64 k=64"), ElementsAre("matmul", "matmul_packed"));
}

TEST(GpuTemplates, AnOperatorWithoutOneIsRefused) {
  const target::Target target = Sm80();
  const absl::Status status =
      MakeSpaces({.workload = MakeWorkload("depthwise_conv2d n=1 h=8 w=8 c=8 k=3 s=1 p=1"),
                  .target = &target},
                 "templates")
          .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("no template for this operator on a GPU")));
}

// The knobs of AutoTVM: virtual threads, operands in shared memory, sums in registers.
TEST(GpuTemplates, TheTraceHasAutoTvmsParts) {
  const target::Target target = Sm80();
  const auto spaces =
      OfAllTemplates(MakeWorkload("conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1"), target);
  const std::string& text = spaces[0]->text();
  for (const char* const part :
       {"parts=4", "\"vthread\"", "\"blockIdx.z\"", "\"threadIdx.z\"", "\"shared\"", "\"local\""}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace hone::space

// The stages of a Winograd convolution that a transform includes.

#include "server/tuner/space/transform.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/rewrite.h"
#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

std::string ConvolutionOf(int channels) {
  return absl::StrCat("winograd_conv2d n=1 h=30 w=30 ci=", channels, " co=16");
}

class TransformsOfChannels : public testing::TestWithParam<int> {};

// A sum over one channel has one term, like a guarded copy. The products must not count as a copy:
// they are tiled, and a transform that includes them would leave nothing to tile.
TEST_P(TransformsOfChannels, ProductsAreNotATileThatIsGathered) {
  const ir::Program program = ir::Program::FromWorkload(MakeWorkload(ConvolutionOf(GetParam())));
  const std::optional<Transform> outputs = FindTransform(program, program.FindBlock("Y"));
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ(outputs->first, program.FindBlock("RowsOut"));
  EXPECT_EQ(outputs->gathered, ir::kNoNode);
  ASSERT_TRUE(FindTransform(program, program.FindBlock("V")).has_value());
}

TEST_P(TransformsOfChannels, SpacesAreMadeWithTheProductsAlone) {
  const target::Target target = target::TargetByName("x86-avx512").value();
  HONE_ASSERT_OK_AND_ASSIGN(const auto spaces,
                            GenerateDesignSpaces(MakeWorkload(ConvolutionOf(GetParam())), target));
  for (const auto& space : spaces) {
    Rng rng(1);
    HONE_ASSERT_OK_AND_ASSIGN(const auto program, space->Replay(space->Sample(rng).value()));
    EXPECT_NE(program.FindBlock("M"), ir::kNoNode) << space->name();
  }
}

INSTANTIATE_TEST_SUITE_P(All, TransformsOfChannels, testing::Values(1, 2, 16));

// The padded tile of an image is a copy: its guard makes it a sum of one term.
TEST(FindTransform, TakesAPaddedTileWithIt) {
  const auto convolution = MakeWorkload("conv2d n=1 h=8 w=8 ci=1 co=16 k=3 s=1 p=1");
  const ir::Workload rewritten =
      schedule::ApplyRewriteTo(*convolution, "winograd", "Y", {2}).value();
  const ir::Program program =
      ir::Program::FromWorkload(std::make_shared<const ir::Workload>(rewritten));
  const std::optional<Transform> inputs = FindTransform(program, program.FindBlock("Y_v"));
  ASSERT_TRUE(inputs.has_value());
  EXPECT_EQ(inputs->gathered, program.FindBlock("Y_d"));
  const std::optional<Transform> outputs = FindTransform(program, program.FindBlock("Y"));
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ(outputs->gathered, ir::kNoNode);
}

}  // namespace
}  // namespace hone::space

// Property: if a rewrite accepts a stage of a random workload, the rewritten workload under any
// schedule gives the same results as the original, bitwise on small integers. HONE_SEED and
// HONE_TRACES select other runs.
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/random_trace.h"
#include "tests/common/schedule/random_workload.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"
#include "tests/common/schedule/seed_range.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

TEST(RandomRewriteTest, ScheduledRewriteMatchesTheOriginal) {
  const SeedRange range = SeedRange::FromEnvironment("HONE_TRACES", 3000);
  std::map<std::string, int> accepted;
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    Rng rng(seed);
    const ir::Workload original = Parsed(DrawWorkload(rng).Text());
    // Rewrites that are exact on small integers. F(2, 3) has only quarters as constants.
    struct Choice {
      const char* name;
      std::vector<int64_t> numbers;
    };
    const Choice choices[] = {
        {"im2col", {}},
        {"pad_image", {}},
        {"pixel_rows", {0, static_cast<int64_t>(1 + rng.Below(8))}},
        {"pixel_rows",
         {static_cast<int64_t>(1 + rng.Below(8)), static_cast<int64_t>(1 + rng.Below(4))}},
        {"join_taps", {static_cast<int64_t>(1 + rng.Below(8))}},
        {"regroup_axes", {}},
        {"split_k", {static_cast<int64_t>(2 + rng.Below(3))}},
        {"winograd", {2}},
        {"winograd", {2}},
        {"bf16", {}}};
    const Choice& choice = choices[rng.Below(std::size(choices))];
    const ir::Stage& stage = original.stages[rng.Below(original.stages.size())];
    const std::string tensor = original.tensors[stage.tensors[0]].name;
    auto rewritten = ApplyRewriteTo(original, choice.name, tensor, choice.numbers);
    if (!rewritten.ok()) {
      EXPECT_FALSE(absl::IsInternal(rewritten.status())) << rewritten.status() << "\n"
                                                         << original.ToText();
      continue;
    }
    ++accepted[choice.name];
    const auto inputs = SmallIntegerInputs(original, rng);
    HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(original, inputs));
    const RandomTrace random =
        MakeRandomTrace(std::make_shared<const ir::Workload>(*std::move(rewritten)),
                        static_cast<uint64_t>(seed), 8);
    ASSERT_THAT(random.refusals, IsOk());
    const auto got = ir::Interpret(random.program, inputs);
    ASSERT_THAT(got, IsOk()) << "\nseed " << seed << "\n" << Describe(random);
    ASSERT_EQ(*got, expected) << "seed " << seed << ", " << choice.name << " of " << tensor
                              << " in\n"
                              << original.ToText() << Describe(random);
  }
  for (const char* name : {"bf16", "im2col", "join_taps", "pad_image", "pixel_rows", "regroup_axes",
                           "split_k", "winograd"}) {
    std::printf("%s: %d\n", name, accepted[name]);
    if (range.count >= 500) {
      EXPECT_GT(accepted[name], 5) << name;
    }
  }
}

}  // namespace
}  // namespace hone::schedule

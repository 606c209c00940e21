#include <gtest/gtest.h>

#include "common/operator/operator.h"
#include "common/schedule/trace.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/space/design_space.h"
#include "tests/status.h"

namespace hone::search {
namespace {

// A space in which only the last value of the first choice is legal, and every value of that choice
// is followed by a large number of tilings.
std::unique_ptr<space::DesignSpace> SpaceWithALongIllegalStretch() {
  const auto workload = std::make_shared<const ir::Workload>(
      op::BuildWorkload("matmul", {"m=512", "n=512", "k=512"}).value());
  schedule::ParsedTrace parsed = schedule::ParseTrace(R"(
x0 = sample_categorical(candidates=[1, 2, 4, 8])
b0 = block("C")
l0, l1, l2 = loops(b0)
x1, x2, x3 = sample_perfect_tile(l0, parts=3, max_inner=64)
x4, x5, x6 = sample_perfect_tile(l1, parts=3, max_inner=64)
x7, x8, x9 = sample_perfect_tile(l2, parts=3, max_inner=64)
l3, l4, l5 = split(l0, x1, x2, x3)
l6, l7, l8 = split(l1, x4, x5, x6)
l9, l10, l11 = split(l2, x7, x8, x9)
)")
                                     .value();
  return space::DesignSpace::Create(
             "tiled", workload, std::move(parsed.trace),
             {{"largest choice", 1, [](absl::Span<const int64_t> d) { return d[0] == 8; }}})
      .value();
}

// Each choice is followed by 54³ tilings, more than the strategy examines in one call.
TEST(GridSearch, SkipsIllegalPrefixes) {
  const std::unique_ptr<space::DesignSpace> space = SpaceWithALongIllegalStretch();
  SearchContext context{.spaces = {space.get()},
                        .target = target::TargetByName("x86-avx512").value()};
  const std::unique_ptr<SearchStrategy> grid = MakeGridSearch(std::move(context));
  HONE_ASSERT_OK_AND_ASSIGN(const auto first, grid->Propose(4, /*event=*/0, /*model=*/nullptr));
  ASSERT_EQ(first.size(), 4u);
  // Candidates come in the order of the value lists; the last site varies fastest.
  const std::vector<std::vector<int64_t>> wanted = {{8, 1, 8, 64, 1, 8, 64, 1, 8, 64},
                                                    {8, 1, 8, 64, 1, 8, 64, 1, 16, 32},
                                                    {8, 1, 8, 64, 1, 8, 64, 1, 32, 16},
                                                    {8, 1, 8, 64, 1, 8, 64, 1, 64, 8}};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(first[i].decisions, wanted[i]) << i;
}

TEST(DesignSpace, FindsTheShortestIllegalPrefix) {
  const std::unique_ptr<space::DesignSpace> space = SpaceWithALongIllegalStretch();
  EXPECT_EQ(space->BrokenPrefix({4, 8, 1, 64, 8, 1, 64, 8, 1, 64}), 1);
  EXPECT_EQ(space->BrokenPrefix({8, 8, 1, 64, 8, 1, 64, 8, 1, 64}), 0);
}

}  // namespace
}  // namespace hone::search

#include "server/research/lab/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/operator/operator.h"
#include "server/tuner/search/site_values.h"
#include "server/tuner/space/design_space.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;

constexpr char kTiled[] = R"(b0 = block("C")
l0, l1, l2 = loops(b0)
x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=0)
l3, l4 = split(l0, x0, x1)
x2, x3 = sample_perfect_tile(l1, parts=2, max_inner=0)
l5, l6 = split(l1, x2, x3)
x4 = sample_categorical(candidates=[0, 1])
loop_kind(l4, x4)
)";

// The narrowed space has the values of one decision, and gives the programs of the whole space.
TEST(WithOneOpenTest, KeepsOneDecisionOpen) {
  const auto workload = std::make_shared<const ir::Workload>(
      op::BuildWorkload("matmul", {"m=64", "n=64", "k=64"}).value());
  HONE_ASSERT_OK_AND_ASSIGN(const auto parsed, schedule::ParseTrace(kTiled));
  const std::vector<int64_t> decisions = {16, 4, 8, 8, 1};
  HONE_ASSERT_OK_AND_ASSIGN(const auto whole,
                            space::DesignSpace::Create("whole", workload, parsed.trace));
  const schedule::Trace narrowed = WithOneOpen(parsed.trace, decisions, /*open=*/2);
  EXPECT_EQ(narrowed.decisions, 5);
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, schedule::ParseTrace(narrowed.ToText()));
  HONE_ASSERT_OK_AND_ASSIGN(const auto narrow,
                            space::DesignSpace::Create("narrow", workload, again.trace));
  search::SiteValues lists;
  size_t vectors = 1;
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<schedule::Site> sites, narrow->Sites(decisions));
  for (const schedule::Site& site : sites) vectors *= lists.Count(site);
  EXPECT_EQ(vectors, 7u);  // the factors of 64
  const std::vector<int64_t> other = {16, 4, 2, 32, 1};
  HONE_ASSERT_OK_AND_ASSIGN(const ir::Program expected, whole->Replay(other));
  HONE_ASSERT_OK_AND_ASSIGN(const ir::Program program, narrow->Replay(other));
  EXPECT_EQ(program.StructuralDigest(), expected.StructuralDigest());
  EXPECT_FALSE(narrow->Replay(std::vector<int64_t>{8, 8, 2, 32, 1}).ok());
}

Slice Rough() {
  Slice slice{.task = "relu m=8", .decision = "x0, x1 = sample_perfect_tile(l0, parts=2)"};
  for (const double latency_ns : {2000.0, 1000.0, 1500.0, 0.0, 1490.0, 3000.0, 1200.0}) {
    const auto i = static_cast<int64_t>(slice.values.size());
    slice.values.push_back({{i, 2 * i}, latency_ns});
  }
  slice.chosen = 1;
  return slice;
}

TEST(SliceTest, SaysHowRoughItIs) {
  const Roughness rough = RoughnessOf(Rough());
  EXPECT_EQ(rough.values, 6);
  EXPECT_EQ(rough.minima, 1);  // 1000; 1490 is within the noise of 1500, and 1200 is an end
  EXPECT_DOUBLE_EQ(rough.spread, 3);
  EXPECT_DOUBLE_EQ(rough.step, 2);
  EXPECT_DOUBLE_EQ(rough.largest, 2.5);
  EXPECT_EQ(RoughnessOf({}).minima, 0);
  EXPECT_EQ(RoughnessOf({.values = {{{1}, 1000}, {{2}, 2000}, {{3}, 3000}}}).minima, 0);
}

TEST(SliceTest, IsATableAndAPlot) {
  const std::string text = SliceText(Rough()), svg = SliceSvg(Rough());
  EXPECT_THAT(text, HasSubstr("## relu m=8"));
  EXPECT_THAT(text, HasSubstr("which has 1×2."));
  EXPECT_THAT(text, HasSubstr("6 of its 7 values run"));
  EXPECT_THAT(text, HasSubstr("| 1 | 1×2 | 1.0 | 1.00 |"));
  EXPECT_THAT(text, HasSubstr("| 3 | 3×6 | – | – |"));
  size_t circles = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1))
    ++circles;
  EXPECT_EQ(circles, 6u);
  EXPECT_THAT(svg, HasSubstr("<title>5×10: 3.0 µs</title>"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

// A program in place of `hone` counts how often a search was made, and in which folder.
TEST(MeasureSliceTest, RepeatsOnlyTheSameSearchAndBeginsWithoutResults) {
  const TemporaryFolder folder;
  std::ofstream(folder / "hone") << "#!/bin/sh\nmkdir -p $XDG_DATA_HOME/hone\n"
                                 << "echo >> $XDG_DATA_HOME/hone/runs\necho >> " << folder / "runs"
                                 << "\n";
  std::filesystem::permissions(folder / "hone", std::filesystem::perms::owner_all);
  const auto lines = [&](const std::string& name) {
    const absl::StatusOr<std::string> text = ReadFile(folder / name);
    return text.ok() ? std::count(text->begin(), text->end(), '\n') : 0;
  };
  int searches = 0;
  const auto measure = [&](const char* task, int trials, bool is_new) {
    // It measures nothing, so there is no best schedule.
    EXPECT_FALSE(MeasureSlice({.task = task,
                               .trials = trials,
                               .program_folder = folder.path(),
                               .out = folder / "out"})
                     .ok());
    searches += is_new ? 1 : 0;
    EXPECT_EQ(lines("runs"), searches) << task << ", " << trials;
    EXPECT_EQ(lines("out/search/hone/runs"), 1) << task << ", " << trials;
  };
  measure("matmul m=16 n=16 k=16", 4, true);
  measure("matmul m=16 n=16 k=16", 4, false);
  measure("matmul m=32 n=16 k=16", 4, true);
  measure("matmul m=32 n=16 k=16", 8, true);
  measure("matmul m=16 n=16 k=16", 4, true);
}

}  // namespace
}  // namespace hone::lab

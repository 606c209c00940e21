// What a ReplayTable tells of a candidate is what its replay tells: program, digest, text, rows
// of every feature set and draft, bit for bit, over the design spaces of many operators.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/operator/operator.h"
#include "common/schedule/recorded/recorded_replay.h"
#include "common/schedule/recorded/replay_table.h"
#include "server/feature/feature_set.h"
#include "server/search/draft_score.h"
#include "server/space/maker.h"

namespace hone::search {
namespace {

using recorded::RecordedReplay;
using recorded::Recording;
using recorded::ReplayFrame;
using recorded::ReplayTable;

struct Task {
  const char* workload;
  double tolerance = 0;
  const char* maker = "";
};

constexpr Task kTasks[] = {
    {"matmul m=1024 n=1024 k=1024"},
    {"matmul m=127 n=96 k=250"},
    {"dense m=16 n=1000 k=512"},
    {"batch_matmul b=3 m=128 n=32 k=512"},
    {"conv1d n=1 l=256 ci=64 co=128 k=3 s=2 p=1"},
    {"conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1", 1},  // with Winograd's
    {"conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1 groups=4"},
    {"conv2d_bn_relu n=1 h=28 w=28 ci=128 co=256 k=1 s=2 p=0"},
    {"conv2d_transpose n=1 h=8 w=8 ci=256 co=128 k=4 s=2 p=1"},
    {"depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1"},
    {"winograd_conv2d n=1 h=14 w=14 ci=128 co=128"},
    {"softmax m=512 n=512"},
    {"norm b=1 m=512 n=512"},
    {"layer_norm m=128 n=768"},
    {"transpose_batch_matmul b=1 s=128 h=12 d=64"},
    {"quantized_matmul m=512 n=512 k=512"},
    {"matmul m=512 n=512 k=512", 0, "templates"},
    {"conv2d n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1", 1, "templates"},
    {"depthwise_conv2d n=1 h=28 w=28 c=64 k=3 s=1 p=1", 0, "templates"},
};

std::vector<std::unique_ptr<space::DesignSpace>> SpacesOf(const Task& task,
                                                          const target::Target& target) {
  std::vector<std::string> words = absl::StrSplit(task.workload, ' ');
  const std::string name = words[0];
  words.erase(words.begin());
  auto workload = std::make_shared<const ir::Workload>(op::BuildWorkload(name, words).value());
  return space::MakeSpaces({workload, &target, task.tolerance}, task.maker).value();
}

target::Target TheTarget() {
  target::Target target = *target::TargetByName("x86-avx512");
  target.cores = 2;
  return target;
}

// Everything that search reads off a program.
std::string FactsOf(const ir::Program& program, const target::Target& target) {
  std::string facts = absl::StrCat(
      program.StructuralDigest().ToHex(), "\n", program.ToText(), "\ndraft ",
      absl::Hex(std::bit_cast<uint64_t>(DraftCycles(program, DraftMachine::Of(target)))));
  for (const std::string& name : feature::FeatureSetNames()) {
    std::vector<float> rows;
    int count = 0;
    const absl::Status status =
        (*feature::FindFeatureSet(name))->Extract(program, target, rows, count);
    absl::StrAppend(&facts, "\n", name, " ", count, " ", status.ToString());
    for (const float value : rows)
      absl::StrAppend(&facts, " ", absl::Hex(std::bit_cast<uint32_t>(value)));
  }
  return facts;
}

class RecordedReplays : public testing::TestWithParam<Task> {};

TEST_P(RecordedReplays, TellWhatTheReplayTells) {
  const target::Target target = TheTarget();
  int compared = 0, served = 0;
  for (const auto& space : SpacesOf(GetParam(), target)) {
    const auto replay = RecordedReplay::Create(space->text()).value();
    ReplayTable table;
    ReplayFrame frame(&table);
    Rng rng(7);
    std::vector<std::vector<int64_t>> drawn;
    for (int i = 0; i < 160; ++i) {
      // As a search has them: draws, and what lies near earlier ones.
      const auto decisions = drawn.empty() || i % 2 == 0
                                 ? space->Sample(rng)
                                 : space->Mutate(drawn[rng.Below(drawn.size())], rng);
      if (!decisions.ok()) break;
      drawn.push_back(*decisions);
      ++compared;
      const auto program = space->Replay(*decisions);
      const absl::Span<const int64_t> lane = *decisions;
      if (const int structure = frame.Match({lane})[0]; structure >= 0) {
        ++served;
        ASSERT_EQ(table.legal(structure), program.ok())
            << space->name() << " " << absl::StrJoin(lane, ", ");
        if (program.ok()) {
          ASSERT_EQ(FactsOf(frame.ProgramOf(0), target), FactsOf(*program, target))
              << space->name() << " " << absl::StrJoin(lane, ", ");
        }
        continue;
      }
      const auto added =
          table.Add(replay->Record(lane),
                    program.ok() ? std::make_unique<const ir::Program>(*program) : nullptr);
      ASSERT_TRUE(added.ok()) << space->name() << ": " << added.status();
      ASSERT_EQ(frame.Match({lane})[0], *added) << "not of its own structure";
    }
  }
  std::printf("%s: %d of %d without a replay\n", GetParam().workload, served, compared);
  EXPECT_GT(served, compared / 8);
}

INSTANTIATE_TEST_SUITE_P(Tasks, RecordedReplays, testing::ValuesIn(kTasks), [](const auto& info) {
  std::string name = absl::StrSplit(info.param.workload, ' ').begin()->data();
  name = name.substr(0, name.find(' '));
  return absl::StrCat(name, info.index);
});

// Sixteen at a time are what one at a time are, also of several structures.
TEST(ReplayTableTest, LanesAreIndependent) {
  const target::Target target = TheTarget();
  const auto spaces = SpacesOf(kTasks[0], target);
  const space::DesignSpace& space = *spaces.back();
  const auto replay = RecordedReplay::Create(space.text()).value();
  Rng rng(3);
  ReplayTable table;
  ReplayFrame one(&table), many(&table);
  int matched = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<int64_t>> vectors = {space.Sample(rng).value()};
    while (vectors.size() < recorded::kLanes - 3)
      vectors.push_back(space.Mutate(vectors[rng.Below(vectors.size())], rng).value());
    std::vector<absl::Span<const int64_t>> lanes(vectors.begin(), vectors.end());
    if (one.Match({lanes[0]})[0] < 0) {
      auto program = space.Replay(lanes[0]);
      ASSERT_TRUE(program.ok());
      ASSERT_TRUE(
          table.Add(replay->Record(lanes[0]), std::make_unique<const ir::Program>(*program)).ok());
    }
    std::vector<int> alone;
    for (const auto& lane : lanes) alone.push_back(one.Match({lane})[0]);
    const absl::Span<const int> together = many.Match(lanes);
    ASSERT_EQ(std::vector<int>(together.begin(), together.end()), alone);
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (alone[i] < 0) continue;
      ++matched;
      ASSERT_EQ(many.ProgramOf(static_cast<int>(i)).StructuralDigest(),
                space.Replay(lanes[i])->StructuralDigest());
    }
  }
  EXPECT_GT(matched, 60);
  EXPECT_GT(table.structures(), 5);
}

// The guards are what keeps structures apart: without one of them a program takes vectors that it
// is not of, and the comparison above notices.
TEST(ReplayTableTest, NeedsItsGuards) {
  const target::Target target = TheTarget();
  int guards = 0, missed = 0;
  for (const auto& space : SpacesOf(kTasks[0], target)) {
    const auto replay = RecordedReplay::Create(space->text()).value();
    Rng rng(11);
    const std::vector<int64_t> recorded = space->Sample(rng).value();
    const auto program = space->Replay(recorded);
    if (!program.ok()) continue;
    Recording coarse = replay->Record(recorded);
    guards += static_cast<int>(coarse.guards.size());
    coarse.guards.clear();
    ReplayTable table;
    ASSERT_TRUE(table.Add(coarse, std::make_unique<const ir::Program>(*program)).ok());
    ReplayFrame frame(&table);
    for (int i = 0; i < 100; ++i) {
      const std::vector<int64_t> other = space->Sample(rng).value();
      const auto replayed = space->Replay(other);
      ASSERT_EQ(frame.Match({absl::MakeConstSpan(other)})[0], 0);
      missed +=
          !replayed.ok() || frame.ProgramOf(0).StructuralDigest() != replayed->StructuralDigest();
    }
  }
  EXPECT_GT(guards, 0);
  EXPECT_GT(missed, 0);
}

// A recording that is not of the program is refused.
TEST(ReplayTableTest, RefusesWhatTheConcreteReplayDoesNotAgreeWith) {
  const auto spaces = SpacesOf(kTasks[0], TheTarget());
  const space::DesignSpace& space = *spaces[0];
  const auto replay = RecordedReplay::Create(space.text()).value();
  Rng rng(5);
  const std::vector<int64_t> decisions = space.Sample(rng).value();
  const Recording recording = replay->Record(decisions);
  EXPECT_EQ(ReplayTable().Add(recording, nullptr).status().code(), absl::StatusCode::kInternal);
  for (int i = 0; i < 10; ++i) {
    const auto program = space.Replay(space.Sample(rng).value());
    if (!program.ok() || program->StructuralDigest() == space.Replay(decisions)->StructuralDigest())
      continue;
    EXPECT_EQ(
        ReplayTable().Add(recording, std::make_unique<const ir::Program>(*program)).status().code(),
        absl::StatusCode::kInternal);
    return;
  }
  FAIL() << "no other program found";
}

}  // namespace
}  // namespace hone::search

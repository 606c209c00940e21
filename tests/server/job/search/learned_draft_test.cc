// What a server has learned from all tasks of a target reaches the next job, and only that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/target/target.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/search/draft_work.h"
#include "server/tuner/cost_model/model_file.h"
#include "server/tuner/cost_model/registry.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::ElementsAre;

const std::string kAvx2 = target::TargetByName("x86-avx2")->ToText();

class LearnedDraftTest : public ::testing::Test, protected JobHarness {
 protected:
  int64_t Store(std::string bytes, const std::string& target = "t",
                const std::string& origin = "") {
    int64_t row = 0;
    store.PutModel({.key = {.name = kLearnedDraft, .feature_set = kLearnedDraft, .target = target},
                    .version = 1,
                    .records = 100,
                    .bytes = std::move(bytes),
                    .origin = origin},
                   [&](absl::StatusOr<int64_t> id) { row = id.value_or(-1); });
    EXPECT_GT(row, 0);
    return row;
  }
};

TEST_F(LearnedDraftTest, TheNewestOfTheTargetIsFound) {
  EXPECT_EQ(NewestDraft(store, "t").value(), 0);
  Store("first");
  const int64_t second = Store("second");
  Store("of another machine", "u");
  EXPECT_EQ(NewestDraft(store, "t").value(), second);
}

TEST_F(LearnedDraftTest, AnImportedDraftIsUsedUntilTheServerHasItsOwn) {
  const int64_t imported = Store("imported", "t", "another server");
  EXPECT_EQ(NewestDraft(store, "t").value(), imported);
  const std::string job = Create(Spec(20));
  EXPECT_EQ(RunToEnd(job)->spec.draft_model, imported);
  const int64_t own = Store("own");
  Store("the same import again", "t", "another server");
  EXPECT_EQ(NewestDraft(store, "t").value(), own);
}

// Those of similar machines first; not its own, not those of another architecture, not what has
// learned nothing, and not what another target took from one that may be this one.
TEST_F(LearnedDraftTest, DraftsOfOtherMachinesAreFoundBySimilarity) {
  const auto bytes = [](const std::string& text, uint32_t columns = 1) {
    return cost_model::EncodeModel(
        {.name = kLearnedDraft, .version = 1, .feature_set = kLearnedDraft, .columns = columns},
        text);
  };
  const auto put = [&](const std::string& key, const target::Target& target, store::ModelRow row) {
    row.key.name = row.key.feature_set = kLearnedDraft;
    row.key.target = key;
    row.version = 1;
    row.records = 100;
    row.target_text = target.ToText();
    if (row.bytes.empty()) row.bytes = bytes(key);
    store.PutModel(std::move(row),
                   [](const absl::StatusOr<int64_t>& id) { EXPECT_THAT(id, IsOk()); });
  };
  target::Target mine = *target::TargetByName("x86-avx2"), slow = mine, alike = mine;
  mine.calibration.fma = slow.calibration.fma = alike.calibration.fma = 0.2;
  slow.calibration.fma = 0.8;
  alike.cores = 2 * mine.cores;
  put("slow", slow, {});
  put("alike", alike, {});
  put("mine", mine, {});
  put("mine", mine, {.bytes = bytes("returned"), .origin = "me (store " + *store.Identity() + ")"});
  put("arm", *target::TargetByName("arm-neon"), {});
  put("presets", mine, {.bytes = bytes("nothing", 0)});
  put("taker", mine, {.metrics = R"({"is_foreign": true})"});
  put("matmul", mine, {.key = {.scope = "matmul"}});
  EXPECT_THAT(ForeignDrafts(store, "mine", mine.ToText()),
              ElementsAre(bytes("alike"), bytes("slow"), ShippedDraft(mine)));
  const std::string arm = target::TargetByName("arm-neon")->ToText();
  EXPECT_THAT(ForeignDrafts(store, "other", arm), ElementsAre(bytes("arm")));
  EXPECT_TRUE(ForeignDrafts(store, "mine", "no target").empty());
}

// CPUs like those on which it was shown to help begin with what comes with the program. Those with
// wider vectors only try it on their first results.
TEST_F(LearnedDraftTest, WhatIsShippedServesCpusWithAvx2) {
  const auto compiler = MakeCompilerEnvironment(1);
  EXPECT_NE(LoadDraft(nullptr, *compiler, 0, kAvx2), nullptr);
  for (const char* name : {"x86-avx512", "arm-neon", "nvidia/t4"}) {
    const target::Target other = *target::TargetByName(name);
    EXPECT_EQ(ShippedDraft(other), "") << name;
    EXPECT_EQ(LoadDraft(nullptr, *compiler, 0, other.ToText()), nullptr) << name;
  }
  const std::string wide = target::TargetByName("x86-avx512")->ToText();
  EXPECT_THAT(ForeignDrafts(store, "wide", wide), ::testing::SizeIs(1));
}

// The constants that a worker has measured are better than the presets that a learned draft
// multiplies.
TEST_F(LearnedDraftTest, ADraftThatLearnedNothingIsNotUsed) {
  const auto untrained = *cost_model::CreateCostModel(kLearnedDraft, {});
  EXPECT_EQ(LoadDraft(&store, *MakeCompilerEnvironment(1), Store(*untrained->Save()), kAvx2),
            nullptr);
}

TEST_F(LearnedDraftTest, AJobKeepsTheDraftThatItBeganWith) {
  const int64_t first = Store("first");
  const std::string job = Create(Spec(20));
  Store("second");
  const auto ended = RunToEnd(job);
  ASSERT_EQ(ended->state, JobState::kDone) << ended->error;
  EXPECT_EQ(ended->spec.draft_model, first);
}

// Damaged bytes, a version that this program does not know, a row that is gone: the search begins
// with the constants of the target.
TEST_F(LearnedDraftTest, WhatCannotBeReadIsNotUsed) {
  const auto compiler = MakeCompilerEnvironment(1);
  EXPECT_EQ(LoadDraft(&store, *compiler, 4711, kAvx2), nullptr);
  EXPECT_EQ(LoadDraft(&store, *compiler, Store("no model at all"), kAvx2), nullptr);
  EXPECT_EQ(LoadDraft(&store, *compiler, 0, "no target"), nullptr);
  const std::string job = Create(Spec(20));
  EXPECT_EQ(RunToEnd(job)->state, JobState::kDone);
}

TEST_F(LearnedDraftTest, EveryResultIsCountedForLearning) {
  RunToEnd(Create(Spec(20)));
  EXPECT_EQ(noted["t"], 21) << "with the default schedule";
}

}  // namespace
}  // namespace hone::job

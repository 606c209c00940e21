// Random workloads of 1 to 40 stages are drafted for every preset of a target: the time is bounded,
// and the draft is a legal schedule that computes the workload.

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "gtest/gtest.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/search/task_search.h"
#include "tests/server/job/search/random_workload.h"
#include "tests/status.h"

namespace hone::job {
namespace {

TEST(DraftProperty, RandomWorkloadsHaveADraftOnEveryPreset) {
  const char* const given = std::getenv("HONE_SEED");
  const uint64_t seed = given == nullptr ? 42 : std::strtoull(given, nullptr, 10);
  RecordProperty("seed", absl::StrCat(seed));
  const auto environment = MakeCompilerEnvironment(/*threads=*/1);
  Rng rng(seed);
  uint64_t number = 0;
  for (const std::string& preset : target::TargetNames()) {
    const int stages = 1 + static_cast<int>(rng.Below(40));
    const uint64_t key = seed * 1000 + number++;
    SCOPED_TRACE(absl::StrCat("HONE_SEED=", seed, ", ", preset, ", workload ", key, " of ", stages,
                              " stages"));
    const std::string workload = RandomWorkload(key, stages);
    DraftCase drafted;
    const absl::Status status = DraftOnce(*environment, workload, preset, drafted);
    EXPECT_THAT(status, IsOk()) << workload;
    if (!status.ok() || number % 4 != 0) continue;
    EXPECT_THAT(CheckDraft(drafted.trace, key), IsOk()) << drafted.trace;
  }
}

// A chain of products with element-wise stages between them, some of which read earlier ones.
std::string Chain(int products, bool connected) {
  std::string text = "workload chain\ninput X: f32[96, 96]\ninput W: f32[96, 96] constant\n";
  std::string last = "X";
  for (int p = 0; p < products; ++p) {
    absl::StrAppend(&text, p + 1 == products && !connected ? "output " : "", "P", p,
                    "[i: 96, j: 96] = sum(k: 96) ", last, "[i, k] * W[k, j]\n");
    last = absl::StrCat("P", p);
    if (!connected) continue;
    absl::StrAppend(&text, p + 1 == products ? "output " : "", "S", p, "[i: 96, j: 96] = max(P", p,
                    "[i, j] * 0.1, 0.0) + ", p < 4 ? "X" : absl::StrCat("S", p - 4), "[i, j]\n");
    last = absl::StrCat("S", p);
  }
  return text;
}

class LongChain : public testing::TestWithParam<std::string> {};

TEST_P(LongChain, TilesEveryProduct) {
  const auto environment = MakeCompilerEnvironment(/*threads=*/1);
  for (const bool connected : {false, true}) {
    constexpr int kProducts = 12;
    DraftCase drafted;
    ASSERT_THAT(DraftOnce(*environment, Chain(kProducts, connected), GetParam(), drafted), IsOk());
    EXPECT_LE(drafted.spaces, 8u);
    HONE_ASSERT_OK_AND_ASSIGN(const auto file, schedule::ParseTraceFile(drafted.trace));
    int samplings = 0;
    for (const schedule::Instruction& instruction : file.parsed.trace.instructions)
      samplings += instruction.primitive->samples ? 1 : 0;
    EXPECT_GE(samplings, 3 * kProducts) << drafted.trace;
  }
}

TEST_P(LongChain, IsAsFastAsItsParts) {
  const auto environment = MakeCompilerEnvironment(/*threads=*/1);
  constexpr int kProducts = 12;
  DraftCase one, all;
  ASSERT_THAT(DraftOnce(*environment, Chain(1, /*connected=*/false), GetParam(), one), IsOk());
  ASSERT_THAT(DraftOnce(*environment, Chain(kProducts, /*connected=*/false), GetParam(), all),
              IsOk());
  EXPECT_LE(all.cycles, 1.15 * kProducts * one.cycles);
}

// All strategies of the default search propose legal candidates after results.
TEST(LongChainSearch, ContinuesAfterResults) {
  const auto environment = MakeCompilerEnvironment(/*threads=*/1);
  HONE_ASSERT_OK_AND_ASSIGN(const auto spaces,
                            environment->Open(Chain(12, /*connected=*/true),
                                              target::TargetByName("x86-avx512")->ToText(), "", 0));
  HONE_ASSERT_OK_AND_ASSIGN(const auto search,
                            TaskSearch::Create(environment.get(), spaces.get(),
                                               {.strategy = environment->default_strategy(),
                                                .cost_model = environment->default_cost_model()},
                                               /*prior=*/{}));
  for (int round = 0; round < 6; ++round) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto event, search->Propose(8));
    ASSERT_FALSE(event.proposals.empty());
    for (const Proposal& proposal : event.proposals) {
      ASSERT_GE(proposal.trial, 0);
      const double latency = 1000 + static_cast<double>(proposal.trial * 7919 % 101);
      search->Tell(proposal.trial, {proposal.candidate, record::Outcome::kOk, latency});
    }
    search->TakeTells();
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, LongChain,
                         testing::Values("x86-avx512", "arm/neoverse-v1", "nvidia/a100",
                                         "generic/opencl"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace hone::job

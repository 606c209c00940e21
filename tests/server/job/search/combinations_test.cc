// Combinations of strategies, cost models and design spaces, with the real task environment but
// without a device. Each search must propose new legal candidates, learn from their results, and
// reproduce its proposals after a restart.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/target/target.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/search/task_search.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/maker.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;

constexpr char kWorkload[] =
    "workload dense\n"
    "input A: f32[24, 12]\n"
    "input B: f32[12, 32] constant\n"
    "output C[i: 24, j: 32] = sum(k: 12) A[i, k] * B[k, j]\n";
constexpr char kTrace[] =
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2)\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "x2, x3 = sample_perfect_tile(l1, parts=2, max_inner=16)\n"
    "l5, l6 = split(l1, x2, x3)\n"
    "reorder(l3, l5, l2, l4, l6)\n"
    "vectorize(l6)\n"
    "parallel(l3)\n";

std::string TargetText() { return target::TargetByName("x86-avx2")->ToText(); }

// A latency that depends on all decisions.
double Latency(const record::Candidate& candidate) {
  double latency = 1000;
  for (size_t d = 0; d < candidate.decisions.size(); ++d)
    latency += static_cast<double>(candidate.decisions[d] * static_cast<int64_t>(7 + d) % 13) * 40;
  return latency;
}

// The names of the space makers, and a trace as text.
std::vector<std::string> Spaces() {
  std::vector<std::string> spaces;
  for (const space::SpaceMaker& maker : space::SpaceMakers()) spaces.emplace_back(maker.name);
  spaces.push_back(absl::StrCat(kWorkload, kTrace));
  return spaces;
}

struct Combination {
  std::string strategy, cost_model, space, feature_set;
};

std::string NameOf(const Combination& c) {
  const std::string space = space::IsTraceText(c.space) ? "trace" : c.space;
  return absl::StrReplaceAll(
      absl::StrCat(c.strategy, "_", c.cost_model, "_", space,
                   c.feature_set.empty() ? "" : absl::StrCat("_", c.feature_set)),
      {{"-", "_"}});
}

// Networks that differ only in their layers and sizes from `mlp` and `tlp-fast`, which stand for
// them with every strategy.
bool IsOneOfTheNetworks(absl::string_view model) {
  for (const absl::string_view name : {"looptree", "mlp-tenset", "mtl-tlp", "state-value", "tlp",
                                       "tlp-lstm", "tlp-mse", "tlp-published", "treegru"}) {
    if (model == name) return true;
  }
  return false;
}

std::vector<Combination> All() {
  std::vector<Combination> all;
  for (const std::string& space : Spaces()) {
    // The small space gets all pairs. The other spaces get every strategy with xgboost, and every
    // model with random search.
    const bool small = space::IsTraceText(space);
    for (const std::string& strategy : search::SearchStrategyNames()) {
      for (const std::string& model : cost_model::CostModelNames()) {
        if ((small && !IsOneOfTheNetworks(model)) || strategy == "random" || model == "xgboost")
          all.push_back({strategy, model, space, ""});
      }
    }
    // AutoTVM's combination, and the other feature sets with a learning model.
    for (const std::string& features : feature::FeatureSetNames())
      all.push_back({"evolutionary", "xgboost-rank", space, features});
  }
  return all;
}

class CombinationTest : public ::testing::TestWithParam<Combination> {
 protected:
  absl::StatusOr<std::unique_ptr<TaskSearch>> Make(const TaskSpaces* spaces) {
    return TaskSearch::Create(environment_.get(), spaces,
                              {.strategy = GetParam().strategy,
                               .cost_model = GetParam().cost_model,
                               .feature_set = GetParam().feature_set,
                               .seed = 3},
                              {});
  }
  const std::unique_ptr<TaskEnvironment> environment_ = MakeCompilerEnvironment(1);
};

TEST_P(CombinationTest, SearchesLearnsAndRestarts) {
  constexpr int kBatches = 3, kBatch = 8;
  ASSERT_THAT(environment_->CheckSpace(kWorkload, GetParam().space), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto spaces,
                            environment_->Open(kWorkload, TargetText(), GetParam().space, 0));
  HONE_ASSERT_OK_AND_ASSIGN(auto search, Make(spaces.get()));
  std::vector<store::JobEvent> log;
  std::set<std::pair<std::string, std::vector<int64_t>>> seen;
  for (int batch = 0; batch < kBatches; ++batch) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto event, search->Propose(kBatch));
    log.push_back(Encode("job", event));
    for (const Proposal& proposal : event.proposals) {
      ASSERT_GE(proposal.trial, 0) << "the candidate is illegal or known";
      const record::Candidate& candidate = proposal.candidate;
      EXPECT_TRUE(spaces->IsLegal(candidate));
      EXPECT_TRUE(seen.insert({candidate.space_digest, candidate.decisions}).second);
      search->Tell(proposal.trial, {candidate, record::Outcome::kOk, Latency(candidate)});
    }
    if (const auto tells = search->TakeTells()) log.push_back(Encode("job", *tells));
    if (search->TrainingIsDue()) {
      HONE_ASSERT_OK_AND_ASSIGN(auto model, search->trainer()->Train(search->TakeForTraining()));
      search->AdoptModel(std::move(model));
    }
  }
  // The space of the trace is small; the other spaces are larger.
  EXPECT_GE(seen.size(), space::IsTraceText(GetParam().space) ? 16u : 20u);

  HONE_ASSERT_OK_AND_ASSIGN(auto again, Make(spaces.get()));
  EXPECT_THAT(again->Replay(log, spaces->default_schedule()), IsOk());
}

INSTANTIATE_TEST_SUITE_P(All, CombinationTest, ::testing::ValuesIn(All()),
                         [](const auto& info) { return NameOf(info.param); });

TEST(CombinationsTest, IncompatibleChoicesAreExplained) {
  const auto environment = MakeCompilerEnvironment(1);
  const auto refused = [](const absl::Status& status, const char* why) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    return !status.ok();
  };
  EXPECT_TRUE(refused(environment->CheckSpace(kWorkload, "sketches").status(), "rules, templates"));
  EXPECT_TRUE(refused(environment->CreateModel("formula", {.feature_set = "knob"}).status(),
                      "reads only feature set 'analytic'"));
  EXPECT_TRUE(refused(environment->CreateModel("random", {.feature_set = "knob"}).status(),
                      "reads no features"));

  HONE_ASSERT_OK_AND_ASSIGN(const auto spaces, environment->Open(kWorkload, TargetText(), "", 0));
  EXPECT_TRUE(refused(spaces->CheckFeatureSet("nonsense"), "there are: statement"));
  EXPECT_TRUE(refused(TaskSearch::Create(environment.get(), spaces.get(),
                                         {.strategy = "hope", .cost_model = "xgboost"}, {})
                          .status(),
                      "evolutionary"));

  // More decisions than a row of `knob` can hold.
  std::string many = absl::StrCat(kWorkload, kTrace);
  for (int d = 4; d < 70; ++d)
    absl::StrAppend(&many, "x", d, " = sample_categorical(candidates=[1, 2])\n");
  HONE_ASSERT_OK_AND_ASSIGN(const auto wide, environment->Open(kWorkload, TargetText(), many, 0));
  EXPECT_TRUE(refused(wide->CheckFeatureSet("knob"), "describes at most 64 decisions"));
  EXPECT_THAT(wide->CheckFeatureSet("statement"), IsOk());
}

TEST(CombinationsTest, FeaturesOfADecidedTraceHaveNames) {
  const auto environment = MakeCompilerEnvironment(1);
  const std::string open = absl::StrCat(kWorkload, kTrace);
  const std::string decided = absl::StrReplaceAll(
      open, {{"parts=2)", "parts=2) = [6, 4]"}, {"max_inner=16)", "max_inner=16) = [2, 16]"}});
  for (const std::string& name : environment->FeatureSetNames()) {
    const auto table = environment->DescribeFeatures(decided, TargetText(), name);
    ASSERT_THAT(table, IsOk()) << name;
    EXPECT_EQ(table->feature_set, name);
    EXPECT_EQ(table->target, target::TargetByName("x86-avx2")->Key());
    ASSERT_FALSE(table->columns.empty());
    EXPECT_GE(table->values.size(), table->columns.size());
    EXPECT_EQ(table->values.size() % table->columns.size(), 0u);
  }
  const auto knobs = environment->DescribeFeatures(decided, TargetText(), "knob");
  EXPECT_EQ(std::vector<float>(knobs->values.begin(), knobs->values.begin() + 6),
            (std::vector<float>{0, 4, 6, 4, 2, 16}));
  EXPECT_EQ(environment->DescribeFeatures(decided, TargetText(), "")->feature_set, "statement");

  const auto refusal = [&](const std::string& trace, const std::string& target,
                           const std::string& set) {
    const absl::Status status = environment->DescribeFeatures(trace, target, set).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(decided, TargetText(), "smell"), HasSubstr("there are: statement"));
  EXPECT_THAT(refusal(open, TargetText(), ""), HasSubstr("4 decisions open"));
  EXPECT_THAT(refusal("workload w\n", TargetText(), ""), HasSubstr("trace 1"));
  EXPECT_THAT(refusal(decided, "a moon", ""), HasSubstr("target: "));
  EXPECT_THAT(refusal(absl::StrReplaceAll(decided, {{"[6, 4]", "[6, 5]"}}), TargetText(), ""),
              HasSubstr("decision [6, 5] is not legal here"));
}

}  // namespace
}  // namespace hone::job

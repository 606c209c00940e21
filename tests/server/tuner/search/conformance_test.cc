// The contract of SearchStrategy, checked for every registered strategy.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_replace.h"
#include "common/base/rng.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/search/strategies.h"
#include "tests/server/tuner/search/spaces.h"
#include "tests/status.h"

namespace hone::search {
namespace {

using Candidates = std::vector<record::Candidate>;

// Simulates a device: latencies are a function of the program, and some programs fail.
Measured Measure(const TestSpaces& spaces, const record::Candidate& candidate) {
  const Digest program = spaces.SpaceOf(candidate).Replay(candidate.decisions)->StructuralDigest();
  Rng rng(program.high, program.low);
  if (rng.Below(10) == 0) return {candidate, record::Outcome::kCompileError, 0};
  return {candidate, record::Outcome::kOk, 1e5 * (1 + 9 * rng.Uniform())};
}

// A cost model that is trained on all results so far, as in a task.
class Learner {
 public:
  explicit Learner(const TestSpaces* spaces)
      : spaces_(spaces), model_(*cost_model::CreateCostModel("xgboost", {})) {}

  void Learn(absl::Span<const Measured> results) {
    const feature::FeatureSet& features = **feature::FindFeatureSet(model_->feature_set());
    matrix_.columns = features.Columns();
    for (const Measured& result : results) {
      std::vector<float> rows;
      int count = 0;
      ASSERT_TRUE(
          features
              .Extract(*spaces_->SpaceOf(result.candidate).Replay(result.candidate.decisions),
                       spaces_->Context(0).target, rows, count)
              .ok());
      matrix_.Append(rows, count);
      latencies_.push_back(result.outcome == record::Outcome::kOk ? result.latency_ns : 0);
    }
    double best = std::numeric_limits<double>::infinity();
    for (const double latency : latencies_) best = latency > 0 ? std::min(best, latency) : best;
    std::vector<double> throughput;
    for (const double latency : latencies_) throughput.push_back(latency > 0 ? best / latency : 0);
    ASSERT_THAT(model_->Update(matrix_, throughput), IsOk());
  }
  const cost_model::CostModel* model() const { return model_.get(); }

 private:
  const TestSpaces* const spaces_;
  std::unique_ptr<cost_model::CostModel> model_;
  cost_model::FeatureMatrix matrix_;
  std::vector<double> latencies_;
};

class StrategyTest : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<SearchStrategy> Create(const TestSpaces& spaces, uint64_t seed = 7,
                                                int threads = 1) {
    SearchContext context = spaces.Context(seed);
    context.threads = threads;
    context.population = 64;
    absl::StatusOr<std::unique_ptr<SearchStrategy>> strategy =
        CreateSearchStrategy(GetParam(), std::move(context));
    EXPECT_THAT(strategy, IsOk());
    return *std::move(strategy);
  }

  // Runs rounds of eight proposals, starting at event `event`. Results are told to the strategy and
  // the model learns them.
  static Candidates Run(const TestSpaces& spaces, SearchStrategy& strategy, Learner& learner,
                        int rounds, uint64_t event = 0) {
    Candidates all;
    for (int round = 0; round < rounds; ++round) {
      const absl::StatusOr<Candidates> proposed = strategy.Propose(8, event++, learner.model());
      EXPECT_THAT(proposed, IsOk());
      std::vector<Measured> results;
      for (const record::Candidate& candidate : *proposed)
        results.push_back(Measure(spaces, candidate));
      strategy.Tell(results);
      learner.Learn(results);
      all.insert(all.end(), proposed->begin(), proposed->end());
    }
    return all;
  }
};

TEST_P(StrategyTest, SameCallsGiveTheSameCandidates) {
  const TestSpaces spaces = MatmulSpaces();
  Learner first_learner(&spaces), second_learner(&spaces), other_learner(&spaces);
  const auto first = Create(spaces), second = Create(spaces), other = Create(spaces, /*seed=*/8);
  const Candidates a = Run(spaces, *first, first_learner, 4);
  EXPECT_EQ(a.size(), 32u);
  EXPECT_EQ(a, Run(spaces, *second, second_learner, 4));
  if (GetParam() != "grid") {  // grid search does not use the seed
    EXPECT_NE(a, Run(spaces, *other, other_learner, 4));
  }
}

TEST_P(StrategyTest, ThreadsDoNotChangeTheCandidates) {
  const TestSpaces spaces = MatmulSpaces();
  Learner first_learner(&spaces), second_learner(&spaces);
  const auto one = Create(spaces, 7, 1), four = Create(spaces, 7, 4);
  EXPECT_EQ(Run(spaces, *one, first_learner, 3), Run(spaces, *four, second_learner, 3));
}

TEST_P(StrategyTest, ProposesLegalCandidatesWithDifferentPrograms) {
  const TestSpaces spaces = MatmulSpaces();
  Learner learner(&spaces);
  const auto strategy = Create(spaces);
  // Candidates of earlier records are not proposed again.
  Candidates earlier;
  for (uint64_t i = 0; i < 40; ++i) {
    Rng rng(i);
    const auto& space = spaces.spaces()[i % spaces.spaces().size()];
    earlier.push_back({space->digest(), *space->Sample(rng)});
    const Measured result = Measure(spaces, earlier.back());
    strategy->Tell(absl::MakeConstSpan(&result, 1));
  }
  std::set<Digest> programs;
  for (const record::Candidate& candidate : earlier) {
    programs.insert(spaces.SpaceOf(candidate).Replay(candidate.decisions)->StructuralDigest());
  }
  for (const record::Candidate& candidate : Run(spaces, *strategy, learner, 6)) {
    HONE_ASSERT_OK_AND_ASSIGN(const ir::Program program,
                              spaces.SpaceOf(candidate).Replay(candidate.decisions));
    EXPECT_TRUE(programs.insert(program.StructuralDigest()).second) << program.ToText();
  }
}

TEST_P(StrategyTest, FirstBatchCoversEveryDesignSpace) {
  const TestSpaces spaces = MatmulSpaces();
  for (const int n : {4, 8, 32}) {
    std::set<std::string> covered;
    const Candidates first = *Create(spaces)->Propose(n, 0, nullptr);
    for (const record::Candidate& candidate : first) covered.insert(candidate.space_digest);
    EXPECT_EQ(covered.size(), spaces.spaces().size());
  }
}

TEST_P(StrategyTest, ExhaustedSpaceEnds) {
  const TestSpaces spaces = TinySpace(13);
  const auto strategy = Create(spaces);
  std::set<std::vector<int64_t>> seen;
  for (uint64_t event = 0;; ++event) {
    ASSERT_LT(event, 20u);
    const Candidates candidates = *strategy->Propose(5, event, nullptr);
    if (candidates.empty()) break;
    for (const record::Candidate& candidate : candidates)
      EXPECT_TRUE(seen.insert(candidate.decisions).second);
  }
  EXPECT_EQ(seen.size(), 13u);
  EXPECT_TRUE(strategy->Propose(5, 99, nullptr)->empty());
}

TEST_P(StrategyTest, ToleratesExtremeResults) {
  const TestSpaces spaces = MatmulSpaces();
  Learner learner(&spaces);
  const auto strategy = Create(spaces);
  const Candidates first = *strategy->Propose(8, 0, learner.model());
  std::vector<Measured> results;
  const double latencies[] = {
      std::nan(""), std::numeric_limits<double>::infinity(), -5, 0, 1e-300, 1e300, 1e5, 2e5};
  for (size_t i = 0; i < first.size(); ++i)
    results.push_back({first[i], record::Outcome::kOk, latencies[i]});
  results.push_back({first[0], record::Outcome::kCrash, 1e5});
  results.push_back(
      {{"0123456789abcdef0123456789abcdef", {1, 2}}, record::Outcome::kOk, 1e5});  // unknown space
  results.push_back({{first[0].space_digest, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
                     record::Outcome::kOk,
                     1e3});  // too long
  std::vector<int64_t> illegal = first[1].decisions;
  for (int64_t& decision : illegal) decision = -7;
  results.push_back({{first[1].space_digest, illegal}, record::Outcome::kOk, 1e3});
  strategy->Tell(results);
  for (uint64_t event = 1; event < 4; ++event) {
    HONE_ASSERT_OK_AND_ASSIGN(const Candidates candidates,
                              strategy->Propose(8, event, learner.model()));
    EXPECT_EQ(candidates.size(), 8u);
    for (const record::Candidate& candidate : candidates) {
      EXPECT_THAT(spaces.SpaceOf(candidate).Replay(candidate.decisions), IsOk());
    }
  }
}

TEST_P(StrategyTest, WorksWithAndWithoutEveryModel) {
  const TestSpaces spaces = MatmulSpaces();
  for (const std::string& name : cost_model::CostModelNames()) {
    const auto model = *cost_model::CreateCostModel(name, {});
    EXPECT_EQ(Create(spaces)->Propose(8, 0, model.get())->size(), 8u);
  }
  EXPECT_EQ(Create(spaces)->Propose(8, 0, nullptr)->size(), 8u);
  EXPECT_TRUE(Create(spaces)->Propose(0, 0, nullptr)->empty());
}

// Candidates to seed a search with, drawn at random.
Candidates Drawn(const TestSpaces& spaces, int count) {
  Candidates drawn;
  for (int i = 0; i < count; ++i) {
    Rng rng(1000, static_cast<uint64_t>(i));
    const auto& space = spaces.spaces()[1 + i % 3];  // spaces that have decisions
    drawn.push_back({space->digest(), *space->Sample(rng)});
  }
  return drawn;
}

class SeededStrategyTest : public StrategyTest {
 protected:
  static std::unique_ptr<SearchStrategy> Create(const TestSpaces& spaces, Candidates seeds) {
    SearchContext context = spaces.Context(7);
    context.population = 64;
    context.seeds = std::move(seeds);
    return *CreateSearchStrategy(GetParam(), std::move(context));
  }
};

TEST_P(SeededStrategyTest, ProposesSeedsAmongTheFirstAndNothingTwice) {
  const TestSpaces spaces = MatmulSpaces();
  const Candidates good = Drawn(spaces, 7);
  Candidates seeds = good;
  std::vector<int64_t> illegal = good[0].decisions;
  for (int64_t& decision : illegal) decision = -7;
  seeds.insert(seeds.begin() + 1, {{"0123456789abcdef0123456789abcdef", {1, 2}},  // unknown space
                                   {good[0].space_digest, illegal},
                                   {good[0].space_digest, {1}},
                                   good[0]});  // duplicate
  Learner learner(&spaces);
  const auto strategy = Create(spaces, seeds);
  EXPECT_EQ(strategy->name(), GetParam());
  // An earlier job has measured good[1].
  const Measured told = Measure(spaces, good[1]);
  strategy->Tell(absl::MakeConstSpan(&told, 1));
  const Candidates all = Run(spaces, *strategy, learner, 4);
  ASSERT_EQ(all.size(), 32u);
  // Two of every eight proposals are seeds, best first, until four seeds have been proposed.
  EXPECT_EQ(all[0], good[0]);
  EXPECT_EQ(all[1], good[2]);
  EXPECT_EQ(all[8], good[3]);
  EXPECT_EQ(all[9], good[4]);
  std::set<Digest> programs;
  for (const record::Candidate& candidate : all) {
    EXPECT_NE(candidate, good[1]);
    HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                              spaces.SpaceOf(candidate).Replay(candidate.decisions));
    EXPECT_TRUE(programs.insert(program.StructuralDigest()).second);
  }
}

TEST_P(SeededStrategyTest, EveryFourthSingleProposalIsASeed) {
  const TestSpaces spaces = MatmulSpaces();
  const Candidates seeds = Drawn(spaces, 2);
  const auto strategy = Create(spaces, seeds);
  Candidates all;
  for (uint64_t event = 0; event < 6; ++event) {
    HONE_ASSERT_OK_AND_ASSIGN(const Candidates proposed, strategy->Propose(1, event, nullptr));
    ASSERT_TRUE(proposed.size() == 1);
    all.push_back(proposed[0]);
  }
  EXPECT_EQ(all[0], seeds[0]);
  EXPECT_EQ(all[4], seeds[1]);
}

TEST_P(SeededStrategyTest, ExhaustedSpaceEnds) {
  const TestSpaces spaces = TinySpace(13);
  const std::string digest = spaces.spaces()[0]->digest();
  Rng rng(3);
  const auto strategy = Create(spaces, {{digest, *spaces.spaces()[0]->Sample(rng)}});
  std::set<std::vector<int64_t>> seen;
  for (uint64_t event = 0;; ++event) {
    ASSERT_LT(event, 20u);
    const Candidates candidates = *strategy->Propose(5, event, nullptr);
    if (candidates.empty()) break;
    for (const record::Candidate& candidate : candidates)
      EXPECT_TRUE(seen.insert(candidate.decisions).second);
  }
  EXPECT_EQ(seen.size(), 13u);
}

INSTANTIATE_TEST_SUITE_P(Registered, SeededStrategyTest, testing::ValuesIn(SearchStrategyNames()),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

INSTANTIATE_TEST_SUITE_P(Registered, StrategyTest, testing::ValuesIn(SearchStrategyNames()),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

// Strategies that share an evaluator propose what each proposes alone.
TEST(SharedEvaluatorTest, DoesNotChangeTheCandidates) {
  const TestSpaces spaces = MatmulSpaces();
  SearchContext context = spaces.Context(7);
  context.population = 64;
  const auto make = [&] {
    return std::array{MakeEvolutionarySearch(context, {.draft = true}), MakeBayesianSearch(context),
                      MakeDropletSearch(context, /*draft=*/true)};
  };
  const auto alone = make();
  context.evaluator = std::make_shared<Evaluator>(context, /*draft=*/true);
  const auto shared = make();
  Learner learner(&spaces);
  for (uint64_t event = 0; event < 6; ++event) {
    std::vector<Measured> results;
    for (size_t i = 0; i < shared.size(); ++i) {
      HONE_ASSERT_OK_AND_ASSIGN(const Candidates proposed,
                                shared[i]->Propose(8, event, learner.model()));
      HONE_ASSERT_OK_AND_ASSIGN(const Candidates expected,
                                alone[i]->Propose(8, event, learner.model()));
      EXPECT_EQ(proposed, expected) << shared[i]->name();
      for (const record::Candidate& candidate : proposed)
        results.push_back(Measure(spaces, candidate));
    }
    if (event % 2 == 0) continue;  // asked twice between results
    for (size_t i = 0; i < shared.size(); ++i) {
      shared[i]->Tell(results);
      alone[i]->Tell(results);
    }
    learner.Learn(results);
  }
}

TEST(SearchRegistryTest, RejectsUnknownAndInvalidStrategies) {
  const TestSpaces spaces = TinySpace(3);
  const absl::Status unknown = CreateSearchStrategy("guess", spaces.Context(1)).status();
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_NE(unknown.message().find("evolutionary"), absl::string_view::npos);
  EXPECT_THAT(CreateSearchStrategy("random", {}), StatusIs(absl::StatusCode::kInvalidArgument));
  SearchContext context = spaces.Context(1);
  context.threads = 0;
  EXPECT_THAT(CreateSearchStrategy("random", context),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::search

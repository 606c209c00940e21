#include "server/tuner/search/ranking.h"

#include <gtest/gtest.h>

#include <bit>

#include "common/base/rng.h"
#include "tests/server/tuner/search/spaces.h"
#include "tests/status.h"

namespace hone::search {
namespace {

class RankingTest : public testing::Test {
 protected:
  // Proposes 16 candidates of a space with predictions, and tells their latencies. `latency` maps
  // the cycles of the draft to a latency, and `prediction` maps that latency to a prediction.
  template <typename Latency, typename Prediction>
  void Round(int space, uint64_t event, Latency latency, Prediction prediction) {
    Rng rng(event, space);
    std::vector<Measured> results;
    while (results.size() < 16) {
      Point point{space, *context_.spaces[space]->Sample(rng)};
      EvaluationPtr evaluation = evaluator_.Evaluate(absl::MakeConstSpan(&point, 1)).value()[0];
      if (!evaluation->legal || history_.Knows(point) || history_.KnowsProgram(*evaluation))
        continue;
      const double cycles = 1 / evaluation->draft;
      results.push_back({CandidateOf(context_, point), record::Outcome::kOk, latency(cycles)});
      history_.AddProposal(std::move(point), std::move(evaluation), event, true,
                           prediction(latency(cycles)));
    }
    history_.Tell(results);
    EXPECT_THAT(history_.Refresh(evaluator_), IsOk());
  }

  TestSpaces spaces_ = MatmulSpaces(512);
  SearchContext context_ = spaces_.Context(1);
  Evaluator evaluator_{context_, /*draft=*/true};
  History history_{&context_};
};

TEST_F(RankingTest, WithoutResultsTheDraftLeads) {
  const Ranking ranking = Ranking::Of(context_, history_, /*has_draft=*/true);
  EXPECT_GT(ranking.DraftScore(0, 1e-3), ranking.DraftScore(0, 5e-4));
  EXPECT_LT(ranking.Score(0, 1, /*learnt=*/true), 0.5);
  EXPECT_EQ(ranking.Score(0.25, 1, /*learnt=*/false), 0.25);
}

TEST_F(RankingTest, WithoutADraftTheModelDecides) {
  const Ranking ranking = Ranking::Of(context_, history_, /*has_draft=*/false);
  EXPECT_EQ(ranking.Score(0.25, 0.5, /*learnt=*/true), 0.5);
  EXPECT_EQ(ranking.Score(0.25, 0.5, /*learnt=*/false), 0);
}

TEST_F(RankingTest, AccurateModelOutweighsTheDraft) {
  const auto unrelated = [](double cycles) {
    return 1000 + static_cast<double>(Rng(std::bit_cast<uint64_t>(cycles)).Below(1000));
  };
  for (uint64_t event = 0; event < 6; ++event) {
    Round(1, event, unrelated, [](double latency) { return 1000 / latency; });
  }
  EXPECT_GT(Ranking::Of(context_, history_, /*has_draft=*/true).Score(0, 1, /*learnt=*/true), 0.8);
}

TEST_F(RankingTest, InaccurateModelLosesWeight) {
  uint64_t guess = 0;
  for (uint64_t event = 0; event < 6; ++event) {
    Round(
        1, event, [](double cycles) { return 2 * cycles; },
        [&](double) { return Rng(++guess).Uniform(); });
  }
  EXPECT_LT(Ranking::Of(context_, history_, /*has_draft=*/true).Score(0, 1, /*learnt=*/true), 0.15);
}

TEST_F(RankingTest, ResultsCalibrateTheDraftPerSpace) {
  // Space 2 is three times slower than its draft, relative to space 1.
  for (uint64_t event = 0; event < 3; ++event) {
    Round(1, 2 * event, [](double cycles) { return cycles; }, [](double) { return 0.5; });
    Round(2, 2 * event + 1, [](double cycles) { return 3 * cycles; }, [](double) { return 0.5; });
  }
  const Ranking ranking = Ranking::Of(context_, history_, /*has_draft=*/true);
  const double ratio = ranking.DraftScore(1, 1e-9) / ranking.DraftScore(2, 1e-9);
  EXPECT_GT(ratio, 2.5);
  EXPECT_LT(ratio, 3.0);
}

TEST_F(RankingTest, FailuresScoreZero) {
  Round(1, 0, [](double cycles) { return cycles; }, [](double) { return 0.5; });
  const Measured failed{CandidateOf(context_, history_.entries()[0].point),
                        record::Outcome::kWrongOutput, 0};
  history_.Tell(absl::MakeConstSpan(&failed, 1));
  const Ranking ranking = Ranking::Of(context_, history_, /*has_draft=*/true);
  EXPECT_EQ(ranking.MeasuredScore(history_.entries()[0]), 0);
  EXPECT_GT(ranking.MeasuredScore(history_.entries()[1]), 0);
}

}  // namespace
}  // namespace hone::search

#include "server/confirm/confirmation.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/rng.h"
#include "common/record/processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"

namespace hone::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Simulates a process that times a kernel. The latency drifts with the round, equally for all
// kernels, plus some noise.
record::MeasureResult Process(double latency, int round, uint64_t noise_seed, double noise) {
  Rng rng(noise_seed, round);
  const double drift = 1 + 0.2 * round;
  const double own = 1 + noise * (rng.Uniform() - 0.5);
  record::MeasureResult result;
  for (int i = 0; i < 9; ++i) {
    result.samples_ns.push_back(latency * drift * own * (1 + 0.001 * (rng.Uniform() - 0.5)));
  }
  result.latency_ns = latency * drift * own;
  return result;
}

// Runs the confirmation to its end with the true latencies, and returns the ranking.
std::vector<int> Decide(Confirmation& confirmation, const std::vector<double>& latencies,
                        double noise = 0.002) {
  for (int round = 0; round < 20; ++round) {
    const std::vector<int> order = confirmation.NextRound();
    if (order.empty()) return confirmation.Ranking();
    for (int finalist : order) {
      confirmation.Report(finalist, Process(latencies[finalist], round, finalist + 1, noise));
    }
    EXPECT_TRUE(confirmation.RoundIsComplete());
  }
  ADD_FAILURE() << "no decision after 20 rounds";
  return {};
}

TEST(ConfirmationTest, RestartsWithTheWinnerAndANewIncumbent) {
  Confirmation confirmation(3, 0, 1);
  ASSERT_EQ(Decide(confirmation, {100, 95, 103}).front(), 1);
  confirmation.BeginAgain(1, 3);
  EXPECT_THAT(confirmation.NextRound(), UnorderedElementsAre(1, 3));
  confirmation.BeginAgain(1, 3);
  EXPECT_EQ(Decide(confirmation, {100, 95, 103, 90}).front(), 3);
  EXPECT_NEAR(confirmation.Combined(3).latency_ns, 90 * 1.2, 90 * 0.3);
  confirmation.BeginAgain(1, 0);
  EXPECT_EQ(Decide(confirmation, {100, 95, 103, 90}).front(), 1);
  EXPECT_EQ(confirmation.rounds(), 3) << "rounds are counted from the new start";
  confirmation.BeginAgain(1, 2);
  EXPECT_EQ(Decide(confirmation, {100, 95, 95, 90}).front(), 2) << "a tie keeps the incumbent";
}

// The time is over before the new incumbent is measured in the second comparison.
TEST(ConfirmationTest, ARestartThatIsCutComparesEarlierProcesses) {
  for (const double incumbent : {70.0, 96.0}) {
    Confirmation confirmation(2, -1, 1);
    ASSERT_EQ(Decide(confirmation, {100, 95}).front(), 1);
    confirmation.BeginAgain(1, 2);
    confirmation.AddEarlier(2, {Process(incumbent, 0, 3, 0)});
    EXPECT_THAT(confirmation.NextRound(), UnorderedElementsAre(1, 2));
    confirmation.Report(1, Process(95, 0, 2, 0));
    ASSERT_TRUE(confirmation.CutRound());
    EXPECT_EQ(confirmation.Ranking().front(), 2) << "a tie keeps the incumbent";
    EXPECT_GT(record::ProcessesOf(confirmation.Combined(1)), 1);
  }
}

TEST(ConfirmationTest, FindsTheBestUnderCommonDrift) {
  Confirmation confirmation(4, -1, 1);
  EXPECT_EQ(Decide(confirmation, {100, 95, 103, 98}).front(), 1);
  EXPECT_GE(confirmation.rounds(), 3);
}

TEST(ConfirmationTest, RoundsAreInDifferentOrders) {
  Confirmation confirmation(6, -1, 1, {.last_finalists = 6});
  std::set<std::vector<int>> orders;
  for (int round = 0; round < 3; ++round) {
    const std::vector<int> order = confirmation.NextRound();
    ASSERT_THAT(order, UnorderedElementsAre(0, 1, 2, 3, 4, 5));
    orders.insert(order);
    for (int finalist : order) confirmation.Report(finalist, Process(100, round, finalist, 0.01));
  }
  EXPECT_THAT(orders, SizeIs(3));
}

TEST(ConfirmationTest, LosersDropOutAfterOneOrTwoRounds) {
  Confirmation confirmation(4, -1, 1);
  const std::vector<double> latencies = {100, 100, 106, 130};
  for (int f : confirmation.NextRound()) {
    confirmation.Report(f, Process(latencies[f], 0, f + 1, 0.002));
  }
  const std::vector<int> second = confirmation.NextRound();
  EXPECT_THAT(second, UnorderedElementsAre(0, 1, 2));
  for (int f : second) confirmation.Report(f, Process(latencies[f], 1, f + 1, 0.002));
  EXPECT_THAT(confirmation.NextRound(), UnorderedElementsAre(0, 1));
}

TEST(ConfirmationTest, EachRoundHalvesTheFinalistsButKeepsTheIncumbent) {
  Confirmation confirmation(9, 8, 1);
  std::vector<size_t> sizes;
  for (int round = 0; round < 3; ++round) {
    const std::vector<int> order = confirmation.NextRound();
    sizes.push_back(order.size());
    EXPECT_THAT(order, ::testing::IsSupersetOf({0, 1, 8})) << round;
    for (int f : order) confirmation.Report(f, Process(100 + 0.1 * f, round, 7, 0));
  }
  EXPECT_THAT(sizes, ElementsAre(9, 6, 4));
}

TEST(ConfirmationTest, ATieKeepsTheIncumbent) {
  Confirmation confirmation(3, 2, 1);
  EXPECT_EQ(Decide(confirmation, {100, 100.05, 100.02}, 0.01).front(), 2);
  EXPECT_EQ(confirmation.rounds(), ConfirmationOptions().max_rounds)
      << "all rounds are used to separate them";
}

TEST(ConfirmationTest, ClearlyFasterFinalistReplacesTheIncumbent) {
  Confirmation confirmation(2, 1, 1);
  EXPECT_THAT(Decide(confirmation, {90, 100}), ElementsAre(0));
}

TEST(ConfirmationTest, FailedFinalistIsEliminated) {
  Confirmation confirmation(2, -1, 1);
  record::MeasureResult crash;
  crash.outcome = record::Outcome::kCrash;
  for (int f : confirmation.NextRound()) {
    confirmation.Report(f, f == 0 ? crash : Process(100, 0, 1, 0));
  }
  EXPECT_THAT(Decide(confirmation, {0, 100}), ElementsAre(1));
  EXPECT_GE(confirmation.rounds(), 3) << "a single finalist is still measured in three processes";
  Confirmation nobody(1, -1, 1);
  nobody.NextRound();
  nobody.Report(0, crash);
  EXPECT_THAT(nobody.NextRound(), IsEmpty());
  EXPECT_THAT(nobody.Ranking(), IsEmpty());
}

TEST(ConfirmationTest, TheCombinedResultIsTheMedianOfTheProcesses) {
  Confirmation confirmation(1, -1, 1);
  std::vector<double> latencies = {100, 130, 110};
  for (double latency : latencies) {
    confirmation.NextRound();
    confirmation.Report(0, Process(latency, 0, 1, 0));
  }
  const record::MeasureResult combined = confirmation.Combined(0);
  EXPECT_DOUBLE_EQ(combined.latency_ns, 110);
  EXPECT_THAT(combined.samples_ns, SizeIs(27));
}

TEST(ConfirmationTest, SlowYardstickOnlyRunsAndIsNotRanked) {
  Confirmation confirmation(3, -1, 1);
  confirmation.SetYardstick(2, /*competes=*/false);
  confirmation.AddEarlier(2, {Took(1500)});
  int runs = 0;
  for (int round = 0; round < 6; ++round) {
    const std::vector<int> order = confirmation.NextRound();
    for (const int finalist : order) {
      runs += finalist == 2 ? 1 : 0;
      confirmation.Report(finalist, Took(finalist == 2 ? 500 + round : 100 + finalist));
    }
  }
  EXPECT_EQ(runs, 2) << "and the screening";
  EXPECT_THAT(confirmation.Ranking(), testing::Not(testing::Contains(2)));
  EXPECT_EQ(confirmation.Combined(2).latency_ns, 501);
  EXPECT_EQ(record::ProcessesOf(confirmation.Combined(2)), 3);
}

// Other work disturbed the screening, and every later process but one.
TEST(ConfirmationTest, ScreeningIsNotAveragedWithOneProcess) {
  Confirmation confirmation(2, -1, 1);
  confirmation.SetYardstick(1, /*competes=*/false);
  confirmation.AddEarlier(1, {Took(25000)});
  confirmation.NextRound();
  EXPECT_EQ(confirmation.Combined(1).latency_ns, 25000) << "it is all that is known";
  confirmation.Report(0, Took(100));
  confirmation.Report(1, Took(500));
  EXPECT_EQ(confirmation.Combined(1).latency_ns, 500);
  EXPECT_EQ(record::ProcessesOf(confirmation.Combined(1)), 1);
}

TEST(ConfirmationTest, YardstickThatDropsOutStillRunsInThreeProcesses) {
  Confirmation confirmation(3, -1, 1);
  confirmation.SetYardstick(1, /*competes=*/true);
  for (int round = 0; round < 6; ++round) {
    for (const int finalist : confirmation.NextRound()) {
      confirmation.Report(finalist, Took(finalist == 1 ? 180 : 100 + finalist));
    }
  }
  EXPECT_THAT(confirmation.Ranking(), testing::Not(testing::Contains(1)));
  EXPECT_EQ(record::ProcessesOf(confirmation.Combined(1)), 3);
}

// A disturbed process is none of the processes that are required, and its finalist stays.
TEST(ConfirmationTest, DisturbedProcessesDoNotCount) {
  Confirmation confirmation(2, -1, 1);
  int disturbed = 0;
  for (int round = 0; round < 20; ++round) {
    const std::vector<int> order = confirmation.NextRound();
    if (order.empty()) break;
    for (const int finalist : order) {
      if (finalist == 0 && round < 2) {
        confirmation.ReportDisturbed(finalist);
        ++disturbed;
      } else {
        confirmation.Report(finalist, Took(100 + finalist));
      }
    }
    if (round < 2) {
      EXPECT_THAT(confirmation.Ranking(), ElementsAre(1));
      EXPECT_TRUE(confirmation.AnyIsDisturbed());
    }
  }
  EXPECT_EQ(disturbed, 2);
  EXPECT_EQ(confirmation.Ranking().front(), 0);
  EXPECT_GE(record::ProcessesOf(confirmation.Combined(0)), 3);
  EXPECT_EQ(confirmation.Combined(0).latency_ns, 100);
}

// The time may be over before the first round ends.
TEST(ConfirmationTest, TheFirstRoundBeginsWithTheFastestAndEndsWithTheYardstick) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Confirmation confirmation(5, -1, seed);
    confirmation.SetYardstick(3, /*competes=*/true);
    const std::vector<int> order = confirmation.NextRound();
    ASSERT_THAT(order, SizeIs(5));
    EXPECT_EQ(order.front(), 0);
    EXPECT_EQ(order.back(), 3);
  }
}

// On a busy machine, one process may take ten times as long as the next.
TEST(ConfirmationTest, AcceptedDisturbedProcessesAreUpperBounds) {
  Confirmation confirmation(2, -1, 1);
  const double disturbed_ns[3] = {30, 290, 400};
  for (int round = 0; round < 3; ++round) {
    ASSERT_THAT(confirmation.NextRound(), SizeIs(2)) << round;
    confirmation.ReportDisturbed(0, Took(disturbed_ns[round]));
    round < 2 ? confirmation.ReportDisturbed(1, Took(440)) : confirmation.Report(1, Took(50));
  }
  EXPECT_THAT(confirmation.Ranking(), ElementsAre(0, 1));
  EXPECT_EQ(confirmation.Combined(0).latency_ns, 30);
  EXPECT_EQ(confirmation.Combined(1).latency_ns, 50) << "the undisturbed process alone";
}

// The best of an earlier job, whose processes are all disturbed now.
TEST(ConfirmationTest, DisturbedProcessesDoNotReplaceEarlierOnes) {
  Confirmation confirmation(2, 1, 1);
  confirmation.AddEarlier(1, {Took(100)});
  for (int round = 0; round < 3; ++round) {
    ASSERT_THAT(confirmation.NextRound(), SizeIs(2)) << round;
    confirmation.ReportDisturbed(1, Took(130));
    round == 0 ? confirmation.Report(0, Took(105)) : confirmation.ReportDisturbed(0, Took(140));
  }
  EXPECT_EQ(confirmation.Combined(1).latency_ns, 100);
  EXPECT_THAT(confirmation.Ranking(), ElementsAre(1, 0));
}

TEST(ConfirmationTest, EndsIfEveryProcessIsDisturbed) {
  Confirmation confirmation(2, -1, 1);
  int rounds = 0;
  while (!confirmation.NextRound().empty() && ++rounds < 100) {
    confirmation.ReportDisturbed(0);
    confirmation.ReportDisturbed(1);
  }
  EXPECT_GE(rounds, 6) << "more often than without disturbance";
  EXPECT_LE(rounds, 12);
  EXPECT_THAT(confirmation.Ranking(), IsEmpty());
  EXPECT_FALSE(confirmation.HasResult(0));
}

TEST(ConfirmationTest, EarlierProcessesCountUntilThereAreThreeNewOnes) {
  Confirmation confirmation(2, -1, 1);
  confirmation.AddEarlier(1, {Took(100), Took(101), Took(102)});
  confirmation.NextRound();
  confirmation.ReportDisturbed(1);
  confirmation.Report(0, Took(90));
  EXPECT_THAT(confirmation.Ranking(), ElementsAre(1, 0)) << "one process is less than three";
  EXPECT_EQ(confirmation.Combined(1).latency_ns, 101);
  for (int round = 0; round < 3; ++round) {
    for (const int finalist : confirmation.NextRound()) {
      confirmation.Report(finalist, Took(finalist == 0 ? 150 : 151));
    }
  }
  EXPECT_EQ(confirmation.Combined(1).latency_ns, 151);
}

TEST(ConfirmationTest, CutRoundKeepsWhatIsComplete) {
  Confirmation confirmation(3, -1, 1);
  std::vector<int> order = confirmation.NextRound();
  EXPECT_FALSE(confirmation.CutRound()) << "nothing has a result";
  confirmation.Report(order[0], Took(100));
  confirmation.Report(order[1], Took(101));
  EXPECT_TRUE(confirmation.CutRound());
  EXPECT_TRUE(confirmation.RoundIsComplete());
  EXPECT_THAT(confirmation.Ranking(), ElementsAre(order[0], order[1]));

  const std::vector<int> second = confirmation.NextRound();
  ASSERT_THAT(second, UnorderedElementsAre(order[0], order[1]));
  confirmation.Report(order[1], Took(1));
  EXPECT_TRUE(confirmation.CutRound());
  EXPECT_THAT(confirmation.Ranking(), ElementsAre(order[0], order[1]))
      << "a round that not all have run compares nothing";
  EXPECT_EQ(record::ProcessesOf(confirmation.Combined(order[1])), 1);
}

TEST(ConfirmationTest, CutRoundKeepsTheOnlyResultOfAFinalist) {
  Confirmation confirmation(2, -1, 1);
  for (const int finalist : confirmation.NextRound()) confirmation.ReportDisturbed(finalist);
  confirmation.NextRound();
  confirmation.Report(1, Took(101));
  EXPECT_TRUE(confirmation.CutRound());
  EXPECT_THAT(confirmation.Ranking(), ElementsAre(1));
  EXPECT_TRUE(confirmation.IsUnmeasured(0));
}

// A leader of three processes is not kept if one process of another took less than half of its
// time.
TEST(ConfirmationTest, OneProcessCountsIfItIsClearlyFaster) {
  for (const double latency : {45, 95}) {
    Confirmation confirmation(2, -1, 1);
    confirmation.AddEarlier(0, {Took(100), Took(101), Took(100)});
    for (const int finalist : confirmation.NextRound()) {
      confirmation.Report(finalist, Took(finalist == 0 ? 100 : latency));
    }
    EXPECT_EQ(confirmation.Ranking().front(), latency < 50 ? 1 : 0) << latency;
  }
}

// Three processes of a few finalists say more than one process of many.
TEST(ConfirmationTest, LimitedRunsGoToTheLeadingFinalists) {
  const auto left = [](double runs) {
    Confirmation confirmation(4, 2, 1);
    for (const int finalist : confirmation.NextRound())
      confirmation.Report(finalist, Took(100 + finalist));
    confirmation.LimitRuns(runs);
    return confirmation.Ranking();
  };
  EXPECT_THAT(left(8), UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_THAT(left(4), UnorderedElementsAre(0, 1, 2)) << "2 is the incumbent";
  EXPECT_THAT(left(2), UnorderedElementsAre(0, 2));
  EXPECT_THAT(left(0), UnorderedElementsAre(0, 2)) << "something is always left";
}

}  // namespace
}  // namespace hone::job

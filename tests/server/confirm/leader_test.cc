#include "server/confirm/leader.h"

#include <string>

#include "common/record/processes.h"
#include "gtest/gtest.h"

namespace hone::job {
namespace {

constexpr int64_t kTrials = 1000;  // enough for any number of challengers

record::Record Measured(int64_t candidate, double latency_ns) {
  record::Record record{.candidate = {"space", {candidate}}, .trial = candidate};
  record.result.latency_ns = latency_ns;
  return record;
}

class LeaderTest : public ::testing::Test {
 protected:
  void Screen(int64_t candidate, double latency_ns) {
    leader_.Add(ScreenedOf(Measured(candidate, latency_ns), "worker"), kTrials);
  }
  // Measures the challenger in processes until it is decided. Returns whether it took the lead.
  bool Challenge(const std::vector<double>& latencies) {
    bool leads = false;
    for (const double latency : latencies) {
      EXPECT_TRUE(leader_.IsBusy());
      leads = leader_.Report(Measured(leader_.challenger().record.trial, latency));
    }
    EXPECT_FALSE(leader_.IsBusy());
    return leads;
  }
  double LatencyNs() const { return record::SteadyLatencyNs(leader_.best()->result); }

  Leader leader_;
};

TEST_F(LeaderTest, TheFirstCandidateLeadsWithItsSlowestProcess) {
  EXPECT_EQ(leader_.NextChallenger(), nullptr);
  Screen(1, 50);
  ASSERT_NE(leader_.NextChallenger(), nullptr);
  EXPECT_EQ(leader_.NextChallenger(), nullptr) << "one at a time";
  EXPECT_TRUE(Challenge({100, 120, 110}));
  EXPECT_EQ(LatencyNs(), 120);
  EXPECT_EQ(leader_.best()->candidate.decisions, std::vector<int64_t>{1});
}

TEST_F(LeaderTest, LuckyScreeningDoesNotLead) {
  Screen(1, 100);
  leader_.NextChallenger();
  Challenge({100, 101, 102});
  Screen(2, 40);
  ASSERT_NE(leader_.NextChallenger(), nullptr);
  EXPECT_FALSE(Challenge({150})) << "one slower process is enough";
  EXPECT_EQ(LatencyNs(), 102);
  Screen(4, 101);
  EXPECT_EQ(leader_.NextChallenger(), nullptr) << "such a small gain is not worth it";
  Screen(3, 60);
  ASSERT_NE(leader_.NextChallenger(), nullptr);
  EXPECT_FALSE(Challenge({90, 103}));
  EXPECT_EQ(LatencyNs(), 102);
}

TEST_F(LeaderTest, LatencyNeverRises) {
  Screen(1, 100);
  leader_.NextChallenger();
  Challenge({100, 101, 102});
  for (int i = 2; i < 50; ++i) {
    Screen(i, 100 - i);
    ASSERT_NE(leader_.NextChallenger(), nullptr);
    const double before = LatencyNs();
    for (int k = 0; leader_.IsBusy(); ++k) {
      leader_.Report(Measured(i, 100 - i + (7 * i + 3 * k) % 11));
    }
    EXPECT_LE(LatencyNs(), before);
  }
  EXPECT_LT(LatencyNs(), 70);
}

TEST_F(LeaderTest, TheFastestChallengesFirstAndSlowerOnesNotAtAll) {
  Screen(1, 100);
  leader_.NextChallenger();
  Screen(2, 80);
  Screen(3, 60);
  Screen(4, 70);
  Challenge({100, 100, 100});
  ASSERT_NE(leader_.NextChallenger(), nullptr);
  EXPECT_EQ(leader_.challenger().record.trial, 3);
  Challenge({75, 75, 75});
  ASSERT_NE(leader_.NextChallenger(), nullptr);
  EXPECT_EQ(leader_.challenger().record.trial, 4);
  leader_.Withdraw();
  EXPECT_EQ(leader_.NextChallenger(), nullptr) << "80 is not faster than 75";
}

TEST_F(LeaderTest, DisturbedProcessesDoNotCount) {
  Screen(1, 100);
  leader_.NextChallenger();
  record::Record disturbed = Measured(1, 500);
  disturbed.quarantined = true;
  leader_.Report(disturbed);
  leader_.Report(disturbed);
  Challenge({100, 100, 100});
  EXPECT_EQ(LatencyNs(), 100);

  Screen(2, 80);  // the machine is always disturbed
  leader_.NextChallenger();
  int processes = 0;
  for (; processes < 10 && leader_.IsBusy(); ++processes) {
    record::Record always = Measured(2, 90);
    always.quarantined = true;
    EXPECT_FALSE(leader_.Report(always));
  }
  EXPECT_LT(processes, 10) << "it is given up";
  EXPECT_EQ(LatencyNs(), 100);
  EXPECT_EQ(record::ProcessesOf(leader_.best()->result), 3);
}

TEST_F(LeaderTest, FailedChallengerIsDropped) {
  Screen(1, 100);
  leader_.NextChallenger();
  record::Record failed = Measured(1, 0);
  failed.result.outcome = record::Outcome::kCrash;
  EXPECT_FALSE(leader_.Report(failed));
  EXPECT_FALSE(leader_.IsBusy());
  EXPECT_FALSE(leader_.best().has_value());
}

TEST_F(LeaderTest, ChallengersTakeAPartOfTheTrials) {
  int processes = 0;
  double latency = 1e9;
  for (int i = 1; i <= 400; ++i) {
    latency *= 0.97;
    leader_.Add(ScreenedOf(Measured(i, latency), "worker"), i);
    while (leader_.NextChallenger() != nullptr) {
      for (; leader_.IsBusy(); ++processes) leader_.Report(Measured(i, latency));
    }
  }
  EXPECT_LE(processes, 400 / 4 + 16);
  EXPECT_GE(processes, 90);
}

TEST_F(LeaderTest, RestoresTheFastestOfEarlierProcesses) {
  leader_.Restore({Measured(1, 100), Measured(1, 105), Measured(1, 101)});
  EXPECT_EQ(LatencyNs(), 105);
  leader_.Restore({Measured(2, 90), Measured(2, 91)});
  EXPECT_EQ(LatencyNs(), 105) << "two processes are not enough";
  leader_.Restore({Measured(3, 110), Measured(3, 111), Measured(3, 112)});
  EXPECT_EQ(LatencyNs(), 105);
}

}  // namespace
}  // namespace hone::job

// The order of grants, without workers.

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/fleet/lease_book.h"

namespace hone::fleet {
namespace {

struct Asker {
  std::string owner;
  std::string job;
  int priority = kNormalPriority;
};

// Repeatedly grants to the asker whose turn is first, and counts the grants of each job.
std::map<std::string, int> Grants(FairShare& shares, const std::vector<Asker>& askers, int grants) {
  std::map<std::string, int> counts;
  for (int i = 0; i < grants; ++i) {
    const Asker* first = nullptr;
    for (const Asker& asker : askers) {
      if (first == nullptr ||
          shares.TurnOf(asker.owner, asker.job) < shares.TurnOf(first->owner, first->job)) {
        first = &asker;
      }
    }
    shares.Charge(first->owner, first->job, first->priority);
    ++counts[first->job];
  }
  return counts;
}

TEST(FairShareTest, OwnersShareEvenlyRegardlessOfJobCount) {
  FairShare shares;
  const auto counts =
      Grants(shares, {{"ann", "a1"}, {"ann", "a2"}, {"ann", "a3"}, {"bob", "b"}}, 600);
  EXPECT_EQ(counts.at("b"), 300);
  EXPECT_EQ(counts.at("a1"), 100);
  EXPECT_EQ(counts.at("a2"), 100);
}

TEST(FairShareTest, PrioritiesWeightSharesWithoutStarvation) {
  FairShare shares;
  const auto counts = Grants(
      shares, {{"ann", "high", kHighPriority}, {"ann", "normal"}, {"ann", "low", kLowPriority}},
      210);
  EXPECT_NEAR(counts.at("high"), 160, 2);
  EXPECT_NEAR(counts.at("normal"), 40, 2);
  EXPECT_NEAR(counts.at("low"), 10, 2);
}

TEST(FairShareTest, PrioritiesWeightSharesBetweenOwners) {
  FairShare shares;
  const auto counts = Grants(shares, {{"ci", "low", kLowPriority}, {"ann", "normal"}}, 500);
  EXPECT_NEAR(counts.at("normal"), 400, 2);
  EXPECT_NEAR(counts.at("low"), 100, 2);
}

TEST(FairShareTest, AbsenceNeitherSavesCreditNorForgivesDebt) {
  FairShare shares;
  Grants(shares, {{"ann", "a"}}, 1000);
  auto counts = Grants(shares, {{"ann", "a"}, {"bob", "b"}}, 100);
  EXPECT_NEAR(counts["b"], 50, 1) << "an absent owner saves up no grants";
  // A low-priority job that submits one candidate at a time gets no more than one that queues many.
  FairShare other;
  std::map<std::string, int> sum;
  for (int i = 0; i < 100; ++i) {
    sum["normal"] += Grants(other, {{"ann", "normal"}}, 1)["normal"];
    for (const auto& [job, count] :
         Grants(other, {{"ann", "normal"}, {"ci", "low", kLowPriority}}, 1)) {
      sum[job] += count;
    }
  }
  EXPECT_LT(sum["low"], sum["normal"] / 3);
}

TEST(FairShareTest, UnusedNamesAreForgotten) {
  FairShare shares;
  for (int i = 0; i < 5000; ++i) {
    shares.Charge("owner" + std::to_string(i), "job" + std::to_string(i), kNormalPriority);
    shares.Charge("constant", "job", kLowPriority);
  }
  EXPECT_LE(shares.TurnOf("new", "new"), shares.TurnOf("constant", "job"));
}

}  // namespace
}  // namespace hone::fleet

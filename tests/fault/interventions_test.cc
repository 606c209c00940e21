// The rules must accuse: an intervention that no fault explains is a violation.

#include "tests/fault/interventions.h"

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::fault {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::Time AtSecond(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

Intervention Resumed(double second, const std::string& error) {
  return {Intervention::Kind::kResume, AtSecond(second), "job 17", error};
}

StruckFault Struck(FaultKind kind, double began, double ended, const std::string& victim = "") {
  return {kind, AtSecond(began), AtSecond(ended), victim};
}

std::vector<std::string> Accused(const std::vector<Intervention>& interventions,
                                 const std::vector<StruckFault>& faults) {
  return CheckInterventions(interventions, faults, absl::UnixEpoch()).violations;
}

constexpr char kFull[] = "database or disk is full; free space on the disk of /s and try again";
constexpr char kObjection[] = "desk-1 says that it is right, and desk-2 has run timeout: it hangs";

TEST(InterventionsTest, AFaultExplainsAJobThatFailsWhileItLastsAndSoonAfter) {
  const StruckFault full = Struck(FaultKind::kFullDisk, 10, 12);
  EXPECT_THAT(Accused({Resumed(11, kFull), Resumed(20, kFull)}, {full}), IsEmpty());
  EXPECT_THAT(Accused({Resumed(9, kFull)}, {full}), SizeIs(1)) << "it failed before the fault";
  EXPECT_THAT(Accused({Resumed(60, kFull)}, {full}), SizeIs(1)) << "it failed long after the fault";
  EXPECT_THAT(
      Accused(
          {Resumed(60, kFull)},
          {{.kind = FaultKind::kFullDisk, .began = AtSecond(10), .ended = absl::InfiniteFuture()}}),
      IsEmpty())
      << "the fault still lasts";
}

TEST(InterventionsTest, AnUnexplainedResumptionNamesTheJobAndItsReason) {
  EXPECT_THAT(Accused({Resumed(11.5, kFull)}, {Struck(FaultKind::kKillWorker, 10, 11)}),
              ElementsAre(AllOf(HasSubstr("job 17 was resumed at 11.5 s"), HasSubstr(kFull),
                                HasSubstr("full disk"))));
  EXPECT_THAT(Accused({Resumed(11, "it was cancelled")}, {Struck(FaultKind::kFullDisk, 10, 12)}),
              ElementsAre(HasSubstr("no fault has this effect")));
  EXPECT_THAT(Accused({Resumed(11, "the search is inconsistent, while searching")},
                      {Struck(FaultKind::kKillLeader, 10, 11)}),
              SizeIs(1));
}

TEST(InterventionsTest, AWorkerIsFlaggedOnlyForAFaultOfAWorkerThatTheFlagNames) {
  const Intervention unflag{Intervention::Kind::kUnflag, AtSecond(15), "worker desk-2", kObjection};
  EXPECT_THAT(Accused({unflag}, {Struck(FaultKind::kStopRunner, 10, 11, "desk-2")}), IsEmpty());
  EXPECT_THAT(Accused({unflag}, {Struck(FaultKind::kStopRunner, 10, 11, "board")}), SizeIs(1));
  EXPECT_THAT(Accused({unflag}, {Struck(FaultKind::kKillBuilder, 10, 11, "desk-2")}), SizeIs(1));
  // All workers measure the same latency, so no fault explains different ones.
  Intervention slow = unflag;
  slow.reason = "desk-1 says that it takes 5 ns, and desk-2 measures 50 ns";
  EXPECT_THAT(Accused({slow}, {Struck(FaultKind::kStopRunner, 10, 11, "desk-2")}), SizeIs(1));
}

TEST(InterventionsTest, AJobIsGivenUpOnlyAfterTwoLostServers) {
  const Intervention given_up =
      Resumed(15, "the server ended abnormally 2 times while it worked on this job");
  const StruckFault first = Struck(FaultKind::kKillLeader, 5, 6);
  EXPECT_THAT(Accused({given_up}, {first}), SizeIs(1));
  EXPECT_THAT(Accused({given_up}, {first, Struck(FaultKind::kKillLeader, 10, 11)}), IsEmpty());
}

TEST(InterventionsTest, AServerEndsByItselfOnlyWithoutItsDatabase) {
  const Intervention restart{
      Intervention::Kind::kRestart, AtSecond(12), "server-1",
      "hone-server: the store in the PostgreSQL database hone: connection to server at ..."};
  EXPECT_THAT(Accused({restart}, {Struck(FaultKind::kKillDatabase, 10, 11)}), IsEmpty());
  EXPECT_THAT(Accused({restart}, {Struck(FaultKind::kKillLeader, 10, 11)}), SizeIs(1));
}

TEST(InterventionsTest, TheVerdictCountsEveryIntervention) {
  const Verdict verdict = CheckInterventions({Resumed(11, kFull), Resumed(12, kFull)},
                                             {Struck(FaultKind::kFullDisk, 10, 12)}, AtSecond(0));
  EXPECT_EQ(verdict.looked_at, 2);
  EXPECT_THAT(verdict.note, HasSubstr("0 workers unflagged, 2 jobs resumed"));
}

TEST(InterventionsTest, EveryRuleCanApply) {
  for (const ExplanationRule& rule : ExplanationRules()) {
    ASSERT_FALSE(rule.reasons.empty());
    EXPECT_FALSE(rule.faults.empty()) << rule.reasons[0];
    EXPECT_GT(rule.within, absl::ZeroDuration()) << rule.reasons[0];
    for (const absl::string_view reason : rule.reasons) EXPECT_FALSE(reason.empty());
  }
}

}  // namespace
}  // namespace hone::fault

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "tests/status.h"

namespace hone::job {
namespace {

TEST(CodecTest, SpecRoundTrips) {
  const JobSpec spec{.request_id = "r\"1\"",
                     .workload = "workload x\ninput A: f32[2]\n",
                     .requested_target = "native",
                     .target_key = "k",
                     .target = "target arch=x86_64",
                     .max_trials = 256,
                     .max_time = absl::Milliseconds(61500),
                     .seed = 0xffffffffffffffff,
                     .strategy = "evolutionary",
                     .cost_model = "xgboost",
                     .tolerance = 1e-3,
                     .draft_model = 12,
                     .space = "workload x\ntrace 1\n",
                     .is_check = true};
  HONE_ASSERT_OK_AND_ASSIGN(JobSpec read, DecodeSpec(EncodeSpec(spec)));
  EXPECT_EQ(read, spec);
}

TEST(CodecTest, SnapshotRoundTrips) {
  JobSnapshot snapshot{.id = "7", .state = JobState::kFailed, .error = "why"};
  snapshot.trials = 3;
  snapshot.outcomes = {{record::Outcome::kOk, 2}, {record::Outcome::kCrash, 1}};
  snapshot.wall = absl::Milliseconds(1234);
  snapshot.best.emplace();
  snapshot.best->record.candidate = {"space", {1, -2, 3}};
  snapshot.best->record.policy.name = "confirm";
  snapshot.best->record.result.latency_ns = 0.1;
  snapshot.best->record.result.facts.program_digest = "p";
  snapshot.best->record.environment.cpu = "cpu";
  snapshot.best->trace = "trace";
  snapshot.best->gflops = 1.0 / 3;
  snapshot.best->pinned_by = "somebody";
  snapshot.best->pinned_unix_ms = 1700000000123;
  snapshot.given = snapshot.best;
  snapshot.given->record.result.outcome = record::Outcome::kWrongOutput;
  snapshot.phase = {PhaseKind::kRound, "detail", 2, 5, 1, true};
  snapshot.unconfirmed = true;
  snapshot.crashed_servers = {"host/2", "other/1"};
  snapshot.proposers = {{"a", {3, 2, 0.5}}, {"b", {}}};
  snapshot.risky_step = {.name = "proposing", .server = "host/1", .boot = "b"};
  HONE_ASSERT_OK_AND_ASSIGN(JobSnapshot read, DecodeSnapshot(EncodeSnapshot(snapshot)));
  EXPECT_EQ(EncodeSnapshot(read), EncodeSnapshot(snapshot));
  EXPECT_EQ(read.best->record.candidate.decisions, snapshot.best->record.candidate.decisions);
  EXPECT_EQ(read.best->gflops, snapshot.best->gflops);
  EXPECT_EQ(read.best->pinned_by, "somebody");
  EXPECT_EQ(read.best->pinned_unix_ms, 1700000000123);
  EXPECT_EQ(read.given->record.result.outcome, record::Outcome::kWrongOutput);
  EXPECT_EQ(read.state, JobState::kFailed);
  EXPECT_EQ(read.outcomes, snapshot.outcomes);
  EXPECT_FALSE(read.default_schedule.has_value());
  EXPECT_EQ(read.phase, snapshot.phase);
  EXPECT_TRUE(read.unconfirmed);
  EXPECT_EQ(read.crashed_servers, snapshot.crashed_servers);
  EXPECT_EQ(read.proposers, snapshot.proposers);
  EXPECT_EQ(read.risky_step, snapshot.risky_step);
}

TEST(CodecTest, DataOfANewerReleaseIsRejectedWithAdvice) {
  const std::string newer = "\x08\x02";  // version 2
  for (const absl::Status& status : {DecodeSpec(newer).status(), DecodeSnapshot(newer).status(),
                                     DecodePropose({"job", 3, kProposeKind, newer}).status(),
                                     DecodeExternal({"job", 3, kExternalKind, newer}).status(),
                                     DecodeTell({"job", 3, kTellKind, newer}).status()}) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         ::testing::AllOf(::testing::HasSubstr("version 2"),
                                          ::testing::HasSubstr("start the newer hone-server"))));
  }
}

TEST(CodecTest, EventsRoundTrip) {
  const ProposeEvent propose{.number = 4,
                             .asked = 2,
                             .model_version = 1,
                             .model_tells = 16,
                             .prior_record = 9,
                             .proposals = {{{"s", {1, 2}}, 5}, {{"s", {}}, -1}}};
  HONE_ASSERT_OK_AND_ASSIGN(ProposeEvent read, DecodePropose(Encode("job", propose)));
  EXPECT_EQ(read.number, 4);
  EXPECT_EQ(read.model_tells, 16);
  EXPECT_EQ(read.prior_record, 9);
  EXPECT_EQ(read.proposals, propose.proposals);

  const ExternalEvent external{.number = 7, .proposer = "mutator", .proposal = {{"s", {1, -2}}, 3}};
  HONE_ASSERT_OK_AND_ASSIGN(ExternalEvent given, DecodeExternal(Encode("job", external)));
  EXPECT_EQ(given.number, 7);
  EXPECT_EQ(given.proposer, "mutator");
  EXPECT_EQ(given.proposal, external.proposal);

  const TellEvent tells{
      5, {{3, record::Outcome::kWrongOutput, 0.30000000000000004}, {1, record::Outcome::kOk, 7}}};
  HONE_ASSERT_OK_AND_ASSIGN(TellEvent told, DecodeTell(Encode("job", tells)));
  EXPECT_EQ(told.number, 5);
  EXPECT_EQ(told.told, tells.told);
}

TEST(CodecTest, DamageIsDataLoss) {
  for (const char* text : {"", "{", "no", "\x08"}) {
    for (const absl::Status& status : {DecodeSpec(text).status(), DecodeSnapshot(text).status(),
                                       DecodePropose({"job", 0, kProposeKind, text}).status(),
                                       DecodeExternal({"job", 0, kExternalKind, text}).status(),
                                       DecodeTell({"job", 0, kTellKind, text}).status()}) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss)) << text;
    }
  }
  const char* const nothing = "\x08\x01";  // version 1, and no results
  EXPECT_THAT(DecodeExternal({"job", 0, kExternalKind, nothing}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeTell({"job", 0, kTellKind, nothing}), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace hone::job

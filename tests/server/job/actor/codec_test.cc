#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "server/job/actor/search_event.h"

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
                     .transfer = true,
                     .space = "workload x\ntrace 1\n"};
  absl::StatusOr<JobSpec> read = DecodeSpec(EncodeSpec(spec));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, spec);
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
  snapshot.crashes = 1;
  snapshot.risky_step = {.name = "proposing", .server = "host/1", .boot = "b"};
  absl::StatusOr<JobSnapshot> read = DecodeSnapshot(EncodeSnapshot(snapshot));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(EncodeSnapshot(*read), EncodeSnapshot(snapshot));
  EXPECT_EQ(read->best->record.candidate.decisions, snapshot.best->record.candidate.decisions);
  EXPECT_EQ(read->best->gflops, snapshot.best->gflops);
  EXPECT_EQ(read->best->pinned_by, "somebody");
  EXPECT_EQ(read->best->pinned_unix_ms, 1700000000123);
  EXPECT_EQ(read->given->record.result.outcome, record::Outcome::kWrongOutput);
  EXPECT_EQ(read->state, JobState::kFailed);
  EXPECT_EQ(read->outcomes, snapshot.outcomes);
  EXPECT_FALSE(read->default_schedule.has_value());
  EXPECT_EQ(read->crashes, 1);
  EXPECT_EQ(read->risky_step, snapshot.risky_step);
}

TEST(CodecTest, ASnapshotOfAnEarlierVersionHasNoCrashes) {
  const absl::StatusOr<JobSnapshot> read = DecodeSnapshot(R"({"id":"7","state":"running"})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->crashes, 0);
  EXPECT_FALSE(read->risky_step.has_value());
}

TEST(CodecTest, ReadsJsonOfEarlierReleases) {
  const absl::StatusOr<JobSpec> spec =
      DecodeSpec(R"({"max_time_ms":61500,"seed":18446744073709551615,"transfer":false,
                     "priority":"high","strategy":"evolutionary"})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->max_time, absl::Milliseconds(61500));
  EXPECT_EQ(spec->seed, 0xffffffffffffffff);
  EXPECT_FALSE(spec->transfer);
  EXPECT_EQ(spec->priority, "high");
  EXPECT_EQ(spec->strategy, "evolutionary");
  EXPECT_TRUE(DecodeSpec(R"({"seed":1})")->transfer) << "it used to be the default";
  const absl::StatusOr<JobSnapshot> snapshot = DecodeSnapshot(
      R"({"state":"confirming","wall_ms":7,"version":3,"outcomes":{"ok":2,"crash":1},
          "default":{"gflops":2.5,"record":{"op":"matmul","space":"s","decisions":[1,-2],
            "policy":{"name":"confirm","threads":2},"job_id":"4","trial":9,"is_default":true,
            "result":{"outcome":"wrong_output","samples_ns":[1.5],"artifact_digest":"a",
                      "facts":{"program_digest":"p"},"machine":{"remeasured":5}},
            "environment":{"cpu":"c","cores":4}}},
          "risky_step":{"name":"n","server":"s","boot":"b"}})");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->state, JobState::kConfirming);
  EXPECT_EQ(snapshot->wall, absl::Milliseconds(7));
  EXPECT_EQ(snapshot->version, 3);
  EXPECT_EQ(snapshot->outcomes, (std::map<record::Outcome, int64_t>{{record::Outcome::kOk, 2},
                                                                    {record::Outcome::kCrash, 1}}));
  EXPECT_EQ(snapshot->risky_step, (RiskyStep{.name = "n", .server = "s", .boot = "b"}));
  EXPECT_FALSE(snapshot->best.has_value());
  ASSERT_TRUE(snapshot->default_schedule.has_value());
  EXPECT_EQ(snapshot->default_schedule->gflops, 2.5);
  const record::Record& record = snapshot->default_schedule->record;
  EXPECT_EQ(record.op, "matmul");
  EXPECT_EQ(record.candidate, (record::Candidate{"s", {1, -2}}));
  EXPECT_EQ(record.policy.Key(), "confirm/warm/2");
  EXPECT_EQ(record.job_id, "4");
  EXPECT_EQ(record.trial, 9);
  EXPECT_TRUE(record.is_default);
  EXPECT_EQ(record.result.outcome, record::Outcome::kWrongOutput);
  EXPECT_EQ(record.result.samples_ns, std::vector<double>{1.5});
  EXPECT_EQ(record.result.artifact_digest, "a");
  EXPECT_EQ(record.result.facts.program_digest, "p");
  EXPECT_EQ(record.result.machine.remeasured, 5);
  EXPECT_EQ(record.environment.cpu, "c");
  EXPECT_EQ(record.environment.cores, 4);
}

TEST(CodecTest, DataOfANewerReleaseIsRejectedWithAdvice) {
  const std::string newer = "\x08\x04";  // version 4
  for (const absl::Status& status : {DecodeSpec(newer).status(), DecodeSnapshot(newer).status(),
                                     DecodePropose({"job", 3, kProposeKind, newer}).status(),
                                     DecodeTell({"job", 3, kTellKind, newer}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(::testing::HasSubstr("version 4"),
                                 ::testing::HasSubstr("start the newer hone-server")));
  }
}

TEST(CodecTest, EventsRoundTrip) {
  const ProposeEvent propose{.number = 4,
                             .asked = 2,
                             .model_version = 1,
                             .model_tells = 16,
                             .prior_record = 9,
                             .proposals = {{{"s", {1, 2}}, 5}, {{"s", {}}, -1}}};
  absl::StatusOr<ProposeEvent> read = DecodePropose(Encode("job", propose));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->number, 4);
  EXPECT_EQ(read->model_tells, 16);
  EXPECT_EQ(read->prior_record, 9);
  EXPECT_EQ(read->proposals, propose.proposals);

  const TellEvent tells{
      5, {{3, record::Outcome::kWrongOutput, 0.30000000000000004}, {1, record::Outcome::kOk, 7}}};
  absl::StatusOr<TellEvent> told = DecodeTell(Encode("job", tells));
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->number, 5);
  EXPECT_EQ(told->told, tells.told);
}

TEST(CodecTest, ATellOfAnEarlierVersionIsRead) {
  const absl::StatusOr<TellEvent> told =
      DecodeTell({"job", 9, kTellKind, R"({"latency_ns":2.5,"outcome":"ok","trial":4})"});
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->told, (std::vector<TellEvent::Told>{{4, record::Outcome::kOk, 2.5}}));
}

TEST(CodecTest, DamageIsDataLoss) {
  for (const char* text : {"", "{", "[]", "7", "{\"proposals\":7}", "{\"proposals\":[7]}"}) {
    EXPECT_FALSE(DecodePropose({"job", 0, kProposeKind, text}).ok()) << text;
  }
  for (const char* text : {"{\"outcome\":\"fine\"}", "{\"told\":[]}", "{\"told\":7}",
                           "{\"told\":[7]}", "{\"told\":[{\"outcome\":\"fine\"}]}"}) {
    EXPECT_EQ(DecodeTell({"job", 0, kTellKind, text}).status().code(), absl::StatusCode::kDataLoss)
        << text;
  }
  EXPECT_FALSE(DecodeSpec("no").ok());
  EXPECT_FALSE(DecodeSnapshot("no").ok());
  EXPECT_TRUE(DecodeSpec("{\"max_trials\":\"many\",\"seed\":null}").ok());
}

}  // namespace
}  // namespace hone::job

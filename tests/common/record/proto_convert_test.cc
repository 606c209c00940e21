#include "common/record/proto_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/status.h"

namespace hone::record {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

MeasureResult SomeResult() {
  return {.outcome = Outcome::kOk,
          .detail = "fine",
          .samples_ns = {10.5, 11, 10},
          .latency_ns = 10.5,
          .dispersion = 0.02,
          .reference_drift = 1.01,
          .stopped_early = true,
          .facts = {.compile_ms = 12,
                    .link_ms = 0.5,
                    .code_bytes = 4096,
                    .spills = 1,
                    .loads_per_fma = 0.25,
                    .workspace_bytes = 64,
                    .program_digest = "0123456789abcdef0123456789abcdef"},
          .artifact_digest = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210",
          .max_error = 0.5,
          .machine = {.frequency_mhz = 2500,
                      .temperature_c = -4,
                      .load = 0.25,
                      .steal = 0.01,
                      .remeasured = 2}};
}

TEST(ProtoConvertTest, EveryOutcomeRoundTrips) {
  for (const Outcome outcome : AllOutcomes()) {
    HONE_ASSERT_OK_AND_ASSIGN(const Outcome back, FromProto(ToProto(outcome)));
    EXPECT_EQ(back, outcome);
  }
  EXPECT_FALSE(FromProto(v1::OUTCOME_UNSPECIFIED).ok());
  EXPECT_FALSE(FromProto(static_cast<v1::Outcome>(77)).ok());
}

TEST(ProtoConvertTest, RecordsKeepEveryField) {
  Record record;
  record.id = 7;
  record.workload_digest = "0123456789abcdef0123456789abcdef";
  record.op = "matmul";
  record.target = "x86_64-cascadelake-avx512-2c-01234567";
  record.tolerance = 1e-3;
  record.policy = {
      .name = "confirm", .cache = "flushed", .threads = 2, .repeats = 9, .confidence = 0.95};
  record.candidate = {.space_digest = "00000000000000000000000000000001", .decisions = {4, -1, 9}};
  record.result = SomeResult();
  record.environment = {.cpu = "cpu",
                        .isa = "avx2",
                        .cores = 2,
                        .os = "Linux",
                        .governor = "none",
                        .compiler = "llvm 19",
                        .codegen_version = 3,
                        .hone_version = "0.1"};
  record.job_id = "job";
  record.trial = 12;
  record.created_unix_ms = 1700000000000;
  record.is_default = true;
  record.proposer = "a program";
  record.quarantined = true;
  record.quarantine_reason = "out of policy";
  const v1::Record proto = ToProto(record);
  HONE_ASSERT_OK_AND_ASSIGN(const Record back, FromProto(proto));
  EXPECT_EQ(ToProto(back).SerializeAsString(), proto.SerializeAsString());
  EXPECT_EQ(back.policy, record.policy);
  EXPECT_EQ(back.candidate, record.candidate);
  EXPECT_EQ(back.environment, record.environment);
  EXPECT_EQ(back.result.samples_ns, record.result.samples_ns);
  EXPECT_EQ(back.trial, 12);
  EXPECT_TRUE(back.quarantined);
  EXPECT_EQ(back.quarantine_reason, "out of policy");
  EXPECT_EQ(back.proposer, "a program");
  EXPECT_EQ(back.result.machine, record.result.machine);
}

TEST(ProtoConvertTest, RefusesImpossibleMachineStates) {
  for (const char* const field : {"frequency", "load", "steal", "temperature", "remeasured"}) {
    MeasureResult result = SomeResult();
    v1::MeasureResult proto = ToProto(result);
    v1::MachineState& machine = *proto.mutable_machine();
    const std::string name = field;
    if (name == "frequency") machine.set_frequency_mhz(-1);
    if (name == "load") machine.set_load(std::nan(""));
    if (name == "steal") machine.set_steal(-0.5);
    if (name == "temperature") machine.set_temperature_c(std::nan(""));
    if (name == "remeasured") machine.set_remeasured(-1);
    EXPECT_THAT(Message(FromProto(proto).status()), HasSubstr(name));
  }
}

TEST(ProtoConvertTest, BuildAndRunRequestsRoundTrip) {
  const BuildRequest build = {.workload = "w",
                              .space = "s",
                              .decisions = {1, 2},
                              .target = "t",
                              .artifact_dir = "/a",
                              .reference = true};
  HONE_ASSERT_OK_AND_ASSIGN(const auto build_back, FromProto(ToProto(build)));
  EXPECT_EQ(build_back.decisions, build.decisions);
  EXPECT_EQ(build_back.artifact_dir, "/a");
  EXPECT_TRUE(build_back.reference);

  const RunRequest run = {.workload = "w",
                          .workload_digest = "d",
                          .artifact_path = "/a/1",
                          .reference_path = "/a/2",
                          .reference_data = "/a/3",
                          .policy = {},
                          .tolerance = 0.5,
                          .best_latency_ns = 100,
                          .seed = 9,
                          .time_limit_ms = 5};
  HONE_ASSERT_OK_AND_ASSIGN(const auto run_back, FromProto(ToProto(run)));
  EXPECT_EQ(run_back.reference_data, "/a/3");
  EXPECT_EQ(run_back.seed, 9u);
  EXPECT_EQ(run_back.time_limit_ms, 5);
}

TEST(ProtoConvertTest, RejectsInvalidMeasurements) {
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), -1.0}) {
    v1::MeasureResult proto = ToProto(SomeResult());
    proto.set_latency_ns(bad);
    EXPECT_THAT(Message(FromProto(proto).status()), HasSubstr("latency ns"));
    proto = ToProto(SomeResult());
    proto.add_samples_ns(bad);
    EXPECT_THAT(Message(FromProto(proto).status()), HasSubstr("samples ns"));
    proto = ToProto(SomeResult());
    proto.mutable_facts()->set_compile_ms(bad);
    EXPECT_THAT(Message(FromProto(proto).status()), HasSubstr("compile ms"));
  }
}

TEST(ProtoConvertTest, RejectsAPathAsArtifactDigest) {
  v1::MeasureResult proto = ToProto(SomeResult());
  proto.set_artifact_digest("../../etc/passwd");
  EXPECT_THAT(Message(FromProto(proto).status()), HasSubstr("artifact digest"));
}

TEST(ProtoConvertTest, RefusesUnknownPoliciesAndOversizedLists) {
  v1::Policy policy = ToProto(Policy{});
  policy.set_name("guess");
  EXPECT_THAT(Message(FromProto(policy).status()), HasSubstr("guess"));
  policy = ToProto(Policy{});
  policy.set_confidence(1.5);
  EXPECT_THAT(Message(FromProto(policy).status()), HasSubstr("confidence"));
  policy = ToProto(Policy{});
  policy.set_repeats(-1);
  EXPECT_THAT(Message(FromProto(policy).status()), HasSubstr("repeats"));
  v1::Candidate candidate;
  candidate.mutable_decisions()->Resize(kMaxDecisions + 1, 0);
  EXPECT_FALSE(FromProto(candidate).ok());
  v1::MeasureResult result = ToProto(SomeResult());
  result.mutable_samples_ns()->Resize(kMaxSamples + 1, 1);
  EXPECT_FALSE(FromProto(result).ok());
}

TEST(ProtoConvertTest, SanitizesDetailsOfACrashedChild) {
  MeasureResult result = SomeResult();
  result.detail = "before \xff\xc0\xed\xa0\x80 after ≤ é 😀";
  const std::string bytes = ToProto(result).SerializeAsString();
  v1::MeasureResult parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.detail(), "before ????? after ≤ é 😀");
  result.detail = std::string(kMaxDetailBytes - 1, 'x') + "≤≤≤";
  HONE_ASSERT_OK_AND_ASSIGN(const MeasureResult back, FromProto(ToProto(result)));
  EXPECT_EQ(back.detail.size(), kMaxDetailBytes - 1u);  // no half character
}

}  // namespace
}  // namespace hone::record

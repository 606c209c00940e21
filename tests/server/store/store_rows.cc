#include "tests/server/store/store_rows.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/store/done.h"
#include "tests/status.h"

namespace hone::store {

record::Record ConfirmedRecord(double latency_ns) {
  record::Record record;
  record.workload_digest = kWorkload;
  record.op = "matmul";
  record.target = kTarget;
  record.tolerance = 1e-5;
  record.policy = {
      .name = "confirm", .cache = "flushed", .threads = 2, .repeats = 9, .confidence = 0.95};
  record.candidate = {.space_digest = kSpace, .decisions = {0, -1, 127, 128, INT64_MIN, INT64_MAX}};
  record::MeasureResult& result = record.result;
  result.detail = "a detail";
  result.samples_ns = {latency_ns - 0.25, latency_ns, latency_ns + 1e-9};
  result.latency_ns = latency_ns;
  result.dispersion = 0.01;
  result.reference_drift = 1.02;
  result.stopped_early = true;
  result.facts = {.compile_ms = 12.5,
                  .link_ms = 0.5,
                  .code_bytes = 4096,
                  .spills = 3,
                  .loads_per_fma = 0.4,
                  .workspace_bytes = 65536,
                  .program_digest = "0000000000000000000000000000000d"};
  result.artifact_digest = kArtifact;
  result.max_error = 0.5;
  result.machine = {
      .frequency_mhz = 2500.5, .temperature_c = -3.5, .load = 0.25, .steal = 0.01, .remeasured = 2};
  result.processes = 3;
  result.inputs = "seeded-2";
  result.counters = "cycles 1000\ninstructions 2500\n";
  record.environment = {.cpu = "a cpu",
                        .isa = "avx2",
                        .cores = 2,
                        .os = "an os",
                        .governor = "performance",
                        .compiler = "llvm 19.1.7",
                        .codegen_version = 7,
                        .hone_version = "0.1.0"};
  record.job_id = "job-1";
  record.trial = 42;
  record.created_unix_ms = 1700000000123;
  record.is_default = true;
  record.proposer = "somebody";
  return record;
}

record::Record ScreenedRecord(double latency_ns) {
  record::Record record = ConfirmedRecord(latency_ns);
  record.policy.name = "screen";
  record.is_default = false;
  record.proposer.clear();
  return record;
}

void ExpectEqual(const record::Record& a, const record::Record& b) {
  using testing::NanSensitiveDoubleEq;
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.workload_digest, b.workload_digest);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.tolerance, b.tolerance);
  EXPECT_EQ(a.policy, b.policy);
  EXPECT_EQ(a.candidate, b.candidate);
  EXPECT_EQ(a.result.outcome, b.result.outcome);
  EXPECT_EQ(a.result.detail, b.result.detail);
  EXPECT_THAT(a.result.samples_ns, testing::Pointwise(NanSensitiveDoubleEq(), b.result.samples_ns));
  EXPECT_THAT(a.result.latency_ns, NanSensitiveDoubleEq(b.result.latency_ns));
  EXPECT_THAT(a.result.dispersion, NanSensitiveDoubleEq(b.result.dispersion));
  EXPECT_THAT(a.result.reference_drift, NanSensitiveDoubleEq(b.result.reference_drift));
  EXPECT_EQ(a.result.stopped_early, b.result.stopped_early);
  EXPECT_EQ(a.result.facts.compile_ms, b.result.facts.compile_ms);
  EXPECT_EQ(a.result.facts.link_ms, b.result.facts.link_ms);
  EXPECT_EQ(a.result.facts.code_bytes, b.result.facts.code_bytes);
  EXPECT_EQ(a.result.facts.spills, b.result.facts.spills);
  EXPECT_THAT(a.result.facts.loads_per_fma, NanSensitiveDoubleEq(b.result.facts.loads_per_fma));
  EXPECT_EQ(a.result.facts.workspace_bytes, b.result.facts.workspace_bytes);
  EXPECT_EQ(a.result.facts.program_digest, b.result.facts.program_digest);
  EXPECT_EQ(a.result.artifact_digest, b.result.artifact_digest);
  EXPECT_EQ(a.result.processes, b.result.processes);
  EXPECT_EQ(a.result.inputs, b.result.inputs);
  EXPECT_EQ(a.result.counters, b.result.counters);
  EXPECT_THAT(a.result.max_error, NanSensitiveDoubleEq(b.result.max_error));
  EXPECT_EQ(a.environment, b.environment);
  EXPECT_EQ(a.job_id, b.job_id);
  EXPECT_EQ(a.trial, b.trial);
  EXPECT_EQ(a.created_unix_ms, b.created_unix_ms);
  EXPECT_EQ(a.is_default, b.is_default);
  EXPECT_EQ(a.proposer, b.proposer);
  EXPECT_EQ(a.quarantined, b.quarantined);
  EXPECT_EQ(a.quarantine_reason, b.quarantine_reason);
  EXPECT_EQ(a.result.machine, b.result.machine);
}

void PutTextsAndArtifact(Store& store) {
  ASSERT_THAT(PutText(store, kWorkload, "the workload"), IsOk());
  ASSERT_THAT(PutText(store, kSpace, "the space"), IsOk());
  ASSERT_THAT(PutArtifact(store, kArtifact, "the artifact"), IsOk());
}

JobRow PendingJob(const std::string& id, int64_t created_unix_ms) {
  JobRow job;
  job.id = id;
  job.request_id = absl::StrCat("request of ", id);
  job.request = std::string("a\0request", 9);
  job.state = "pending";
  job.summary = std::string("a\0summary", 9);
  job.created_unix_ms = created_unix_ms;
  job.updated_unix_ms = created_unix_ms + 1;
  job.owner = "somebody";
  job.priority = "high";
  return job;
}

void StoreConformanceTest::Reopen() {
  store_.reset();
  HONE_ASSERT_OK_AND_ASSIGN(store_, GetParam().open(folder_.path()));
}

std::string FactoryName(const testing::TestParamInfo<StoreFactory>& info) {
  return info.param.name;
}

}  // namespace hone::store

#include "tests/server/confirm/confirm_harness.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/record/given_inputs.h"
#include "tests/status.h"

namespace hone::job {
namespace {

std::string CodeOf(const std::string& space_digest, const std::vector<int64_t>& decisions) {
  return absl::StrCat(space_digest, absl::StrJoin(decisions, ","));
}

void ExpectOk(const absl::Status& status) { EXPECT_THAT(status, IsOk()); }

}  // namespace

double Latency(const fleet::LeaseGrant& lease) {
  const bool hidden = lease.work->decisions == kHidden && IsConfirmation(lease);
  return hidden ? 60 : FakeLatency(lease.work->decisions);
}

ConfirmHarness::ConfirmHarness() {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = Latency(lease);
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
}

std::vector<fleet::LeaseGrant> ConfirmHarness::ConfirmLeases() {
  std::vector<fleet::LeaseGrant> leases;
  for (const fleet::LeaseGrant& lease : device.seen) {
    if (IsConfirmation(lease)) leases.push_back(lease);
  }
  return leases;
}

record::Record ConfirmHarness::StoreFromElsewhere(const std::vector<int64_t>& decisions,
                                                  double latency_ns) {
  const WorkloadInfo workload = *environment.Describe("fake op 12");
  const SpaceInfo space = (*environment.Open("fake op 12", "", "", 0))->spaces()[0];
  record::Record record{.workload_digest = workload.digest,
                        .op = workload.op,
                        .target = "t",
                        .candidate = {space.digest, decisions},
                        .job_id = "elsewhere"};
  record.policy.name = "confirm";
  record.result.latency_ns = latency_ns;
  record.result.processes = 3;
  record.result.inputs = inputs_elsewhere;
  record.result.artifact_digest = Sha256Of(CodeOf(space.digest, decisions));
  store.PutText(workload.digest, workload.text, ExpectOk);
  store.PutText(space.digest, space.text, ExpectOk);
  store.Append(record, [&](absl::StatusOr<record::Record> stored) { record = *stored; });
  return record;
}

int64_t ConfirmHarness::PublishFromElsewhere(const std::vector<int64_t>& decisions,
                                             double latency_ns) {
  const record::Record record = StoreFromElsewhere(decisions, latency_ns);
  store.PutArtifact(record.result.artifact_digest, CodeOf(record.candidate.space_digest, decisions),
                    ExpectOk);
  store.PublishBest(record.id, ExpectOk);
  return record.id;
}

void ConfirmHarness::Pin(int64_t record) {
  store.PinBest({.workload_digest = environment.Describe("fake op 12")->digest, .target = "t"},
                record, "somebody", ExpectOk);
}

void ConfirmHarness::RunUntilConfirming(const std::string& id) {
  for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step();
  device.seen.clear();
}

std::shared_ptr<const JobSnapshot> ConfirmHarness::RunBeside(const std::vector<int64_t>& decisions,
                                                             int64_t& published) {
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  published = PublishFromElsewhere(decisions);
  return RunToEnd(id);
}

}  // namespace hone::job

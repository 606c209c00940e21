#ifndef HONE_TESTS_SERVER_CONFIRM_CONFIRM_HARNESS_H_
#define HONE_TESTS_SERVER_CONFIRM_CONFIRM_HARNESS_H_

#include <memory>
#include <string>
#include <vector>

#include "common/record/given_inputs.h"
#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"

namespace hone::job {

// Candidates that the search does not consider good.
inline const std::vector<int64_t> kSlow = {9, 9, 9};
inline const std::vector<int64_t> kHidden = {11, 0, 11};  // the fastest of all in confirmations

// The time of a candidate on the harness's device.
double Latency(const fleet::LeaseGrant& lease);

// A JobHarness for the end of jobs, beside other jobs that publish candidates.
class ConfirmHarness : public ::testing::Test, protected JobHarness {
 protected:
  ConfirmHarness();
  std::vector<fleet::LeaseGrant> ConfirmLeases();
  std::string inputs_elsewhere = record::kSeededInputs;  // that other jobs measured on
  // Stores a confirmed candidate of the jobs' design space, without its artifact, as an import
  // does. Returns its record.
  record::Record StoreFromElsewhere(const std::vector<int64_t>& decisions, double latency_ns);
  // Publishes such a candidate on behalf of another job. Returns its record's id.
  int64_t PublishFromElsewhere(const std::vector<int64_t>& decisions, double latency_ns);
  // The same with the latency that the device measures.
  int64_t PublishFromElsewhere(const std::vector<int64_t>& decisions) {
    return PublishFromElsewhere(decisions, decisions == kHidden ? 60 : FakeLatency(decisions));
  }
  void Pin(int64_t record);
  // Runs a job until its search is over, and forgets the leases so far.
  void RunUntilConfirming(const std::string& id);
  // Runs a job. While it confirms its finalists, another job publishes a candidate.
  std::shared_ptr<const JobSnapshot> RunBeside(const std::vector<int64_t>& decisions,
                                               int64_t& published);
  store::BestRow Best(const JobSnapshot& job) {
    return *store.LookupBest({.workload_digest = job.workload_digest, .target = "t"});
  }
};

}  // namespace hone::job

#endif  // HONE_TESTS_SERVER_CONFIRM_CONFIRM_HARNESS_H_

#ifndef HONE_TESTS_CLIENT_CLI_MEASURED_H_
#define HONE_TESTS_CLIENT_CLI_MEASURED_H_

#include <cstdint>
#include <string>

#include "client/connection/api.h"

// Jobs that have ended, and a design space, for the tests of reports.
namespace hone::cli {

// A confirmed best, which a job measured in a number of processes.
inline client::Best Measured(int64_t record, const std::string& job, double latency_ns,
                             int processes) {
  client::Best best;
  best.record.id = record;
  best.record.job_id = job;
  best.record.policy.name = "confirm";
  best.record.created_unix_ms = 1'700'000'000'000;
  best.record.result.outcome = record::Outcome::kOk;
  best.record.result.latency_ns = latency_ns;
  best.record.result.reference_drift = 1;
  best.record.result.processes = processes;
  best.gflops = 1;
  return best;
}

// Job 7 on target t, with a best that is twice as fast as the default.
inline client::Job DoneJob() {
  client::Job job;
  job.id = "7";
  job.target = "t";
  job.state = client::JobState::kDone;
  job.default_schedule = Measured(1, "7", 2000, 3);
  job.best = Measured(2, "7", 1000, 3);
  job.own_best = Measured(2, "7", 1000, 3);
  return job;
}

// A design space that contains one schedule: that of the untiled default.
inline std::string SpaceOfOneSchedule() {
  return "workload relu\ninput A: f32[8]\noutput C[i: 8] = max(A[i], 0)\ntrace 1\n"
         "b0 = block(\"C\")\nl0 = loops(b0)\n";
}

}  // namespace hone::cli

#endif  // HONE_TESTS_CLIENT_CLI_MEASURED_H_

#ifndef HONE_TESTS_CLIENT_CLI_MEASURED_H_
#define HONE_TESTS_CLIENT_CLI_MEASURED_H_

#include <cstdint>
#include <string>

#include "client/connection/api.h"

// Jobs that have ended, and a design space, for the tests of reports.
namespace hone::cli {

// A confirmed best, which a job measured in a number of processes.
inline v1::Best Measured(int64_t record, const std::string& job, double latency_ns, int processes) {
  v1::Best best;
  best.mutable_record()->set_id(record);
  best.mutable_record()->set_job_id(job);
  best.mutable_record()->mutable_policy()->set_name("confirm");
  best.mutable_record()->mutable_policy()->set_cache("warm");
  best.set_confirmed(true);
  best.mutable_record()->set_created_unix_ms(1'700'000'000'000);
  best.mutable_record()->mutable_result()->set_outcome(v1::OUTCOME_OK);
  best.set_latency_ns(latency_ns);
  best.set_processes(processes);
  best.set_gflops(1);
  return best;
}

// Job 7 on target t, with a best that is twice as fast as the default.
inline v1::Job DoneJob() {
  v1::Job job;
  job.set_id("7");
  job.set_target("t");
  job.set_state(v1::JOB_STATE_DONE);
  job.set_default_confirmed(true);
  *job.mutable_default_schedule() = Measured(1, "7", 2000, 3);
  *job.mutable_best() = Measured(2, "7", 1000, 3);
  *job.mutable_own_best() = Measured(2, "7", 1000, 3);
  return job;
}

}  // namespace hone::cli

#endif  // HONE_TESTS_CLIENT_CLI_MEASURED_H_

#ifndef HONE_TESTS_SERVER_JOB_SEARCH_MODEL_RECORDS_H_
#define HONE_TESTS_SERVER_JOB_SEARCH_MODEL_RECORDS_H_

#include <string>

#include "server/store/store.h"

namespace hone::job {

// Stores a job on the target "t" and `count` different screened trials of the fake workload "fake
// OP SIZE", measured like the fake device (tests/fakes/fake_task_environment.h). Returns the digest
// of the workload.
std::string PutTrials(store::Store& store, const std::string& op, int size, int count,
                      const std::string& job = "job");

// A further record of a workload, whose fields the test can change before it stores the record.
record::Record TrialOf(const std::string& op, int size, const std::vector<int64_t>& decisions,
                       const std::string& job = "job");
void PutRecord(store::Store& store, const record::Record& record);

}  // namespace hone::job

#endif  // HONE_TESTS_SERVER_JOB_SEARCH_MODEL_RECORDS_H_

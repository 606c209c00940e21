#ifndef HONE_TESTS_SERVER_TASK_MODEL_RECORDS_H_
#define HONE_TESTS_SERVER_TASK_MODEL_RECORDS_H_

#include <string>

#include "server/store/store.h"

namespace hone::task {

// Puts a job on the target "t" and `count` different screened trials of the fake workload "fake OP
// SIZE" into the store, measured as the fake device does (tests/fakes/fake_task_environment.h).
// Returns the workload's digest.
std::string PutTrials(store::Store& store, const std::string& op, int size, int count,
                      const std::string& job = "job");

// One more record of a workload, in which the test sets what it is about.
record::Record TrialOf(const std::string& op, int size, const std::vector<int64_t>& decisions,
                       const std::string& job = "job");
void PutRecord(store::Store& store, const record::Record& record);

}  // namespace hone::task

#endif  // HONE_TESTS_SERVER_TASK_MODEL_RECORDS_H_

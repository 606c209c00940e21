#ifndef HONE_SERVER_TASK_TRANSFER_H_
#define HONE_SERVER_TASK_TRANSFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/store/store.h"
#include "server/task/task_environment.h"

namespace hone::task {

// What a task learns from other workloads of its target.
struct Transfer {
  // Measured candidates of another workload's design space.
  struct Space {
    std::string text;
    std::vector<std::vector<int64_t>> decisions;
    std::vector<double>
        scores;  // the best latency of the workload over the candidate's; 0: it failed
  };

  int64_t last_record = 0;  // records up to this id were looked at
  // Good candidates of related workloads, adapted to the task's own spaces, best first.
  std::vector<record::Candidate> seeds;
  // What a model starts from.
  std::vector<Space> spaces;
  int workloads = 0;  // that the results are of
  int results = 0;

  bool empty() const { return seeds.empty() && spaces.empty(); }
};

struct TransferQuery {
  WorkloadInfo workload;
  std::string target_key;
  double tolerance = 0;
  int64_t up_to_record = -1;  // later records are left out; -1: none
};

// Collects it from the newest records of the target, at most 2000 results: those of workloads with
// the same name, and where they are few, those of every related one (TaskEnvironment::Distance). A
// function of the arguments and of the records up to last_record: a task that is restored passes
// last_record back and gets the same. Some tens of milliseconds. Errors: of the store.
absl::StatusOr<Transfer> GatherTransfer(store::Store& store, const TaskEnvironment& environment,
                                        const TaskSpaces& spaces, const TransferQuery& query);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_TRANSFER_H_

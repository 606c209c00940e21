#ifndef HONE_SERVER_TASK_TRANSFER_H_
#define HONE_SERVER_TASK_TRANSFER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/record/record.h"
#include "server/cost_model/cost_model.h"
#include "server/search/search_strategy.h"
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
  // The stored model that it starts from instead of training one on `spaces`; null: there is none.
  std::shared_ptr<const cost_model::CostModel> model;
  int64_t model_id = 0;  // its row in the store

  bool empty() const { return seeds.empty() && spaces.empty() && model == nullptr; }
};

// What another workload of the target came to.
struct RelatedWorkload {
  double distance = 0;                    // TaskEnvironment::Distance
  std::vector<search::Measured> results;  // of any of its design spaces
};

// What a task with these spaces learns from related workloads, nearest first. `text`: of a design
// space by its digest; spaces whose text it does not know are left out. A function of the arguments
// alone.
Transfer TransferFrom(
    absl::Span<const RelatedWorkload> nearest, const TaskSpaces& spaces,
    absl::FunctionRef<absl::StatusOr<std::string>(const std::string& digest)> text);

struct TransferQuery {
  WorkloadInfo workload;
  std::string target_key;
  double tolerance = 0;
  int64_t up_to_record = -1;  // later records are left out; -1: none
  // The model that the task trains, and the feature set that it reads ("": its own); a stored one
  // of both, of this target, is what it starts from: the one of the workload's operator, else that
  // of every operator. "": stored models are not looked at.
  std::string cost_model;
  std::string feature_set;
  int64_t model_id = -1;  // this row and no other; 0: none; -1: the newest
};

// Collects it from the newest records of the target, at most 2000 results: those of workloads with
// the same name, and where they are few, those of every related one (TaskEnvironment::Distance). A
// function of the arguments and of the records up to last_record: a task that is restored passes
// last_record back and gets the same, and with model_id the same model as long as the store keeps
// it. A stored model that cannot be loaded, because it is of another version, is left out with a
// line in the log. Some tens of milliseconds. Errors: of the store.
absl::StatusOr<Transfer> GatherTransfer(store::Store& store, const TaskEnvironment& environment,
                                        const TaskSpaces& spaces, const TransferQuery& query);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_TRANSFER_H_

#ifndef HONE_SERVER_JOB_SEARCH_TRANSFER_H_
#define HONE_SERVER_JOB_SEARCH_TRANSFER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/record/record.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/search/search_strategy.h"

namespace hone::job {

// The knowledge that a task gets from other workloads of its target.
struct Transfer {
  // Measured candidates of another workload's design space.
  struct Space {
    std::string text;
    std::vector<std::vector<int64_t>> decisions;
    std::vector<double> scores;  // the workload's best latency / the candidate's; 0: failed
  };

  int64_t last_record = 0;  // the last record that was considered
  // Good candidates of related workloads, adapted to the task's own spaces, best first.
  std::vector<record::Candidate> seeds;
  // The results on which a model is first trained.
  std::vector<Space> spaces;
  int workloads = 0;  // number of workloads with results
  int results = 0;
  // The stored model to use instead of training one on `spaces`; null if there is none.
  std::shared_ptr<const cost_model::CostModel> model;
  int64_t model_id = 0;  // its row in the store

  bool empty() const { return seeds.empty() && spaces.empty() && model == nullptr; }
};

// The results of another workload of the target.
struct RelatedWorkload {
  double distance = 0;                    // TaskEnvironment::Distance
  std::vector<search::Measured> results;  // of any of its design spaces
};

// Returns the knowledge that a task with these spaces gets from related workloads, given nearest
// first. `text` returns the text of a design space; spaces without a text are left out. The result
// depends only on the arguments.
Transfer TransferFrom(
    absl::Span<const RelatedWorkload> nearest, const TaskSpaces& spaces,
    absl::FunctionRef<absl::StatusOr<std::string>(const std::string& digest)> text);

struct TransferQuery {
  WorkloadInfo workload;
  std::string target_key;
  double tolerance = 0;
  int64_t up_to_record = -1;  // later records are left out; -1: no limit
  // The model that the task trains ("": do not use stored models) and its feature set ("": the
  // model's default). A stored model of this kind, feature set and target is used if there is one,
  // for the workload's operator or else for all operators.
  std::string cost_model;
  std::string feature_set;
  int64_t model_id = -1;  // the row to use; 0: none; -1: the newest
};

// Collects the newest results of the target, at most 2000: those of workloads with the same name
// and, if these are few, those of all related workloads (TaskEnvironment::Distance). The result
// depends only on the arguments and the records up to last_record; a restored task passes
// last_record and model_id and gets the same result. A stored model that cannot be loaded, for
// example because it has another version, is ignored with a warning in the log. Takes tens of
// milliseconds. Errors are those of the store.
absl::StatusOr<Transfer> GatherTransfer(store::Store& store, const TaskEnvironment& environment,
                                        const TaskSpaces& spaces, const TransferQuery& query);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_TRANSFER_H_

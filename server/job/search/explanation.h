#ifndef HONE_SERVER_JOB_SEARCH_EXPLANATION_H_
#define HONE_SERVER_JOB_SEARCH_EXPLANATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"
#include "common/ir/roofline.h"
#include "common/record/record.h"
#include "common/schedule/named_call.h"
#include "common/target/target.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"

// Why a schedule is as fast as it is.
namespace hone::job {

// A part of the draft's estimate that people know by name, such as "load ports".
struct EstimateTerm {
  absl::string_view name, meaning;
  double cycles = 0;  // if nothing else cost anything
  // By which share the estimate would shrink if this cost nothing. Terms overlap, so the shares do
  // not add up to 1.
  double gain = 0;
};

struct StatementEstimate {
  std::string name;  // of the block
  double cycles = 0;
  absl::string_view limit;  // the term with the largest gain; "" if the statement costs nothing
};

// The draft's estimate of a program: cycles of one core, or of one compute unit of a GPU, by term
// and by statement.
struct Estimate {
  double cycles = 0;
  // The duration of a cycle, if the worker of the target measured it and the estimate has not
  // learned its factors, which compare schedules but know no durations; 0: unknown.
  double cycle_ns = 0;
  bool learned = false;
  // What passes from L3 or memory into L2, and from memory into L3; 0 for a GPU.
  double l2_bytes = 0, l3_bytes = 0;
  std::vector<EstimateTerm> terms;  // those that cost something, the largest gain first
  std::vector<StatementEstimate> statements;
};

// Estimates a program by the constants of the target or, if `learned` is not null, with the factors
// of a learned draft (draft_work.h). InvalidArgument: the program has no block outside the
// prepack kernel, or a nest that is too deep.
absl::StatusOr<Estimate> EstimateOf(const ir::Program& program, const target::Target& target,
                                    const cost_model::CostModel* learned);

// A schedule that was measured and compared with the explained one.
struct TriedSchedule {
  int64_t record = 0;
  double latency_ns = 0;  // steady
  double ratio = 0;       // to the explained schedule, measured for the same purpose if it was
  std::vector<schedule::ChangedDecision> changes;
};

struct TriedSchedules {
  static constexpr size_t kMostChanges = 2;
  static constexpr size_t kMostNear = 12;

  int64_t same_space = 0;    // other schedules of the same design space that ran
  int64_t other_spaces = 0;  // schedules of other design spaces that ran
  int64_t near_count = 0;    // of same_space, those with at most kMostChanges changed decisions
  int64_t near_failed = 0;   // schedules as near as these that failed
  std::vector<TriedSchedule> near;              // the kMostNear fastest of them, the fastest first
  std::optional<TriedSchedule> best_of_others;  // the fastest of the other design spaces
};

// What is explained.
struct Explained {
  std::string trace;                     // text of a trace file with decisions
  std::string target;                    // text form
  std::optional<record::Record> record;  // nullopt: the trace alone, which was not measured
  ir::MeasuredSpeed speed;               // of the record and its device
};

// A counter of the kernel, or a ratio of counters.
struct MeasuredValue {
  std::string name, meaning;
  double value = 0;
  std::string missing;  // why it is missing; "": it is known
  std::optional<double> estimate;
};

struct Explanation {
  std::string workload;  // text form
  ir::Roofline roofline;
  Estimate estimate;
  TriedSchedules tried;  // empty without a record
  // What one run of the record's kernel counted (common/record/counters.h), and what follows from
  // it.
  std::vector<MeasuredValue> counters, ratios;
  std::string not_counted;  // why there are no counters; "": there are
};

// Reads every record of the workload and the target. Takes milliseconds, and some 10 µs for each
// record. InvalidArgument: a text is malformed, the trace has open decisions, or it does not
// replay. Other errors are those of the store.
absl::StatusOr<Explanation> Explain(store::Store& store, const TaskEnvironment& environment,
                                    const Explained& what);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_EXPLANATION_H_

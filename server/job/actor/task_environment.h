#ifndef HONE_SERVER_JOB_ACTOR_TASK_ENVIRONMENT_H_
#define HONE_SERVER_JOB_ACTOR_TASK_ENVIRONMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/record/record.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/registry.h"
#include "server/tuner/search/search_strategy.h"

namespace hone::job {

struct WorkloadInfo {
  std::string text;    // as the printer writes it
  std::string digest;  // structural digest
  std::string op;      // the workload's name
  double flops = 0;    // by formula, without padded taps
  // Operations that every kernel at tolerance 0 performs: the multiply-adds of contractions in f32
  // or a wider type, counted as two each.
  double fixed_flops = 0;
  // Whether it computes in floats of 32 bits or more. Only then, the rate of multiply-adds that
  // workers measure in f32 is its peak.
  bool has_fma_peak = true;
  double bytes = 0;  // inputs read once and outputs written once
};

// Returns the rate at which a measured kernel must have computed: the device's peak is at least
// that, even if it was measured as lower while other work disturbed it. 0 if it is unknown, because
// a kernel with this tolerance may need fewer operations.
inline double LeastPeakOf(const WorkloadInfo& workload, const record::Record& record) {
  const double latency_ns = record::SteadyLatencyNs(record.result);
  const bool known = record.tolerance == 0 && record.result.outcome == record::Outcome::kOk &&
                     latency_ns > 0 && !record.quarantined;
  return known ? workload.fixed_flops / latency_ns : 0;
}

// Rows of a feature set with the names of their columns.
struct FeatureTable {
  std::string feature_set;
  std::string target;  // key
  std::vector<std::string> columns;
  std::vector<float> values;  // row after row
};

struct SpaceInfo {
  std::string digest;
  std::string text;
};

// Why a schedule that another program proposes is refused. The numbers are those of
// v1::ProposalVerdict::Refusal, and proposal.proto explains them.
enum class Refusal {
  kNone,
  kMalformed,
  kOpen,
  kOtherWorkload,
  kIllegal,
  kTolerance,
  kKnown,
  kFull,
};

// The candidate of a trace that another program proposes, or why there is none.
struct GivenCandidate {
  record::Candidate candidate;
  std::string space;  // the text of its design space, which need not be one of the task
  Refusal refusal = Refusal::kNone;
  std::string why;  // as text for users; "" unless it is refused
};

// Called every few milliseconds of long work. The work stops with the error that it returns.
using StopCheck = std::function<absl::Status()>;

// The design spaces of a workload on a target, which a task searches. Immutable and thread-safe.
// Must outlive the strategies that it made.
class TaskSpaces {
 public:
  virtual ~TaskSpaces() = default;

  // Returns all spaces that a candidate of this task may name, including the default schedule's,
  // always in the same order.
  virtual const std::vector<SpaceInfo>& spaces() const = 0;
  // Returns the untiled schedule with which results are compared.
  virtual record::Candidate default_schedule() const = 0;
  // If the space is a decided trace, returns the only candidate that strategies can propose. It is
  // measured even if it was measured before.
  virtual std::optional<record::Candidate> only_candidate() const = 0;
  // Returns whether strategies search the candidate's space. Only then may they be told about it.
  virtual bool IsSearched(const record::Candidate& candidate) const = 0;
  // Returns whether the candidate belongs to a searched space and its decisions are legal there.
  // Every proposal of a strategy is checked with this.
  virtual bool IsLegal(const record::Candidate& candidate) const = 0;
  // `quick_start`: see SearchContext::first_population. NotFound: unknown name; the message lists
  // the names.
  virtual absl::StatusOr<std::unique_ptr<search::SearchStrategy>> CreateStrategy(
      const std::string& name, uint64_t seed, bool quick_start) const = 0;
  // Checks whether a feature set can describe the candidates of these spaces. InvalidArgument: it
  // cannot, or the name is unknown; the message says why.
  virtual absl::Status CheckFeatureSet(const std::string& feature_set) const = 0;
  // Appends the rows of one candidate. InvalidArgument: it does not replay, or as for
  // CheckFeatureSet.
  virtual absl::Status AppendFeatures(const std::string& feature_set,
                                      const record::Candidate& candidate,
                                      cost_model::FeatureMatrix* matrix) const = 0;

  // Returns the candidate of this task that is nearest to a candidate of another workload, given
  // the text of its design space. The result belongs to the searched space with the same structure;
  // its tiles are factorized again; it meets the constraints and replays. NotFound: no space has
  // that structure, or no near candidate is legal. InvalidArgument: the text is malformed.
  virtual absl::StatusOr<record::Candidate> Adapt(const std::string& space,
                                                  const std::vector<int64_t>& decisions) const = 0;

  // Reads the text of a trace file, and replays its trace with its decisions. The candidate may
  // violate constraints of a design space, and may belong to a space that no rule makes. Takes
  // about as long as a replay. `tolerance`: of the job.
  virtual GivenCandidate ReadTrace(const std::string& trace, double tolerance) const = 0;
};

// The interface of the tuning loop to the compiler. Tests replace it. Thread-safe.
class TaskEnvironment {
 public:
  virtual ~TaskEnvironment() = default;

  // InvalidArgument: the workload is malformed; the message has the line and column.
  virtual absl::StatusOr<WorkloadInfo> Describe(const std::string& workload) const = 0;
  // Checks whether a job on the workload can search `space`, the name of a space maker or the text
  // of a trace file. Returns whether it is a trace with all of its decisions, so that the job only
  // checks this schedule. InvalidArgument: the maker is unknown (the message lists the makers) or
  // does not support the workload (the message says what it supports); the trace is malformed,
  // belongs to another workload, or does not replay (the message says where, or prints the
  // program).
  virtual absl::StatusOr<bool> CheckSpace(const std::string& workload,
                                          const std::string& space) const = 0;
  // Makes the design spaces for `space`, as in CheckSpace; "": uses the default maker. `tolerance`
  // is the job's; some schedules are legal only with a tolerance. InvalidArgument: a text is
  // malformed, or as for CheckSpace. FailedPrecondition: there is no design space for the workload.
  // `check`: while the spaces are made, and while their strategies propose, in the thread that does
  // so; its errors are returned. May be null. `draft`: what ranks candidates before anything is
  // measured (search::SearchContext::draft); null: the constants of the target.
  virtual absl::StatusOr<std::unique_ptr<TaskSpaces>> Open(
      const std::string& workload, const std::string& target, const std::string& space,
      double tolerance, StopCheck check = nullptr,
      std::shared_ptr<const cost_model::CostModel> draft = nullptr) const = 0;
  // Opens a task with one searched space, which is its first space, to compute features of old
  // records. `space` is the text of a stored design space; `target` is in text form.
  // InvalidArgument: the text is malformed, or it does not replay with this version of the program.
  virtual absl::StatusOr<std::unique_ptr<TaskSpaces>> OpenKept(const std::string& space,
                                                               const std::string& target) const = 0;
  // Returns the distance of two workloads (space::WorkloadDistance). It is infinite if the
  // workloads are unrelated or one is malformed.
  virtual double Distance(const std::string& a, const std::string& b) const = 0;
  // Returns the text of a design space with its workload replaced. Open accepts it if it replays
  // for that workload. InvalidArgument: a text is malformed.
  virtual absl::StatusOr<std::string> Transplant(const std::string& workload,
                                                 const std::string& space) const = 0;
  // Returns a candidate's trace with its decisions, for display. InvalidArgument: the decisions do
  // not match the space.
  virtual absl::StatusOr<std::string> TraceText(const std::string& space,
                                                const std::vector<int64_t>& decisions) const = 0;
  // Returns the features of the candidate that a decided trace file describes. `feature_set`: "" is
  // the default set. `target` is in text form. InvalidArgument: the set is unknown (the message
  // lists the sets) or cannot describe the candidate, a text is malformed, or the trace has open
  // samplings or does not replay; the message says which.
  virtual absl::StatusOr<FeatureTable> DescribeFeatures(const std::string& trace,
                                                        const std::string& target,
                                                        const std::string& feature_set) const = 0;
  // NotFound: unknown name; the message lists the names.
  virtual absl::StatusOr<std::unique_ptr<cost_model::CostModel>> CreateModel(
      const std::string& name, const cost_model::CostModelOptions& options) const = 0;

  virtual std::string default_strategy() const = 0;
  virtual std::string default_cost_model() const = 0;
  // Without kExternalStrategy.
  virtual std::vector<std::string> StrategyNames() const = 0;
  virtual std::vector<std::string> CostModelNames() const = 0;
  virtual std::vector<std::string> FeatureSetNames() const = 0;
  // All models, including those that this build cannot make.
  virtual std::vector<cost_model::CostModelInfo> CostModels() const = 0;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_TASK_ENVIRONMENT_H_

#ifndef HONE_SERVER_TASK_TASK_ENVIRONMENT_H_
#define HONE_SERVER_TASK_TASK_ENVIRONMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/record/record.h"
#include "server/cost_model/cost_model.h"
#include "server/cost_model/registry.h"
#include "server/search/search_strategy.h"

namespace hone::task {

struct WorkloadInfo {
  std::string text;    // as the printer writes it
  std::string digest;  // structural
  std::string op;      // the workload's name
  double flops = 0;    // by formula, padded taps not counted
  // Multiply-adds, counted as two each, that every kernel at tolerance 0 performs: those of
  // contractions in f32 or a wider type.
  double fixed_flops = 0;
  std::string unmeasurable;  // why no job can measure it; "": jobs can
};

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

// What a task searches: the design spaces of a workload on a target. Immutable and thread-safe;
// outlives the strategies it made.
class TaskSpaces {
 public:
  virtual ~TaskSpaces() = default;

  // Every space that a candidate of this task may name, the default schedule's among them. Always
  // in the same order.
  virtual const std::vector<SpaceInfo>& spaces() const = 0;
  // The untiled schedule that results are compared with.
  virtual record::Candidate default_schedule() const = 0;
  // The only candidate that strategies can propose, if the space is a decided trace. It is measured
  // even if it was measured before.
  virtual std::optional<record::Candidate> only_candidate() const = 0;
  // Whether strategies may be told of the candidate: they search its space.
  virtual bool IsSearched(const record::Candidate& candidate) const = 0;
  // Whether the candidate is of a searched space and its decisions are legal there. Proposals of
  // strategies are checked by it.
  virtual bool IsLegal(const record::Candidate& candidate) const = 0;
  // `seeds`: see search::SearchContext. NotFound: no strategy has that name; lists the names.
  virtual absl::StatusOr<std::unique_ptr<search::SearchStrategy>> CreateStrategy(
      const std::string& name, uint64_t seed, std::vector<record::Candidate> seeds) const = 0;
  // Whether a feature set can describe the candidates of these spaces. InvalidArgument: it cannot,
  // or no set has the name; the message says why.
  virtual absl::Status CheckFeatureSet(const std::string& feature_set) const = 0;
  // Appends the rows of one candidate. InvalidArgument: it does not replay, or as of
  // CheckFeatureSet.
  virtual absl::Status AppendFeatures(const std::string& feature_set,
                                      const record::Candidate& candidate,
                                      cost_model::FeatureMatrix* matrix) const = 0;

  // The candidate of this task nearest to one of another workload, whose design space's text is
  // given: it is of the searched space with the same structure, its tiles are factorized again, it
  // meets the constraints and replays. NotFound: no space has that structure, or nothing near is
  // legal. InvalidArgument: malformed.
  virtual absl::StatusOr<record::Candidate> Adapt(const std::string& space,
                                                  const std::vector<int64_t>& decisions) const = 0;
  // Appends the rows of candidates of another workload's design space, for this task's target, and
  // tells which: those that do not replay are left out. InvalidArgument: a malformed text, or there
  // is no such feature set.
  virtual absl::StatusOr<std::vector<size_t>> AppendRelated(
      const std::string& feature_set, const std::string& space,
      absl::Span<const std::vector<int64_t>> decisions,
      cost_model::FeatureMatrix* matrix) const = 0;
};

// What the tuning loop needs of the compiler, behind one interface: tests run the loop without a
// compiler. Thread-safe.
class TaskEnvironment {
 public:
  virtual ~TaskEnvironment() = default;

  // InvalidArgument: malformed, with line and column.
  virtual absl::StatusOr<WorkloadInfo> Describe(const std::string& workload) const = 0;
  // Whether a job on the workload can search `space`: the name of a maker of spaces, or the text of
  // a trace file. InvalidArgument: there is no such maker (lists them), or it has nothing for the
  // workload (says for what it has); a trace that is malformed, of another workload, or does not
  // replay (the message says where or prints the program).
  virtual absl::Status CheckSpace(const std::string& workload, const std::string& space) const = 0;
  // Makes the design spaces that `space` says; "": by the default maker. `tolerance`: of the job,
  // for what is legal only with one. InvalidArgument: a malformed text, also as of CheckSpace.
  // FailedPrecondition: there is no space for it.
  virtual absl::StatusOr<std::unique_ptr<TaskSpaces>> Open(const std::string& workload,
                                                           const std::string& target,
                                                           const std::string& space,
                                                           double tolerance) const = 0;
  // A task with one searched space, its first one, for the features of old records. `space`: the
  // text of a design space in the store; `target`: text form. InvalidArgument: malformed, or it
  // does not replay with this program.
  virtual absl::StatusOr<std::unique_ptr<TaskSpaces>> OpenKept(const std::string& space,
                                                               const std::string& target) const = 0;
  // The distance of two workloads (space::WorkloadDistance): infinite if one teaches nothing about
  // the other, or if one is malformed.
  virtual double Distance(const std::string& a, const std::string& b) const = 0;
  // The text of a design space with another workload in place of its own, which Open takes as a
  // given space if it replays there. InvalidArgument: malformed.
  virtual absl::StatusOr<std::string> Transplant(const std::string& workload,
                                                 const std::string& space) const = 0;
  // A candidate's trace with its decisions, for people. InvalidArgument: they do not fit each
  // other.
  virtual absl::StatusOr<std::string> TraceText(const std::string& space,
                                                const std::vector<int64_t>& decisions) const = 0;
  // The features ("": of the default set) of the candidate that a decided trace file describes.
  // `target`: text form. InvalidArgument: no such set (lists them), a malformed text, open
  // samplings, a trace that does not replay, or what the set cannot describe; says which.
  virtual absl::StatusOr<FeatureTable> DescribeFeatures(const std::string& trace,
                                                        const std::string& target,
                                                        const std::string& feature_set) const = 0;
  // NotFound: no model has that name; lists the names.
  virtual absl::StatusOr<std::unique_ptr<cost_model::CostModel>> CreateModel(
      const std::string& name, const cost_model::CostModelOptions& options) const = 0;

  virtual std::string default_strategy() const = 0;
  virtual std::string default_cost_model() const = 0;
  virtual std::vector<std::string> StrategyNames() const = 0;
  virtual std::vector<std::string> CostModelNames() const = 0;
  virtual std::vector<std::string> FeatureSetNames() const = 0;
  // All of them, also those that this build cannot make.
  virtual std::vector<cost_model::CostModelInfo> CostModels() const = 0;
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_TASK_ENVIRONMENT_H_

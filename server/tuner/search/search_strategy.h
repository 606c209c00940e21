#ifndef HONE_SERVER_TUNER_SEARCH_SEARCH_STRATEGY_H_
#define HONE_SERVER_TUNER_SEARCH_SEARCH_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/record/record.h"
#include "common/target/target.h"

namespace hone::cost_model {
class CostModel;
}
namespace hone::space {
class DesignSpace;
}

namespace hone::search {

class Evaluator;

// The result of a candidate. latency_ns is 0 unless the outcome is kOk.
struct Measured {
  record::Candidate candidate;
  record::Outcome outcome = record::Outcome::kOk;
  double latency_ns = 0;
};

// The input of a strategy. The task owns the design spaces, which outlive the strategy.
struct SearchContext {
  std::vector<const space::DesignSpace*> spaces;  // all of one workload
  target::Target target;                          // the target of the candidates
  // Ranks candidates before anything is measured; null: the draft with the constants of the target.
  std::shared_ptr<const cost_model::CostModel> draft;
  uint64_t seed = 0;  // derived from the job and the task
  // Number of threads that a Propose may use, including the caller's. It does not change the
  // candidates.
  int threads = 1;
  // Size of a generation in population-based strategies. The time of a Propose is proportional to
  // it.
  int population = 512;
  // The size for a Propose of a single candidate before any result is told; 0: population. The
  // choice of a small generation is nearly as good, because the draft errs by more than that.
  int first_population = 0;
  // Candidates of these spaces that are expected to be good because of results of related
  // workloads, best first. At most kMostSeeds of those that are legal and new are proposed, among
  // the first proposals. Their results are told like all others.
  std::vector<record::Candidate> seeds;
  // Called every few milliseconds of a Propose, by its thread. After an error, the Propose ends
  // with the seeds that it has chosen, or else with the error. May be null.
  std::function<absl::Status()> check;
  // Shared by the strategies of a portfolio. Null: the strategy makes its own.
  std::shared_ptr<Evaluator> evaluator;
};

// One in four of the first proposals is a seed, until this many seeds have been proposed.
inline constexpr int kMostSeeds = 4;

// Proposes candidates and learns from their results. Deterministic: the same context and the same
// sequence of calls give the same candidates. Called by one thread at a time.
class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;
  virtual absl::string_view name() const = 0;

  // Returns up to n new candidates, promising ones first. None of them was proposed or told before,
  // and no two have the same program. Returns fewer than n if the spaces are exhausted, and none if
  // the search is over. Until the model has learnt (it is null or predicts zeros), strategies with
  // a draft rank by the draft, and strategies without one draw at random. `event` is the number of
  // the call, from which random numbers are derived. InvalidArgument: the model reads an unknown
  // feature set. Other errors are those of the model.
  virtual absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) = 0;

  // Tells results, in the order in which they were committed. Records of earlier jobs may be told
  // before the first Propose. Candidates of other spaces and candidates with illegal decisions are
  // ignored. A latency that is not finite and positive counts as a failure.
  virtual void Tell(absl::Span<const Measured> results) = 0;
};

// Creates a strategy by its registered name. NotFound: the name is unknown; the message lists the
// names. InvalidArgument: the context has no space, or `threads` or `population` is not positive.
absl::StatusOr<std::unique_ptr<SearchStrategy>> CreateSearchStrategy(absl::string_view name,
                                                                     SearchContext context);
std::vector<std::string> SearchStrategyNames();

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_SEARCH_STRATEGY_H_

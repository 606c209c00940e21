#ifndef HONE_SERVER_SEARCH_SEARCH_STRATEGY_H_
#define HONE_SERVER_SEARCH_SEARCH_STRATEGY_H_

#include <cstdint>
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

// A candidate that came back. latency_ns is 0 unless the outcome is kOk.
struct Measured {
  record::Candidate candidate;
  record::Outcome outcome = record::Outcome::kOk;
  double latency_ns = 0;
};

// What a strategy works on. Everything is owned by the task and outlives the strategy.
struct SearchContext {
  std::vector<const space::DesignSpace*> spaces;  // all of one workload
  target::Target target;                          // what candidates are built for
  uint64_t seed = 0;                              // of (job, task)
  // That a Propose may use, its caller's included. Candidates are the same for any number.
  int threads = 1;
  // Candidates that a generation of a population-based strategy holds; the time of a Propose is
  // proportional to it.
  int population = 512;
  // Candidates of these spaces that are believed good before anything is measured, best first: what
  // related workloads taught. At most kMostSeeds of those that are legal and new are proposed,
  // among the first proposals; their results are told like all others.
  std::vector<record::Candidate> seeds;
};

// One of four of the first proposals is a seed, until so many have been proposed.
inline constexpr int kMostSeeds = 4;

// Proposes candidates and is told what became of them. Deterministic: the same context and the same
// sequence of calls give the same candidates. Called by one thread at a time.
class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;
  virtual absl::string_view name() const = 0;

  // Up to n new candidates, none proposed before by this strategy and none in `Tell` before; fewer
  // when the spaces are exhausted (none: the search is over), likely good ones first. No two have
  // the same program. Until the model has learnt (it answers zeros, or is null) strategies with a
  // draft rank by that, and those without one draw at random. `event` numbers the call, for
  // counter-based randomness. InvalidArgument: the model reads an unknown feature set; else errors
  // of the model.
  virtual absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) = 0;

  // Results, in the order in which they were committed. Also called with earlier records before the
  // first Propose. Candidates of other spaces, or with decisions that are not legal, are ignored; a
  // latency that is not finite and positive counts as a failure.
  virtual void Tell(absl::Span<const Measured> results) = 0;

  // State between calls, for restoring after a crash. InvalidArgument: of another strategy or
  // version.
  virtual std::string Save() const = 0;
  virtual absl::Status Restore(absl::string_view state) = 0;
};

// Creates a strategy by its registered name. NotFound: lists the names. InvalidArgument: no space,
// or a number in the context that is not positive.
absl::StatusOr<std::unique_ptr<SearchStrategy>> CreateSearchStrategy(absl::string_view name,
                                                                     SearchContext context);
std::vector<std::string> SearchStrategyNames();

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_SEARCH_STRATEGY_H_

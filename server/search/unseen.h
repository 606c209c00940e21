#ifndef HONE_SERVER_SEARCH_UNSEEN_H_
#define HONE_SERVER_SEARCH_UNSEEN_H_

#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/rng.h"
#include "server/search/evaluator.h"
#include "server/search/history.h"

namespace hone::search {

struct Unseen {
  Point point;
  EvaluationPtr evaluation;
};

// Draws candidates that replay and that neither the history knows nor Skip was told of, space by
// space. A space without finds in several hundred draws in a row counts as exhausted from then on.
// Used by one thread at a time.
class UnseenSource {
 public:
  // All outlive it.
  UnseenSource(const SearchContext* context, const History* history, Evaluator* evaluator)
      : context_(context),
        history_(history),
        evaluator_(evaluator),
        exhausted_(context->spaces.size(), false) {}

  // Never draws a candidate with this program.
  void Skip(const Digest& program) { skipped_.insert(program); }

  // Nothing: the space is exhausted.
  std::optional<Unseen> Draw(int space, Rng& rng);
  // From a uniformly drawn space that is not exhausted. Nothing: all are.
  std::optional<Unseen> DrawAny(Rng& rng);

 private:
  const SearchContext* const context_;
  const History* const history_;
  Evaluator* const evaluator_;
  std::vector<bool> exhausted_;
  absl::flat_hash_set<Digest> skipped_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_UNSEEN_H_

#ifndef HONE_SERVER_TUNER_SEARCH_UNSEEN_H_
#define HONE_SERVER_TUNER_SEARCH_UNSEEN_H_

#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/rng.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/search/history.h"

namespace hone::search {

struct Unseen {
  Point point;
  EvaluationPtr evaluation;
};

// Draws legal candidates that the history does not know and whose programs are not skipped. A space
// counts as exhausted once several hundred draws in a row have found no such candidate. Used by one
// thread at a time.
class UnseenSource {
 public:
  // The arguments outlive the source.
  UnseenSource(const SearchContext* context, const History* history, Evaluator* evaluator)
      : context_(context),
        history_(history),
        evaluator_(evaluator),
        exhausted_(context->spaces.size(), false) {}

  // Excludes candidates with this program from later draws.
  void Skip(const Digest& program) { skipped_.insert(program); }

  // Returns nullopt if the space is exhausted.
  std::optional<Unseen> Draw(int space, Rng& rng);
  // Draws from a random space that is not exhausted. Returns nullopt if all spaces are exhausted.
  std::optional<Unseen> DrawAny(Rng& rng);

 private:
  const SearchContext* const context_;
  const History* const history_;
  Evaluator* const evaluator_;
  std::vector<bool> exhausted_;
  absl::flat_hash_set<Digest> skipped_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_UNSEEN_H_

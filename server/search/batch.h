#ifndef HONE_SERVER_SEARCH_BATCH_H_
#define HONE_SERVER_SEARCH_BATCH_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "server/search/history.h"
#include "server/search/unseen.h"

namespace hone::search {

// A candidate with its rank.
struct Scored {
  Point point;
  Digest key;
  EvaluationPtr evaluation;
  double prediction = 0;
  double score = 0;
};

// Picks a batch of unseen candidates out of scored ones. Used for one Propose.
class BatchPicker {
 public:
  // All outlive it.
  BatchPicker(const SearchContext& context, const History& history, int n);

  // `pool`: sorted, best first.
  // The best of each design space that was never tried; all of them in the first batch, later up to
  // half of a batch.
  void CoverUntried(absl::Span<const Scored> pool);
  // The best of the pool until `size` are picked. While a space was untried when the batch began,
  // none fills more than half.
  void PickBest(absl::Span<const Scored> pool, int size);
  // Adds a candidate from elsewhere, if it is new to the batch; false when it is not.
  bool Add(Scored candidate);

  std::vector<Scored>& batch() { return batch_; }
  bool full() const { return static_cast<int>(batch_.size()) >= n_; }
  int size() const { return static_cast<int>(batch_.size()); }
  bool Covers(int space) const { return per_space_[space] > 0; }
  // Puts the best ones first.
  void Sort();

 private:
  bool IsNew(const Scored& candidate) const;

  const SearchContext& context_;
  const History& history_;
  const int n_;
  bool any_untried_ = false;
  std::vector<int> per_space_;
  absl::flat_hash_set<Digest> programs_;
  std::vector<Scored> batch_;
};

// Best first; equal scores in the order of keys, which does not depend on how they were found.
void SortByScore(std::vector<Scored>& candidates);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_BATCH_H_

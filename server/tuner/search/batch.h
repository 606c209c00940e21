#ifndef HONE_SERVER_TUNER_SEARCH_BATCH_H_
#define HONE_SERVER_TUNER_SEARCH_BATCH_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "server/tuner/search/history.h"

namespace hone::search {

// A candidate with its evaluation and score.
struct Scored {
  Point point;
  Digest key;
  EvaluationPtr evaluation;
  double prediction = 0;
  double score = 0;
};

// Picks a batch of unseen candidates from scored ones. Each call of Propose creates its own picker.
class BatchPicker {
 public:
  // `context` and `history` outlive the picker. `n`: the size of the batch.
  BatchPicker(const SearchContext& context, const History& history, int n);

  // Adds the best candidate of each untried design space. These candidates may fill the whole first
  // batch of a search, but at most half of a later batch. `pool`: sorted, best first.
  void CoverUntried(absl::Span<const Scored> pool);
  // Adds the best candidates of the pool until the batch has `size` candidates. If there are
  // several spaces and one was untried when the batch began, no space gets more than half. `pool`:
  // sorted, best first.
  void PickBest(absl::Span<const Scored> pool, int size);
  // Adds one candidate. Returns false if the batch is full, or if the candidate is illegal or known
  // to the history or the batch.
  bool Add(Scored candidate);

  std::vector<Scored>& batch() { return batch_; }
  bool full() const { return static_cast<int>(batch_.size()) >= n_; }
  int size() const { return static_cast<int>(batch_.size()); }
  // Whether a space was untried when the batch began.
  bool any_untried() const { return any_untried_; }
  // Whether the batch has a candidate of the space.
  bool Covers(int space) const { return per_space_[space] > 0; }
  // Sorts the batch, best first.
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

// Sorts best first. Equal scores are ordered by key, which makes the order independent of the input
// order.
void SortByScore(std::vector<Scored>& candidates);

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_BATCH_H_

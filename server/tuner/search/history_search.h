#ifndef HONE_SERVER_TUNER_SEARCH_HISTORY_SEARCH_H_
#define HONE_SERVER_TUNER_SEARCH_HISTORY_SEARCH_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/search/history.h"
#include "server/tuner/search/ranking.h"
#include "server/tuner/search/search_strategy.h"

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

// The base class of strategies. It holds a history and an evaluator, which other strategies may
// share, and scores candidates with a Ranking.
class HistorySearch : public SearchStrategy {
 public:
  absl::string_view name() const final { return name_; }
  void Tell(absl::Span<const Measured> results) override { history_.Tell(results); }

 protected:
  // The state of one Propose.
  struct Call {
    const cost_model::CostModel* model;
    uint64_t event;
    Ranking ranking;
    Rng rng;  // derived from the event
    UnseenSource source;
    BatchPicker picker;
    bool learnt = false;  // the model has predicted a score other than 0
  };

  // `draft`: whether the draft ranks candidates until there are results, unless the context has an
  // evaluator, which then decides.
  HistorySearch(absl::string_view name, SearchContext context, bool draft = false);

  // Begins a Propose of n candidates: refreshes the history and makes evaluations contain the
  // features that the model reads. `purpose` gives each strategy its own random numbers. Returns
  // the errors of Evaluator::UseFeaturesOf.
  absl::StatusOr<Call> Begin(int n, uint64_t event, const cost_model::CostModel* model,
                             uint64_t purpose);
  // Returns the legal points, in order, with predictions and scores. The score comes from the
  // result if one was told, otherwise from the ranking. Returns the model's errors.
  absl::StatusOr<std::vector<Scored>> Score(absl::Span<const Point> points, Call& call);
  // Scores a point and adds it to the batch. Returns false if BatchPicker::Add does, or if the
  // point is illegal.
  absl::StatusOr<bool> Add(const Point& point, Call& call);

  // Adds a draw and makes the source skip its program. Returns false if `drawn` is empty.
  absl::StatusOr<bool> AddDrawn(std::optional<Unseen> drawn, Call& call);
  // Adds a draw from each untried space that has no candidate in the batch, until the batch is
  // full.
  absl::Status CoverByDraws(Call& call);
  // Fills the batch with uniform draws from all spaces.
  absl::Status FillByDraws(Call& call);
  // Records the batch as proposed and returns it.
  std::vector<record::Candidate> Commit(Call& call);

  // Appends a uniform draw from a space. Returns false if no legal vector was found.
  bool Sample(int space, Rng& rng, std::vector<Point>& points) const;

  const SearchContext& context() const { return evaluator_->context(); }
  History& history() { return history_; }
  const std::shared_ptr<Evaluator>& evaluator() const { return evaluator_; }

 private:
  const absl::string_view name_;
  const std::shared_ptr<Evaluator> evaluator_;
  History history_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_HISTORY_SEARCH_H_

#ifndef HONE_SERVER_TUNER_SEARCH_HISTORY_SEARCH_H_
#define HONE_SERVER_TUNER_SEARCH_HISTORY_SEARCH_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "server/tuner/search/batch.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/search/history.h"
#include "server/tuner/search/ranking.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/search/unseen.h"

namespace hone::search {

// The base class of strategies. It holds a history and an evaluator, and scores candidates with a
// Ranking.
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

  // `draft`: the model that ranks candidates until there are results; may be null.
  HistorySearch(absl::string_view name, SearchContext context,
                std::unique_ptr<const cost_model::CostModel> draft = nullptr);

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

  const SearchContext& context() const { return context_; }
  History& history() { return history_; }
  Evaluator& evaluator() { return evaluator_; }

 private:
  const absl::string_view name_;
  const SearchContext context_;
  const std::unique_ptr<const cost_model::CostModel> draft_;
  History history_;
  Evaluator evaluator_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_HISTORY_SEARCH_H_

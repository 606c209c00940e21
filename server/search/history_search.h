#ifndef HONE_SERVER_SEARCH_HISTORY_SEARCH_H_
#define HONE_SERVER_SEARCH_HISTORY_SEARCH_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "server/search/batch.h"
#include "server/search/evaluator.h"
#include "server/search/history.h"
#include "server/search/ranking.h"
#include "server/search/saved_state.h"
#include "server/search/search_strategy.h"
#include "server/search/unseen.h"

namespace hone::search {

// What strategies share: a history, an evaluator, scores by ranking.h, and a state made of the
// history and whatever a strategy adds.
class HistorySearch : public SearchStrategy {
 public:
  absl::string_view name() const final { return header_.name; }
  void Tell(absl::Span<const Measured> results) override { history_.Tell(results); }
  std::string Save() const final;
  absl::Status Restore(absl::string_view state) final;

 protected:
  // What one Propose knows and picks.
  struct Call {
    const cost_model::CostModel* model;
    uint64_t event;
    Ranking ranking;
    Rng rng;  // of the event
    UnseenSource source;
    BatchPicker picker;
    bool learnt = false;  // the model answered something else than zeros
  };

  // `draft`: the model that leads until there are results; null: there is none.
  HistorySearch(StateHeader header, SearchContext context,
                std::unique_ptr<const cost_model::CostModel> draft = nullptr);

  // Begins a Propose of n candidates: the history is refreshed, evaluations carry what the model
  // reads. `purpose` tells strategies' random numbers apart. Errors of Evaluator::UseFeaturesOf.
  absl::StatusOr<Call> Begin(int n, uint64_t event, const cost_model::CostModel* model,
                             uint64_t purpose);
  // The legal ones of the points, in order, with predictions and scores: that of the result where
  // one was told, else of the ranking. Errors of the model.
  absl::StatusOr<std::vector<Scored>> Score(absl::Span<const Point> points, Call& call);
  // Scores a point and adds it to the batch. False: it is illegal, or not new.
  absl::StatusOr<bool> Add(const Point& point, Call& call);

  // Adds a draw and lets the source skip its program. False: there was nothing to add.
  absl::StatusOr<bool> AddDrawn(std::optional<Unseen> drawn, Call& call);
  // Adds a draw of every untried space that the batch does not cover yet, as far as there is room.
  absl::Status CoverByDraws(Call& call);
  // Fills the batch with uniform draws from all spaces.
  absl::Status FillByDraws(Call& call);
  // Notes the batch as proposed.
  std::vector<record::Candidate> Commit(Call& call);

  // Appends a uniform draw from a space. False: it met no legal vector.
  bool Sample(int space, Rng& rng, std::vector<Point>& points) const;

  // What is saved beside the history, and back. InvalidArgument: damaged, or of other design
  // spaces.
  virtual void SaveMore(cost_model::ByteWriter&) const {}
  virtual absl::Status RestoreMore(cost_model::ByteReader&) { return absl::OkStatus(); }

  const SearchContext& context() const { return context_; }
  History& history() { return history_; }
  Evaluator& evaluator() { return evaluator_; }

 private:
  const StateHeader header_;
  const SearchContext context_;
  const std::unique_ptr<const cost_model::CostModel> draft_;
  History history_;
  Evaluator evaluator_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_HISTORY_SEARCH_H_

#ifndef HONE_SERVER_SEARCH_RANKING_H_
#define HONE_SERVER_SEARCH_RANKING_H_

#include <vector>

#include "server/search/history.h"

namespace hone::search {

// Blends two cost models into one score, about "best latency so far / latency": the draft, which
// knows the candidates before anything is measured, and the model that learns. Higher is better.
//
// The draft is calibrated on the results: a factor per design space between cycles and nanoseconds,
// shrunken towards that of all. The model gets the more weight, the better it ordered what was
// proposed after it had ranked it, compared with the draft: a model of few results does not outrank
// the draft before it has earned it. Without a draft the score is the model's prediction, and 0
// before the model has learnt. Immutable.
class Ranking {
 public:
  // From everything told. REQUIRES history.Refresh since the last Tell.
  static Ranking Of(const SearchContext& context, const History& history, bool has_draft);

  // `draft`: Evaluation::draft.
  double DraftScore(int space, double draft) const;
  // Of a result; 0 for a failure.
  double MeasuredScore(const History::Entry& entry) const {
    return entry.ok ? best_latency_ns_ / entry.latency_ns : 0;
  }
  // `learnt`: the model has seen results.
  double Score(double draft_score, double prediction, bool learnt) const {
    if (!has_draft_) return learnt ? prediction : 0;
    return learnt ? model_weight_ * prediction + (1 - model_weight_) * draft_score : draft_score;
  }
  double model_weight() const { return model_weight_; }

 private:
  bool has_draft_ = true;
  bool calibrated_ = false;  // there are results
  double best_latency_ns_ = 1;
  std::vector<double> ns_per_cycle_;  // per space
  double model_weight_ = 0;
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_RANKING_H_

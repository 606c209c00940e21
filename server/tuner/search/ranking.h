#ifndef HONE_SERVER_TUNER_SEARCH_RANKING_H_
#define HONE_SERVER_TUNER_SEARCH_RANKING_H_

#include <vector>

#include "server/tuner/search/history.h"

namespace hone::search {

// Combines two cost models into one score: the draft, which scores candidates before anything is
// measured, and the model that learns from results. The score approximates
// "best latency so far / latency"; higher is better.
//
// Results calibrate the draft: each design space has a factor between cycles and nanoseconds, which
// is shrunk towards the factor of all spaces. The weight of the model depends on how well it
// ordered the proposed candidates before they were measured, compared with the draft. A model that
// has seen few results therefore does not outweigh the draft. Without a draft, the score is the
// model's prediction, or 0 before the model has learnt. Immutable.
class Ranking {
 public:
  // Makes the ranking from all results. REQUIRES: history.Refresh was called after the last Tell.
  static Ranking Of(const SearchContext& context, const History& history, bool has_draft);

  // `draft`: Evaluation::draft.
  double DraftScore(int space, double draft) const;
  // The score of a result; 0 for a failure.
  double MeasuredScore(const History::Entry& entry) const {
    return entry.ok ? best_latency_ns_ / entry.latency_ns : 0;
  }
  // `learnt`: the model has seen results.
  double Score(double draft_score, double prediction, bool learnt) const {
    if (!has_draft_) return learnt ? prediction : 0;
    return learnt ? model_weight_ * prediction + (1 - model_weight_) * draft_score : draft_score;
  }

 private:
  bool has_draft_ = true;
  bool calibrated_ = false;  // there are results
  double best_latency_ns_ = 1;
  std::vector<double> ns_per_cycle_;  // per space
  double model_weight_ = 0;
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_RANKING_H_

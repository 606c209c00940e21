#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/random_draw.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

// Rounds of proposals per batch. Later rounds fill the slots of proposals that were duplicates.
constexpr int kRounds = 3;
constexpr double kMemory = 0.9;  // earlier rewards are multiplied by this when new results arrive
constexpr double kClose = 0.4;   // the reward is 0 if log(latency / best latency) is at least this
constexpr int kLearnt = 8;       // with fewer results, only evolutionary proposes
constexpr int kOpening = 16;     // with fewer results, bayesian and droplet propose half each
enum Arm : uint32_t { kEvolutionary, kBayesian, kDroplet, kArms };

// The rewards that an arm earned and missed.
struct Earned {
  double won = 1, lost = 1;
  // Draws the expected reward from a beta distribution, by its normal approximation.
  double Draw(Rng& rng) const {
    const double sum = won + lost;
    return won / sum + StandardNormal(rng) * std::sqrt(won * lost / (sum * sum * (sum + 1)));
  }
};

// A proposed candidate that has no result yet.
struct Pending {
  Point point;
  uint32_t arm;
};

class PortfolioSearch final : public HistorySearch {
 public:
  explicit PortfolioSearch(SearchContext given)
      : HistorySearch("portfolio", std::move(given), /*draft=*/true),
        strategies_{MakeEvolutionarySearch(Shared(), {.draft = true}), MakeBayesianSearch(Shared()),
                    MakeDropletSearch(Shared(), /*draft=*/true)} {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, model, /*purpose=*/10));
    Settle();
    std::vector<Pending> pending;
    for (int round = 0; round < kRounds && !call.picker.full(); ++round) {
      const std::array<int, kArms> places = Places(n - call.picker.size(), call);
      for (uint32_t arm = 0; arm < kArms; ++arm) {
        if (places[arm] == 0) continue;
        HONE_ASSIGN_OR_RETURN(
            const std::vector<record::Candidate> proposed,
            strategies_[arm]->Propose(places[arm], event * kRounds + round, model));
        HONE_RETURN_IF_ERROR(AddProposed(proposed, arm, call, pending));
      }
    }
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    pending_.insert(pending_.end(), pending.begin(), pending.end());
    return Commit(call);
  }

  void Tell(absl::Span<const Measured> results) override {
    HistorySearch::Tell(results);
    for (const std::unique_ptr<SearchStrategy>& strategy : strategies_) strategy->Tell(results);
  }

 private:
  SearchContext Shared() const {
    SearchContext shared = context();
    shared.evaluator = evaluator();
    return shared;
  }

  // Returns how many of the next n candidates each strategy proposes.
  std::array<int, kArms> Places(int n, Call& call) {
    std::array<int, kArms> places{};
    const int64_t results = history().Told();
    if (call.picker.any_untried() || results < kLearnt) {
      places[kEvolutionary] = n;
    } else if (results < kOpening) {
      places[kDroplet] = n / 2;
      places[kBayesian] = n - places[kDroplet];
    } else {
      for (int i = 0; i < n; ++i) {
        std::array<double, kArms> drawn;
        for (uint32_t arm = 0; arm < kArms; ++arm) drawn[arm] = earned_[arm].Draw(call.rng);
        ++places[absl::c_max_element(drawn) - drawn.begin()];
      }
    }
    return places;
  }

  absl::Status AddProposed(const std::vector<record::Candidate>& proposed, uint32_t arm, Call& call,
                           std::vector<Pending>& pending) {
    std::vector<Point> points;
    for (const record::Candidate& candidate : proposed) {
      int space = 0;
      while (context().spaces[space]->digest() != candidate.space_digest) ++space;
      points.push_back({space, candidate.decisions});
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<EvaluationPtr> evaluations,
                          evaluator()->Evaluate(points));
    for (size_t i = 0; i < points.size(); ++i) {
      if (call.picker.Add({.point = points[i], .evaluation = evaluations[i]}))
        pending.push_back({std::move(points[i]), arm});
    }
    return absl::OkStatus();
  }

  // Rewards the strategies for new results of pending candidates.
  void Settle() {
    std::vector<std::pair<const History::Entry*, uint32_t>> settled;
    std::erase_if(pending_, [&](const Pending& each) {
      const History::Entry* entry = history().Find(KeyOf(context(), each.point));
      if (!entry->told) return false;
      settled.emplace_back(entry, each.arm);
      return true;
    });
    if (!settled.empty() && best_ns_ > 0) {
      for (Earned& earned : earned_) {
        earned.won = 1 + (earned.won - 1) * kMemory;
        earned.lost = 1 + (earned.lost - 1) * kMemory;
      }
      for (const auto& [entry, arm] : settled) {
        double reward = 0;
        if (entry->ok) {
          const double above = std::log(entry->latency_ns / best_ns_);
          reward = std::clamp(1 - above / kClose, 0.0, 1.0) / 2 + (above < 0 ? 0.5 : 0);
        }
        earned_[arm].won += reward;
        earned_[arm].lost += 1 - reward;
      }
    }
    const std::vector<const History::Entry*> best = history().Best(1);
    if (!best.empty()) best_ns_ = best[0]->latency_ns;
  }

  std::array<std::unique_ptr<SearchStrategy>, kArms> strategies_;
  std::array<Earned, kArms> earned_;
  double best_ns_ = 0;  // the best latency at the last Settle; 0 if there were no results
  std::vector<Pending> pending_;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakePortfolioSearch(SearchContext context) {
  return std::make_unique<PortfolioSearch>(std::move(context));
}

}  // namespace hone::search

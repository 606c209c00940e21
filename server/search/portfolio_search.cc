#include "server/search/portfolio_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "common/base/status_macros.h"
#include "server/search/bayesian_search.h"
#include "server/search/droplet_search.h"
#include "server/search/evolutionary_search.h"
#include "server/search/history_search.h"

namespace hone::search {
namespace {

constexpr StateHeader kState = {"portfolio", 1};
constexpr int kRounds = 3;  // in which strategies may fill what others had proposed already
enum Arm : uint32_t { kEvolutionary, kBayesian, kDroplet, kArms };

using Strategies = std::array<std::unique_ptr<SearchStrategy>, kArms>;

// What an arm earned, and what it did not.
struct Earned {
  double won = 1, lost = 1;
  // A draw of its expected reward: of a beta distribution, by its normal approximation.
  double Draw(Rng& rng) const {
    const double sum = won + lost;
    const double normal = std::sqrt(-2 * std::log(1 - rng.Uniform())) *
                          std::cos(2 * std::numbers::pi * rng.Uniform());
    return won / sum + normal * std::sqrt(won * lost / (sum * sum * (sum + 1)));
  }
};

// A candidate whose result is not in.
struct Pending {
  Point point;
  uint32_t arm;
};

class PortfolioSearch final : public HistorySearch {
 public:
  PortfolioSearch(SearchContext given, const PortfolioOptions& options)
      : HistorySearch(kState, std::move(given)), options_(options), strategies_(Made()) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(model, event));
    Settle();
    Rng rng(context().seed, event, /*purpose=*/10);
    const std::vector<Scored> none;
    BatchPicker picker(context(), history(), none, n);
    std::vector<Pending> pending;
    for (int round = 0; round < kRounds && !picker.full(); ++round) {
      const std::array<int, kArms> places = Places(n - picker.size(), rng);
      for (uint32_t arm = 0; arm < kArms; ++arm) {
        if (places[arm] == 0) continue;
        HONE_ASSIGN_OR_RETURN(
            const std::vector<record::Candidate> proposed,
            strategies_[arm]->Propose(places[arm], event * kRounds + round, model));
        HONE_RETURN_IF_ERROR(Add(proposed, arm, call, picker, pending));
      }
    }
    UnseenSource source(&context(), &history(), &evaluator());
    HONE_RETURN_IF_ERROR(FillByDraws(call, rng, source, picker));
    pending_.insert(pending_.end(), pending.begin(), pending.end());
    return Commit(picker.batch(), call);
  }

  void Tell(absl::Span<const Measured> results) override {
    HistorySearch::Tell(results);
    for (const auto& strategy : strategies_) strategy->Tell(results);
  }

 private:
  Strategies Made() const {
    return {MakeEvolutionarySearch(context(), {.draft = true}), MakeBayesianSearch(context()),
            MakeDropletSearch(context(), {.draft = true})};
  }

  // How many of the next candidates each strategy proposes.
  std::array<int, kArms> Places(int n, Rng& rng) {
    std::array<int, kArms> places{};
    int results = 0;
    bool untried = false;
    for (const History::Entry& entry : history().entries()) results += entry.told;
    for (size_t s = 0; s < context().spaces.size(); ++s)
      untried |= history().IsUntried(static_cast<int>(s));
    if (untried || results < options_.learnt) {
      places[kEvolutionary] = n;
    } else if (results < options_.opening) {
      places[kDroplet] = n / 2;
      places[kBayesian] = n - places[kDroplet];
    } else {
      for (int i = 0; i < n; ++i) {
        std::array<double, kArms> drawn;
        for (uint32_t arm = 0; arm < kArms; ++arm) drawn[arm] = earned_[arm].Draw(rng);
        ++places[std::max_element(drawn.begin(), drawn.end()) - drawn.begin()];
      }
    }
    return places;
  }

  absl::Status Add(const std::vector<record::Candidate>& proposed, uint32_t arm, Call& call,
                   BatchPicker& picker, std::vector<Pending>& pending) {
    std::vector<Point> points;
    for (const record::Candidate& candidate : proposed) {
      int space = 0;
      while (context().spaces[space]->digest() != candidate.space_digest) ++space;
      points.push_back({space, candidate.decisions});
    }
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored, Score(points, call));
    for (Scored& each : scored) {
      Point point = each.point;
      if (picker.Add(std::move(each))) pending.push_back({std::move(point), arm});
    }
    return absl::OkStatus();
  }

  // Rewards the strategies for the results that came in.
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
        earned.won = 1 + (earned.won - 1) * options_.memory;
        earned.lost = 1 + (earned.lost - 1) * options_.memory;
      }
      for (const auto& [entry, arm] : settled) {
        double reward = 0;
        if (entry->ok) {
          const double above = std::log(entry->latency_ns / best_ns_);
          reward = std::clamp(1 - above / options_.close, 0.0, 1.0) / 2 + (above < 0 ? 0.5 : 0);
        }
        earned_[arm].won += reward;
        earned_[arm].lost += 1 - reward;
      }
    }
    const std::vector<const History::Entry*> best = history().Best(1);
    if (!best.empty()) best_ns_ = best[0]->latency_ns;
  }

  void SaveMore(cost_model::ByteWriter& writer) const override {
    for (const auto& strategy : strategies_) writer.AddString(strategy->Save());
    for (const Earned& earned : earned_) {
      writer.AddU64(std::bit_cast<uint64_t>(earned.won));
      writer.AddU64(std::bit_cast<uint64_t>(earned.lost));
    }
    writer.AddU64(std::bit_cast<uint64_t>(best_ns_));
    writer.AddU64(pending_.size());
    for (const Pending& each : pending_) {
      WritePoint(writer, each.point);
      writer.AddU32(each.arm);
    }
  }

  absl::Status RestoreMore(cost_model::ByteReader& reader) override {
    Strategies strategies = Made();
    for (const auto& strategy : strategies) {
      HONE_ASSIGN_OR_RETURN(const absl::string_view state, reader.String());
      HONE_RETURN_IF_ERROR(strategy->Restore(state));
    }
    std::array<Earned, kArms> earned;
    for (Earned& each : earned) {
      HONE_ASSIGN_OR_RETURN(const uint64_t won, reader.U64());
      HONE_ASSIGN_OR_RETURN(const uint64_t lost, reader.U64());
      each = {std::bit_cast<double>(won), std::bit_cast<double>(lost)};
    }
    HONE_ASSIGN_OR_RETURN(const uint64_t best, reader.U64());
    HONE_ASSIGN_OR_RETURN(const uint64_t count, reader.U64());
    std::vector<Pending> pending;
    for (uint64_t i = 0; i < count; ++i) {
      HONE_ASSIGN_OR_RETURN(Point point, ReadPoint(reader, context()));
      HONE_ASSIGN_OR_RETURN(const uint32_t arm, reader.U32());
      if (arm >= kArms) return absl::InvalidArgumentError("the search state names no strategy");
      pending.push_back({std::move(point), arm});
    }
    HONE_RETURN_IF_ERROR(CheckEnd(reader));
    strategies_ = std::move(strategies);
    earned_ = earned;
    best_ns_ = std::bit_cast<double>(best);
    pending_ = std::move(pending);
    return absl::OkStatus();
  }

  const PortfolioOptions options_;
  Strategies strategies_;
  std::array<Earned, kArms> earned_;
  double best_ns_ = 0;  // before the results that are not settled; 0: none
  std::vector<Pending> pending_;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakePortfolioSearch(SearchContext context,
                                                    const PortfolioOptions& options) {
  return std::make_unique<PortfolioSearch>(std::move(context), options);
}

}  // namespace hone::search

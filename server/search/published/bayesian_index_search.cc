#include "server/search/published/bayesian_index_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <utility>

#include "common/base/status_macros.h"
#include "server/cost_model/gaussian_process.h"
#include "server/search/history_search.h"
#include "server/search/site_values.h"

namespace hone::search {
namespace {

using cost_model::GaussianProcess;
using cost_model::KernelInput;
using schedule::Site;

constexpr StateHeader kState = {"bayesian-index", 1};
// Of bayes_opt's regressor: unit variance after normalization, unit length, noise 1e-6 (alpha).
constexpr cost_model::Kernel kKernel = {.deviation = 1, .length = 1, .noise = 1e-3};

// What a process was told.
struct Logged {
  std::vector<double> place;  // in the box
  double score;
};

class BayesianIndexSearch final : public HistorySearch {
 public:
  BayesianIndexSearch(SearchContext given, const BayesianIndexOptions& options)
      : HistorySearch(kState, std::move(given)),
        options_(options),
        logs_(context().spaces.size()) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(model, event));
    Rng rng(context().seed, event, /*purpose=*/8);
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> drawn, Score(Drawn(rng), call));
    SortByScore(drawn);
    UnseenSource source(&context(), &history(), &evaluator());
    BatchPicker picker(context(), history(), drawn, n);
    picker.CoverUntried();
    HONE_RETURN_IF_ERROR(CoverByDraws(call, rng, source, picker));
    const int random = static_cast<int>(options_.random * n + rng.Uniform());
    for (const Point& seed : Seeds(n - random - picker.size(), drawn)) {
      HONE_ASSIGN_OR_RETURN(std::vector<Scored> met, Optimize(seed, call, rng));
      SortByScore(met);
      for (Scored& each : met) {
        if (picker.Add(std::move(each))) break;
      }
    }
    picker.PickBest(n - random);  // for runs that met nothing new
    HONE_RETURN_IF_ERROR(FillByDraws(call, rng, source, picker));
    return Commit(std::move(picker).Take(), call);
  }

 private:
  std::vector<Point> Drawn(Rng& rng) {
    const int count = std::max(1, options_.schedules * context().population / 512);
    std::vector<Point> points;
    for (int i = 0; i < count; ++i) {
      const auto space = static_cast<int>(rng.Below(context().spaces.size()));
      absl::StatusOr<std::vector<int64_t>> drawn = context().spaces[space]->Sample(rng);
      if (drawn.ok()) points.push_back({space, *std::move(drawn)});
    }
    return points;
  }

  std::vector<Point> Seeds(int count, const std::vector<Scored>& drawn) {
    std::vector<Point> seeds;
    if (count <= 0) return seeds;
    const auto measured = static_cast<size_t>(std::lround(options_.measured * count));
    for (const History::Entry* best : history().Best(measured)) seeds.push_back(best->point);
    for (size_t i = 0; i < drawn.size() && seeds.size() < static_cast<size_t>(count); ++i) {
      if (!history().Knows(drawn[i].point)) seeds.push_back(drawn[i].point);
    }
    return seeds;
  }

  int Steps() {
    int results = 0;
    for (const History::Entry& entry : history().entries()) results += entry.told;
    return results < options_.early  ? options_.early_steps
           : results < options_.late ? options_.middle_steps
                                     : options_.late_steps;
  }

  // A run from a seed: the candidates that it met, the seed among them.
  absl::StatusOr<std::vector<Scored>> Optimize(const Point& seed, Call& call, Rng& rng) {
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> met, Score(absl::MakeConstSpan(&seed, 1), call));
    const space::DesignSpace& space = *context().spaces[seed.space];
    const absl::StatusOr<std::vector<Site>> sites = space.Sites(seed.decisions);
    if (met.empty() || !sites.ok() || sites->empty()) return met;
    std::deque<Logged>& log = logs_[seed.space];
    log.push_back({PlaceOf(*sites, seed.decisions), met[0].score});
    // One process for the run; scores in it are relative to those logged before it.
    double mean = 0, squares = 0;
    for (const Logged& each : log) mean += each.score / static_cast<double>(log.size());
    for (const Logged& each : log) squares += (each.score - mean) * (each.score - mean);
    const double deviation = std::max(std::sqrt(squares / static_cast<double>(log.size())), 1e-3);
    GaussianProcess process(kKernel);
    for (const Logged& each : log) process.Add({each.place, {}}, (each.score - mean) / deviation);
    const int steps = Steps();
    for (int step = 0; step < steps; ++step) {
      const std::vector<double> place = Suggested(process, sites->size(), rng);
      absl::StatusOr<std::vector<int64_t>> decisions =
          Fit(space, DecisionsAt(*sites, place, seed.decisions), rng);
      double score = 0;  // of what is not legal
      if (decisions.ok()) {
        const Point point{seed.space, *std::move(decisions)};
        HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored,
                              Score(absl::MakeConstSpan(&point, 1), call));
        if (!scored.empty()) {
          score = scored[0].score;
          met.push_back(std::move(scored[0]));
        }
      }
      process.Add({place, {}}, (score - mean) / deviation);
      log.push_back({place, score});
    }
    while (log.size() > static_cast<size_t>(options_.logged)) log.pop_front();
    return met;
  }

  // The highest upper confidence bound of some random places.
  std::vector<double> Suggested(const GaussianProcess& process, size_t sites, Rng& rng) const {
    std::vector<double> best;
    double highest = 0;
    for (int i = 0; i < options_.suggested; ++i) {
      KernelInput input;
      for (size_t site = 0; site < sites; ++site) input.numbers.push_back(rng.Uniform());
      const GaussianProcess::Marginal marginal = process.At(input);
      const double bound = marginal.mean + options_.kappa * marginal.deviation;
      if (!best.empty() && bound <= highest) continue;
      best = std::move(input.numbers);
      highest = bound;
    }
    return best;
  }

  // index / (values − 1), and back by truncation.
  std::vector<double> PlaceOf(const std::vector<Site>& sites, absl::Span<const int64_t> decisions) {
    std::vector<double> place;
    for (const Site& site : sites) {
      const size_t last = lists_.Count(site) - 1;
      const size_t index = lists_.IndexOf(site, decisions.subspan(site.begin, site.count));
      place.push_back(last == 0 ? 0 : static_cast<double>(index) / static_cast<double>(last));
    }
    return place;
  }
  std::vector<int64_t> DecisionsAt(const std::vector<Site>& sites, absl::Span<const double> place,
                                   std::vector<int64_t> decisions) {
    for (size_t s = 0; s < sites.size(); ++s) {
      const size_t last = lists_.Count(sites[s]) - 1;
      const auto index = static_cast<size_t>(place[s] * static_cast<double>(last));
      const absl::Span<const int64_t> values = lists_.At(sites[s], index);
      std::copy(values.begin(), values.end(), decisions.begin() + sites[s].begin);
    }
    return decisions;
  }

  void SaveMore(cost_model::ByteWriter& writer) const override {
    for (const std::deque<Logged>& log : logs_) {
      writer.AddU64(log.size());
      for (const Logged& each : log) {
        writer.AddU32(static_cast<uint32_t>(each.place.size()));
        for (const double coordinate : each.place)
          writer.AddU64(std::bit_cast<uint64_t>(coordinate));
        writer.AddU64(std::bit_cast<uint64_t>(each.score));
      }
    }
  }
  absl::Status RestoreMore(cost_model::ByteReader& reader) override {
    std::vector<std::deque<Logged>> logs(logs_.size());
    for (std::deque<Logged>& log : logs) {
      HONE_ASSIGN_OR_RETURN(const uint64_t size, reader.U64());
      for (uint64_t i = 0; i < size; ++i) {
        Logged each;
        HONE_ASSIGN_OR_RETURN(const uint32_t coordinates, reader.U32());
        for (uint32_t c = 0; c < coordinates; ++c) {
          HONE_ASSIGN_OR_RETURN(const uint64_t coordinate, reader.U64());
          each.place.push_back(std::bit_cast<double>(coordinate));
        }
        HONE_ASSIGN_OR_RETURN(const uint64_t score, reader.U64());
        each.score = std::bit_cast<double>(score);
        log.push_back(std::move(each));
      }
    }
    HONE_RETURN_IF_ERROR(CheckEnd(reader));
    logs_ = std::move(logs);
    return absl::OkStatus();
  }

  const BayesianIndexOptions options_;
  SiteValues lists_;
  std::vector<std::deque<Logged>> logs_;  // per space, latest last
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeBayesianIndexSearch(SearchContext context,
                                                        const BayesianIndexOptions& options) {
  return std::make_unique<BayesianIndexSearch>(std::move(context), options);
}

}  // namespace hone::search

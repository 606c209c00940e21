#include "tests/server/tuner/search/landscape.h"

#include <algorithm>
#include <cmath>

#include "common/base/rng.h"

namespace hone::search {

Landscape::Landscape(const TestSpaces* spaces, uint64_t seed) : spaces_(spaces) {
  for (size_t s = 0; s < spaces->spaces().size(); ++s) {
    Rng rng(seed, s, /*purpose=*/9);
    optima_.push_back(*spaces->spaces()[s]->Sample(rng));
  }
}

double Landscape::LatencyOf(const record::Candidate& candidate) const {
  size_t space = 0;
  while (spaces_->spaces()[space]->digest() != candidate.space_digest) ++space;
  double squares = 0;
  for (size_t i = 0; i < optima_[space].size(); ++i) {
    const double distance = std::log2(static_cast<double>(candidate.decisions[i])) -
                            std::log2(static_cast<double>(optima_[space][i]));
    squares += distance * distance;
  }
  const double worse = static_cast<double>(optima_.size() - 1 - space);
  return best_ns() * std::exp(0.4 * std::sqrt(squares) + 0.3 * worse);
}

std::vector<double> Regret(SearchStrategy& strategy, const Landscape& landscape, int rounds,
                           int batch) {
  std::vector<double> regret;
  double best = 1e300;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Measured> results;
    const std::vector<record::Candidate> proposed = *strategy.Propose(batch, round, nullptr);
    for (const record::Candidate& candidate : proposed) {
      results.push_back({candidate, record::Outcome::kOk, landscape.LatencyOf(candidate)});
      best = std::min(best, results.back().latency_ns);
    }
    strategy.Tell(results);
    regret.push_back(best / landscape.best_ns());
  }
  return regret;
}

double MeanRegret(const std::string& strategy, int candidates, int seeds) {
  const TestSpaces spaces = MatmulSpaces(512);
  double sum = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    SearchContext context = spaces.Context(seed);
    context.population = 64;
    const Landscape landscape(&spaces, seed);
    auto made = *CreateSearchStrategy(strategy, std::move(context));
    sum += std::log(Regret(*made, landscape, candidates / 16, 16).back());
  }
  return std::exp(sum / seeds);
}

}  // namespace hone::search

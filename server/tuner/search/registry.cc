#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/tuner/search/seeded_search.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

struct Entry {
  absl::string_view name;
  std::function<std::unique_ptr<SearchStrategy>(SearchContext context)> make;
};

Entry Annealing(const AnnealingOptions& options) {
  return {options.name, [options](SearchContext context) {
            return MakeAnnealingSearch(std::move(context), options);
          }};
}

Entry Evolutionary(const EvolutionaryOptions& options) {
  return {options.name, [options](SearchContext context) {
            return MakeEvolutionarySearch(std::move(context), options);
          }};
}

// One line per strategy.
const std::vector<Entry>& Strategies() {
  using Cooling = AnnealingOptions::Cooling;
  static const auto* const strategies = new std::vector<Entry>{
      Annealing({}),
      Annealing({.name = "annealing-adaptive", .cooling = Cooling::kAdaptive}),
      Annealing({.name = "annealing-geometric", .cooling = Cooling::kGeometric}),
      Annealing({.name = "annealing-restarts", .restarts = 4}),
      {"bayesian", MakeBayesianSearch},
      {"bayesian-index", MakeBayesianIndexSearch},
      {"droplet", [](SearchContext context) { return MakeDropletSearch(std::move(context)); }},
      Evolutionary({}),
      Evolutionary({.name = "evolutionary-drafted", .draft = true}),
      Evolutionary({.name = "evolutionary-metropolis", .temperature = 0.05}),
      Evolutionary({.name = "evolutionary-no-crossover", .mutation = 1}),
      {"genetic", MakeGeneticSearch},
      {"grid", MakeGridSearch},
      {"portfolio", MakePortfolioSearch},
      {"random", MakeRandomSearch},
  };
  return *strategies;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SearchStrategy>> CreateSearchStrategy(absl::string_view name,
                                                                     SearchContext context) {
  if (context.spaces.empty())
    return absl::InvalidArgumentError("a search needs at least one design space");
  if (context.threads < 1 || context.population < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a search needs at least one thread and a population of at least one, not ",
                     context.threads, " and ", context.population));
  }
  for (const Entry& entry : Strategies()) {
    if (entry.name != name) continue;
    return context.seeds.empty() ? entry.make(std::move(context))
                                 : MakeSeededSearch(std::move(context), entry.make);
  }
  return absl::NotFoundError(absl::StrCat(
      "no strategy '", name, "'; there are: ", absl::StrJoin(SearchStrategyNames(), ", ")));
}

std::vector<std::string> SearchStrategyNames() {
  std::vector<std::string> names;
  for (const Entry& entry : Strategies()) names.emplace_back(entry.name);
  return names;
}

}  // namespace hone::search

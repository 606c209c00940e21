#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/search/bayesian_search.h"
#include "server/search/droplet_search.h"
#include "server/search/evolutionary_search.h"
#include "server/search/portfolio_search.h"
#include "server/search/published/annealing_search.h"
#include "server/search/published/bayesian_index_search.h"
#include "server/search/published/genetic_search.h"
#include "server/search/published/grid_search.h"
#include "server/search/random_search.h"
#include "server/search/search_strategy.h"
#include "server/search/seeded_search.h"

namespace hone::search {
namespace {

struct Entry {
  absl::string_view name;
  std::unique_ptr<SearchStrategy> (*make)(SearchContext context);
};

using Cooling = AnnealingOptions::Cooling;

// One line per strategy.
constexpr Entry kStrategies[] = {
    {"annealing", [](SearchContext c) { return MakeAnnealingSearch(std::move(c), {}); }},
    {"annealing-adaptive",
     [](SearchContext c) {
       return MakeAnnealingSearch(std::move(c),
                                  {.name = "annealing-adaptive", .cooling = Cooling::kAdaptive});
     }},
    {"annealing-geometric",
     [](SearchContext c) {
       return MakeAnnealingSearch(std::move(c),
                                  {.name = "annealing-geometric", .cooling = Cooling::kGeometric});
     }},
    {"annealing-restarts",
     [](SearchContext c) {
       return MakeAnnealingSearch(std::move(c), {.name = "annealing-restarts", .restarts = 4});
     }},
    {"bayesian", [](SearchContext c) { return MakeBayesianSearch(std::move(c)); }},
    {"bayesian-index", [](SearchContext c) { return MakeBayesianIndexSearch(std::move(c)); }},
    {"droplet", [](SearchContext c) { return MakeDropletSearch(std::move(c)); }},
    {"evolutionary",
     [](SearchContext c) { return MakeEvolutionarySearch(std::move(c), {.by_stages = true}); }},
    {"evolutionary-drafted",
     [](SearchContext c) {
       return MakeEvolutionarySearch(
           std::move(c), {.name = "evolutionary-drafted", .draft = true, .by_stages = true});
     }},
    {"evolutionary-metropolis",
     [](SearchContext c) {
       return MakeEvolutionarySearch(std::move(c),
                                     {.name = "evolutionary-metropolis", .temperature = 0.05});
     }},
    {"evolutionary-no-crossover",
     [](SearchContext c) {
       return MakeEvolutionarySearch(std::move(c),
                                     {.name = "evolutionary-no-crossover", .mutation = 1});
     }},
    {"genetic", [](SearchContext c) { return MakeGeneticSearch(std::move(c)); }},
    {"grid", MakeGridSearch},
    {"portfolio", [](SearchContext c) { return MakePortfolioSearch(std::move(c)); }},
    {"random", MakeRandomSearch},
};

}  // namespace

absl::StatusOr<std::unique_ptr<SearchStrategy>> CreateSearchStrategy(absl::string_view name,
                                                                     SearchContext context) {
  if (context.spaces.empty()) return absl::InvalidArgumentError("a search needs a design space");
  if (context.threads < 1 || context.population < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a search needs a thread and a population, not ",
                                                   context.threads, " and ", context.population));
  }
  for (const Entry& entry : kStrategies) {
    if (entry.name != name) continue;
    return context.seeds.empty() ? entry.make(std::move(context))
                                 : MakeSeededSearch(std::move(context), entry.make);
  }
  return absl::NotFoundError(absl::StrCat(
      "no strategy '", name, "'; there are: ", absl::StrJoin(SearchStrategyNames(), ", ")));
}

std::vector<std::string> SearchStrategyNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kStrategies) names.emplace_back(entry.name);
  return names;
}

}  // namespace hone::search

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/search/annealing_search.h"
#include "server/search/bayesian_index_search.h"
#include "server/search/bayesian_search.h"
#include "server/search/droplet_search.h"
#include "server/search/evolutionary_search.h"
#include "server/search/genetic_search.h"
#include "server/search/grid_search.h"
#include "server/search/portfolio_search.h"
#include "server/search/random_search.h"
#include "server/search/search_strategy.h"
#include "server/search/seeded_search.h"

namespace hone::search {
namespace {

struct Entry {
  absl::string_view name;
  std::unique_ptr<SearchStrategy> (*make)(SearchContext context);
};

// One line per strategy.
constexpr Entry kStrategies[] = {
    {"annealing", [](SearchContext context) { return MakeAnnealingSearch(std::move(context)); }},
    {"annealing-adaptive",
     [](SearchContext context) {
       return MakeAnnealingSearch(
           std::move(context),
           {.name = "annealing-adaptive", .cooling = AnnealingOptions::Cooling::kAdaptive});
     }},
    {"annealing-geometric",
     [](SearchContext context) {
       return MakeAnnealingSearch(
           std::move(context),
           {.name = "annealing-geometric", .cooling = AnnealingOptions::Cooling::kGeometric});
     }},
    {"annealing-restarts",
     [](SearchContext context) {
       return MakeAnnealingSearch(std::move(context),
                                  {.name = "annealing-restarts", .restarts = 4});
     }},
    {"bayesian", [](SearchContext context) { return MakeBayesianSearch(std::move(context)); }},
    {"bayesian-index",
     [](SearchContext context) { return MakeBayesianIndexSearch(std::move(context)); }},
    {"droplet", [](SearchContext context) { return MakeDropletSearch(std::move(context)); }},
    {"evolutionary", MakeEvolutionarySearch},
    {"genetic", [](SearchContext context) { return MakeGeneticSearch(std::move(context)); }},
    {"grid", MakeGridSearch},
    {"portfolio", [](SearchContext context) { return MakePortfolioSearch(std::move(context)); }},
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

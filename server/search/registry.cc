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

using Made = std::unique_ptr<SearchStrategy>;

// What the literature describes knows no draft of ours.
SearchContext AsPublished(SearchContext context) {
  context.draft = false;
  return context;
}

Made Annealing(SearchContext context, const AnnealingOptions& options) {
  return MakeAnnealingSearch(AsPublished(std::move(context)), options);
}

Made Evolutionary(SearchContext context, const EvolutionaryOptions& options) {
  return MakeEvolutionarySearch(AsPublished(std::move(context)), options);
}

using Cooling = AnnealingOptions::Cooling;

// One line per strategy.
constexpr Entry kStrategies[] = {
    {"annealing", [](SearchContext c) { return Annealing(std::move(c), {}); }},
    {"annealing-adaptive",
     [](SearchContext c) {
       return Annealing(std::move(c),
                        {.name = "annealing-adaptive", .cooling = Cooling::kAdaptive});
     }},
    {"annealing-geometric",
     [](SearchContext c) {
       return Annealing(std::move(c),
                        {.name = "annealing-geometric", .cooling = Cooling::kGeometric});
     }},
    {"annealing-restarts",
     [](SearchContext c) {
       return Annealing(std::move(c), {.name = "annealing-restarts", .restarts = 4});
     }},
    {"bayesian", [](SearchContext c) { return MakeBayesianSearch(std::move(c)); }},
    {"bayesian-index",
     [](SearchContext c) { return MakeBayesianIndexSearch(AsPublished(std::move(c))); }},
    {"droplet", [](SearchContext c) { return MakeDropletSearch(AsPublished(std::move(c))); }},
    {"evolutionary",
     [](SearchContext c) { return Evolutionary(std::move(c), {.by_stages = true}); }},
    {"evolutionary-drafted",
     [](SearchContext c) {
       return MakeEvolutionarySearch(std::move(c),
                                     {.name = "evolutionary-drafted", .by_stages = true});
     }},
    {"evolutionary-metropolis",
     [](SearchContext c) {
       return Evolutionary(std::move(c), {.name = "evolutionary-metropolis", .temperature = 0.05});
     }},
    {"evolutionary-no-crossover",
     [](SearchContext c) {
       return Evolutionary(std::move(c), {.name = "evolutionary-no-crossover", .mutation = 1});
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

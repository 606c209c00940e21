#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/tuner/search/seeded_search.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

std::vector<StrategyEntry>& Strategies() {
  static auto* const strategies = new std::vector<StrategyEntry>{
      {"bayesian", MakeBayesianSearch},
      {"droplet", [](SearchContext context) { return MakeDropletSearch(std::move(context)); }},
      {"evolutionary",
       [](SearchContext context) { return MakeEvolutionarySearch(std::move(context)); }},
      {"evolutionary-drafted",
       [](SearchContext context) {
         return MakeEvolutionarySearch(std::move(context),
                                       {.name = "evolutionary-drafted", .draft = true});
       }},
      {"portfolio", MakePortfolioSearch},
      {"random", MakeRandomSearch},
  };
  return *strategies;
}

}  // namespace

void RegisterSearchStrategy(StrategyEntry entry) {
  std::vector<StrategyEntry>& strategies = Strategies();
  const auto place = std::lower_bound(
      strategies.begin(), strategies.end(), entry.name,
      [](const StrategyEntry& other, absl::string_view name) { return other.name < name; });
  strategies.insert(place, std::move(entry));
}

absl::StatusOr<std::unique_ptr<SearchStrategy>> CreateSearchStrategy(absl::string_view name,
                                                                     SearchContext context) {
  if (context.spaces.empty())
    return absl::InvalidArgumentError("a search needs at least one design space");
  if (context.threads < 1 || context.population < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a search needs at least one thread and a population of at least one, not ",
                     context.threads, " and ", context.population));
  }
  for (const StrategyEntry& entry : Strategies()) {
    if (entry.name != name) continue;
    return context.seeds.empty() ? entry.make(std::move(context))
                                 : MakeSeededSearch(std::move(context), entry.make);
  }
  return absl::NotFoundError(absl::StrCat(
      "no strategy '", name, "'; there are: ", absl::StrJoin(SearchStrategyNames(), ", ")));
}

std::vector<std::string> SearchStrategyNames() {
  std::vector<std::string> names;
  for (const StrategyEntry& entry : Strategies()) names.emplace_back(entry.name);
  return names;
}

}  // namespace hone::search

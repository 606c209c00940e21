#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/search/evolutionary_search.h"
#include "server/search/random_search.h"
#include "server/search/search_strategy.h"

namespace hone::search {
namespace {

struct Entry {
  absl::string_view name;
  std::unique_ptr<SearchStrategy> (*make)(SearchContext context);
};

// One line per strategy.
constexpr Entry kStrategies[] = {
    {"evolutionary", MakeEvolutionarySearch},
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
    if (entry.name == name) return entry.make(std::move(context));
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

#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

// The inner strategy may propose a candidate that was proposed as a seed, once per seed. It is then
// asked again.
constexpr int kRounds = kMostSeeds + 1;
constexpr int64_t kProposalsPerSeed = 4;

// Proposes context.seeds among the first proposals (see search_strategy.h), and the proposals of
// the inner strategy otherwise. The inner strategy is told all results and gives the name.
class SeededSearch final : public HistorySearch {
 public:
  SeededSearch(SearchContext context, std::unique_ptr<SearchStrategy> inner)
      : HistorySearch(inner->name(), std::move(context)), inner_(std::move(inner)) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, /*model=*/nullptr, /*purpose=*/0));
    BatchPicker& picker = call.picker;
    while (!picker.full() && SeedIsDue(n)) {
      HONE_ASSIGN_OR_RETURN(const bool added, AddCandidate(context().seeds[next_seed_++], call));
      proposed_seeds_ += added ? 1 : 0;
    }
    for (int round = 0; round < kRounds && !picker.full(); ++round) {
      const absl::StatusOr<std::vector<record::Candidate>> proposed =
          inner_->Propose(n - picker.size(), event * kRounds + round, model);
      if (!proposed.ok() && picker.size() == 0) return proposed.status();
      if (!proposed.ok() || proposed->empty()) break;
      for (const record::Candidate& candidate : *proposed)
        HONE_RETURN_IF_ERROR(AddCandidate(candidate, call).status());
    }
    proposals_ += picker.size();
    return Commit(call);
  }

  void Tell(absl::Span<const Measured> results) override {
    HistorySearch::Tell(results);
    inner_->Tell(results);
  }

 private:
  bool SeedIsDue(int n) const {
    return next_seed_ < context().seeds.size() && proposed_seeds_ < kMostSeeds &&
           kProposalsPerSeed * proposed_seeds_ < proposals_ + n;
  }

  // Returns false if the candidate does not belong to these spaces, is illegal, or is known.
  absl::StatusOr<bool> AddCandidate(const record::Candidate& candidate, Call& call) {
    const auto& spaces = context().spaces;
    const auto space = absl::c_find_if(
        spaces, [&](const auto* each) { return each->digest() == candidate.space_digest; });
    if (space == spaces.end()) return false;
    const auto decisions = static_cast<int>(candidate.decisions.size());
    if (decisions != (*space)->decision_count() || !(*space)->IsLegal(candidate.decisions))
      return false;
    return Add({static_cast<int>(space - spaces.begin()), candidate.decisions}, call);
  }

  const std::unique_ptr<SearchStrategy> inner_;
  size_t next_seed_ = 0;
  int64_t proposed_seeds_ = 0;
  int64_t proposals_ = 0;  // including seeds
};

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
  const auto place = absl::c_lower_bound(
      strategies, entry.name,
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
    std::unique_ptr<SearchStrategy> strategy = entry.make(context);
    if (context.seeds.empty()) return strategy;
    return std::make_unique<SeededSearch>(std::move(context), std::move(strategy));
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

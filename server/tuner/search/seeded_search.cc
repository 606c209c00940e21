#include "server/tuner/search/seeded_search.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "server/tuner/search/history_search.h"

namespace hone::search {
namespace {

// The inner strategy may propose a candidate that was proposed as a seed, once per seed. It is then
// asked again.
constexpr int kRounds = kMostSeeds + 1;
constexpr int64_t kProposalsPerSeed = 4;

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
    const auto space = std::find_if(spaces.begin(), spaces.end(), [&](const auto* each) {
      return each->digest() == candidate.space_digest;
    });
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

}  // namespace

std::unique_ptr<SearchStrategy> MakeSeededSearch(
    SearchContext context,
    const std::function<std::unique_ptr<SearchStrategy>(SearchContext)>& make) {
  SearchContext inner = context;
  inner.seeds.clear();
  return std::make_unique<SeededSearch>(std::move(context), make(std::move(inner)));
}

}  // namespace hone::search

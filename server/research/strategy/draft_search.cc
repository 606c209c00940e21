#include <utility>

#include "server/research/strategy/strategies.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

class DraftSearch final : public SearchStrategy {
 public:
  explicit DraftSearch(std::unique_ptr<SearchStrategy> search) : search_(std::move(search)) {}
  absl::string_view name() const override { return "draft"; }
  absl::StatusOr<std::vector<record::Candidate>> Propose(int n, uint64_t event,
                                                         const cost_model::CostModel*) override {
    return search_->Propose(n, event, nullptr);
  }
  // Candidates become known, but as failures, which say nothing about others.
  void Tell(absl::Span<const Measured> results) override {
    for (const Measured& result : results) {
      const Measured failed{result.candidate, record::Outcome::kInvalid, 0};
      search_->Tell(absl::MakeConstSpan(&failed, 1));
    }
  }

 private:
  const std::unique_ptr<SearchStrategy> search_;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeDraftSearch(SearchContext context) {
  return std::make_unique<DraftSearch>(
      MakeEvolutionarySearch(std::move(context), {.name = "evolutionary-drafted", .draft = true}));
}

}  // namespace hone::search

#include "server/search/random_search.h"

#include <utility>

#include "common/base/status_macros.h"
#include "server/search/evaluator.h"
#include "server/search/history.h"
#include "server/search/saved_state.h"
#include "server/search/unseen.h"

namespace hone::search {
namespace {

constexpr StateHeader kState = {"random", 1};

class RandomSearch final : public SearchStrategy {
 public:
  explicit RandomSearch(SearchContext context)
      : context_(std::move(context)), history_(&context_), evaluator_(&context_) {}

  absl::string_view name() const override { return kState.name; }

  absl::StatusOr<std::vector<record::Candidate>> Propose(int n, uint64_t event,
                                                         const cost_model::CostModel*) override {
    history_.Refresh(evaluator_);
    Rng rng(context_.seed, event, /*purpose=*/1);
    UnseenSource source(&context_, &history_, &evaluator_);
    std::vector<record::Candidate> candidates;
    while (static_cast<int>(candidates.size()) < n) {
      std::optional<Unseen> drawn = source.DrawAny(rng, /*untried_first=*/true);
      if (!drawn.has_value()) break;
      candidates.push_back(CandidateOf(context_, drawn->point));
      history_.AddProposal(std::move(drawn->point), std::move(drawn->evaluation), event, false, 0);
    }
    return candidates;
  }

  void Tell(absl::Span<const Measured> results) override { history_.Tell(results); }

  std::string Save() const override {
    cost_model::ByteWriter writer;
    history_.Save(writer);
    return EncodeState(kState, std::move(writer).Finish());
  }

  absl::Status Restore(absl::string_view state) override {
    HONE_ASSIGN_OR_RETURN(const absl::string_view payload, DecodeState(kState, state));
    History restored(&context_);
    cost_model::ByteReader reader(payload);
    HONE_RETURN_IF_ERROR(restored.Restore(reader));
    HONE_RETURN_IF_ERROR(CheckEnd(reader));
    history_ = std::move(restored);
    return absl::OkStatus();
  }

 private:
  const SearchContext context_;
  History history_;
  Evaluator evaluator_;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeRandomSearch(SearchContext context) {
  return std::make_unique<RandomSearch>(std::move(context));
}

}  // namespace hone::search

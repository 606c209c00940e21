#include "server/search/random_search.h"

#include <utility>

#include "common/base/status_macros.h"
#include "server/search/history_search.h"

namespace hone::search {
namespace {

constexpr StateHeader kState = {"random", 1};

class RandomSearch final : public HistorySearch {
 public:
  explicit RandomSearch(SearchContext context) : HistorySearch(kState, std::move(context)) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(int n, uint64_t event,
                                                         const cost_model::CostModel*) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(/*model=*/nullptr, event));
    Rng rng(context().seed, event, /*purpose=*/1);
    UnseenSource source(&context(), &history(), &evaluator());
    const std::vector<Scored> none;
    BatchPicker picker(context(), history(), none, n);
    HONE_RETURN_IF_ERROR(CoverByDraws(call, rng, source, picker));
    HONE_RETURN_IF_ERROR(FillByDraws(call, rng, source, picker));
    return Commit(picker.batch(), call);
  }
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeRandomSearch(SearchContext context) {
  return std::make_unique<RandomSearch>(std::move(context));
}

}  // namespace hone::search

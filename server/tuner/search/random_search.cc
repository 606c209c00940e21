#include <utility>

#include "common/base/status_macros.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

class RandomSearch final : public HistorySearch {
 public:
  explicit RandomSearch(SearchContext context) : HistorySearch("random", std::move(context)) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(int n, uint64_t event,
                                                         const cost_model::CostModel*) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, /*model=*/nullptr, /*purpose=*/1));
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    return Commit(call);
  }
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeRandomSearch(SearchContext context) {
  return std::make_unique<RandomSearch>(std::move(context));
}

}  // namespace hone::search

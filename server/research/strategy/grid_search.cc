#include <utility>

#include "common/base/status_macros.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/vector_cursor.h"

namespace hone::search {
namespace {

// Maximum number of vectors that are examined for one candidate.
constexpr int kGridSteps = 100000;

class GridSearch final : public HistorySearch {
 public:
  explicit GridSearch(SearchContext given)
      : HistorySearch("grid", std::move(given)), cursors_(context().spaces.size()) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(int n, uint64_t event,
                                                         const cost_model::CostModel*) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, /*model=*/nullptr, /*purpose=*/3));
    for (size_t without = 0; !call.picker.full() && without < cursors_.size(); ++turn_) {
      const int space = static_cast<int>(turn_ % cursors_.size());
      HONE_ASSIGN_OR_RETURN(const bool added, AddNext(space, call));
      without = added ? 0 : without + 1;
    }
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    return Commit(call);
  }

 private:
  // Adds the next candidate of a space. Returns false if none is left, or none of the next
  // kGridSteps vectors is a new candidate.
  absl::StatusOr<bool> AddNext(int number, Call& call) {
    const space::DesignSpace& space = *context().spaces[number];
    VectorCursor& cursor = cursors_[number];
    for (int step = 0; step < kGridSteps && cursor.Advance(space, lists_); ++step) {
      const Point point{number, cursor.decisions()};
      if (!space.IsLegal(point.decisions) || history().Knows(point)) continue;
      HONE_ASSIGN_OR_RETURN(const bool added, Add(point, call));
      if (added) return true;
    }
    return false;
  }

  SiteValues lists_;
  std::vector<VectorCursor> cursors_;
  uint64_t turn_ = 0;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeGridSearch(SearchContext context) {
  return std::make_unique<GridSearch>(std::move(context));
}

}  // namespace hone::search

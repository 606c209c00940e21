#include "server/search/published/grid_search.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "server/search/history_search.h"
#include "server/search/site_values.h"

namespace hone::search {
namespace {

using schedule::Site;

constexpr StateHeader kState = {"grid", 1};
constexpr int kSteps = 100000;  // vectors without a candidate that a space may pass in one Propose

// Takes given values at the first sites and the first ones of the lists after them; remembers the
// sites, so that the order can go on from a vector that a primitive refuses in the middle.
class PrefixDecider final : public schedule::Decider {
 public:
  PrefixDecider(SiteValues& lists, absl::Span<const int64_t> prefix, int decisions)
      : lists_(lists), prefix_(prefix), decisions_(decisions, 0) {}
  absl::Status Decide(const Site& site, absl::Span<int64_t> values) override {
    const absl::Span<const int64_t> taken =
        site.begin + site.count <= static_cast<int>(prefix_.size())
            ? prefix_.subspan(site.begin, site.count)
            : lists_.At(site, 0);
    std::copy(taken.begin(), taken.end(), values.begin());
    std::copy(taken.begin(), taken.end(), decisions_.begin() + site.begin);
    sites_.push_back(site);
    return absl::OkStatus();
  }
  std::vector<Site>& sites() { return sites_; }
  std::vector<int64_t>& decisions() { return decisions_; }

 private:
  SiteValues& lists_;
  const absl::Span<const int64_t> prefix_;
  std::vector<int64_t> decisions_;
  std::vector<Site> sites_;
};

// A place in the order of one design space.
struct Cursor {
  bool begun = false, done = false;
  std::vector<int64_t> decisions;
  std::vector<Site> sites;  // of `decisions`; fewer where a primitive refused before the last
};

class GridSearch final : public HistorySearch {
 public:
  explicit GridSearch(SearchContext given)
      : HistorySearch(kState, std::move(given)), cursors_(context().spaces.size()) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(int n, uint64_t event,
                                                         const cost_model::CostModel*) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(/*model=*/nullptr, event));
    const std::vector<Scored> none;
    BatchPicker picker(context(), history(), none, n);
    for (size_t without = 0; !picker.full() && without < cursors_.size(); ++turn_) {
      const int space = static_cast<int>(turn_ % cursors_.size());
      HONE_ASSIGN_OR_RETURN(const bool added, AddNext(space, call, picker));
      without = added ? 0 : without + 1;
    }
    Rng rng(context().seed, event, /*purpose=*/3);
    UnseenSource source(&context(), &history(), &evaluator());
    HONE_RETURN_IF_ERROR(FillByDraws(call, rng, source, picker));
    return Commit(picker.batch(), call);
  }

 private:
  // False: the space has no candidate left, or none in a long stretch.
  absl::StatusOr<bool> AddNext(int space, Call& call, BatchPicker& picker) {
    Cursor& cursor = cursors_[space];
    for (int step = 0; step < kSteps && Advance(*context().spaces[space], cursor); ++step) {
      const Point point{space, cursor.decisions};
      if (!context().spaces[space]->IsLegal(point.decisions) || history().Knows(point)) continue;
      HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored,
                            Score(absl::MakeConstSpan(&point, 1), call));
      if (!scored.empty() && picker.Add(std::move(scored[0]))) return true;
    }
    return false;
  }

  // To the next vector that may be legal. False: there is none.
  bool Advance(const space::DesignSpace& space, Cursor& cursor) {
    if (cursor.done) return false;
    if (!cursor.begun) {
      cursor.begun = true;
      const std::optional<std::vector<int64_t>> only = space.only();
      if (only.has_value()) {  // `sites` stays empty, so that it is also the last
        cursor.decisions = *only;
        return true;
      }
      Enter(space, {}, cursor);
      return true;
    }
    // Where the first decisions break a constraint already, the later ones are not gone through: a
    // workload of several reductions has more of them than can be tried.
    const int broken = space.BrokenPrefix(cursor.decisions);
    for (int i = static_cast<int>(cursor.sites.size()) - 1; i >= 0; --i) {
      const Site& site = cursor.sites[i];
      if (broken > 0 && site.begin >= broken) continue;
      const auto current = absl::MakeConstSpan(cursor.decisions).subspan(site.begin, site.count);
      const size_t next = lists_.IndexOf(site, current) + 1;
      if (next >= lists_.Count(site)) continue;
      const absl::Span<const int64_t> values = lists_.At(site, next);
      std::vector<int64_t> prefix(cursor.decisions.begin(), cursor.decisions.begin() + site.begin);
      prefix.insert(prefix.end(), values.begin(), values.end());
      Enter(space, prefix, cursor);
      return true;
    }
    cursor.done = true;
    return false;
  }

  // The first vector with a prefix.
  void Enter(const space::DesignSpace& space, const std::vector<int64_t>& prefix, Cursor& cursor) {
    if (static_cast<int>(cursor.sites.size()) > 0) {  // with the extents of the last one, mostly
      std::vector<int64_t> decisions = prefix;
      for (const Site& site : cursor.sites) {
        if (site.begin < static_cast<int>(prefix.size())) continue;
        const absl::Span<const int64_t> first = lists_.At(site, 0);
        decisions.insert(decisions.end(), first.begin(), first.end());
      }
      if (static_cast<int>(decisions.size()) == space.decision_count()) {
        absl::StatusOr<std::vector<Site>> sites = space.Sites(decisions);
        if (sites.ok()) {
          cursor.decisions = std::move(decisions);
          cursor.sites = *std::move(sites);
          return;
        }
      }
    }
    PrefixDecider decider(lists_, prefix, space.decision_count());
    // A refusal shows in IsLegal or in the evaluation.
    schedule::ReplayWith(space.workload(), space.trace(), decider).status().IgnoreError();
    cursor.decisions = std::move(decider.decisions());
    cursor.sites = std::move(decider.sites());
  }

  void SaveMore(cost_model::ByteWriter& writer) const override {
    writer.AddU64(turn_);
    for (size_t s = 0; s < cursors_.size(); ++s) {
      writer.AddU32((cursors_[s].begun ? 1 : 0) | (cursors_[s].done ? 2 : 0));
      if (cursors_[s].begun) WritePoint(writer, {static_cast<int>(s), cursors_[s].decisions});
    }
  }

  absl::Status RestoreMore(cost_model::ByteReader& reader) override {
    std::vector<Cursor> cursors(cursors_.size());
    HONE_ASSIGN_OR_RETURN(const uint64_t turn, reader.U64());
    for (Cursor& cursor : cursors) {
      HONE_ASSIGN_OR_RETURN(const uint32_t flags, reader.U32());
      cursor.begun = flags & 1;
      cursor.done = flags >> 1 & 1;
      if (!cursor.begun) continue;
      HONE_ASSIGN_OR_RETURN(Point point, ReadPoint(reader, context()));
      const space::DesignSpace& space = *context().spaces[&cursor - cursors.data()];
      if (space.only().has_value()) {
        cursor.decisions = std::move(point.decisions);
      } else {
        Enter(space, point.decisions, cursor);
      }
    }
    HONE_RETURN_IF_ERROR(CheckEnd(reader));
    cursors_ = std::move(cursors);
    turn_ = turn;
    return absl::OkStatus();
  }

  SiteValues lists_;
  std::vector<Cursor> cursors_;
  uint64_t turn_ = 0;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeGridSearch(SearchContext context) {
  return std::make_unique<GridSearch>(std::move(context));
}

}  // namespace hone::search

#include "server/tuner/search/vector_cursor.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"
#include "common/schedule/replay.h"

namespace hone::search {
namespace {

using schedule::Site;

// Uses the prefix at the first sites and the first listed values at later sites. Records the sites,
// which allows the enumeration to continue from a vector that a primitive rejects in the middle.
class PrefixDecider final : public schedule::Decider {
 public:
  PrefixDecider(SiteValues& lists, absl::Span<const int64_t> prefix, int count)
      : decisions(count, 0), lists_(lists), prefix_(prefix) {}
  absl::Status Decide(const Site& site, absl::Span<int64_t> values) override {
    const absl::Span<const int64_t> taken =
        site.begin + site.count <= static_cast<int>(prefix_.size())
            ? prefix_.subspan(site.begin, site.count)
            : lists_.At(site, 0);
    absl::c_copy(taken, values.begin());
    absl::c_copy(taken, decisions.begin() + site.begin);
    sites.push_back(site);
    return absl::OkStatus();
  }

  std::vector<int64_t> decisions;
  std::vector<Site> sites;

 private:
  SiteValues& lists_;
  const absl::Span<const int64_t> prefix_;
};

}  // namespace

bool VectorCursor::Advance(const space::DesignSpace& space, SiteValues& lists) {
  if (done_) return false;
  if (!begun_) {
    begun_ = true;
    if (const std::optional<std::vector<int64_t>> only = space.only()) {
      decisions_ = *only;
    } else {
      Enter(space, {}, lists);
    }
    return true;
  }
  // If the first decisions already violate a constraint, the later ones are not enumerated, because
  // a workload with several reductions has too many of them.
  const int broken = space.BrokenPrefix(decisions_);
  for (int i = static_cast<int>(sites_.size()) - 1; i >= 0; --i) {
    const Site& site = sites_[i];
    if (broken > 0 && site.begin >= broken) continue;
    const auto current = absl::MakeConstSpan(decisions_).subspan(site.begin, site.count);
    const size_t next = lists.IndexOf(site, current) + 1;
    if (next >= lists.Count(site)) continue;
    const absl::Span<const int64_t> values = lists.At(site, next);
    std::vector<int64_t> prefix(decisions_.begin(), decisions_.begin() + site.begin);
    prefix.insert(prefix.end(), values.begin(), values.end());
    Enter(space, prefix, lists);
    return true;
  }
  done_ = true;
  return false;
}

void VectorCursor::Enter(const space::DesignSpace& space, absl::Span<const int64_t> prefix,
                         SiteValues& lists) {
  if (!sites_.empty()) {  // usually the extents are those of the previous vector
    std::vector<int64_t> decisions(prefix.begin(), prefix.end());
    for (const Site& site : sites_) {
      if (site.begin < static_cast<int>(prefix.size())) continue;
      const absl::Span<const int64_t> first = lists.At(site, 0);
      decisions.insert(decisions.end(), first.begin(), first.end());
    }
    if (static_cast<int>(decisions.size()) == space.decision_count()) {
      absl::StatusOr<std::vector<Site>> sites = space.Sites(decisions);
      if (sites.ok()) {
        decisions_ = std::move(decisions);
        sites_ = *std::move(sites);
        return;
      }
    }
  }
  PrefixDecider decider(lists, prefix, space.decision_count());
  // The caller finds out in IsLegal or in the evaluation whether the vector is rejected.
  schedule::ReplayWith(space.workload(), space.trace(), decider).status().IgnoreError();
  decisions_ = std::move(decider.decisions);
  sites_ = std::move(decider.sites);
}

}  // namespace hone::search

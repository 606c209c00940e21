#include "server/lab/enumerate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/schedule/replay.h"
#include "server/search/site_values.h"

namespace hone::lab {
namespace {

using schedule::Site;

constexpr size_t kTriesPerCandidate = 100;

// Takes the given values at the first sites and the first legal value at each later one.
class Prefix final : public schedule::Decider {
 public:
  Prefix(search::SiteValues& lists, absl::Span<const int64_t> prefix, int decisions)
      : lists_(lists), prefix_(prefix), decisions(decisions, 0) {}

  absl::Status Decide(const Site& site, absl::Span<int64_t> values) override {
    const absl::Span<const int64_t> taken =
        site.begin + site.count <= static_cast<int>(prefix_.size())
            ? prefix_.subspan(site.begin, site.count)
            : lists_.At(site, 0);
    std::copy(taken.begin(), taken.end(), values.begin());
    std::copy(taken.begin(), taken.end(), decisions.begin() + site.begin);
    sites.push_back(site);
    return absl::OkStatus();
  }

 private:
  search::SiteValues& lists_;
  const absl::Span<const int64_t> prefix_;

 public:
  std::vector<int64_t> decisions;
  std::vector<Site> sites;  // fewer if a primitive failed before the last one
};

// Returns the first decisions of the next vector; empty: there is none.
std::vector<int64_t> Next(search::SiteValues& lists, const Prefix& at) {
  for (int i = static_cast<int>(at.sites.size()) - 1; i >= 0; --i) {
    const Site& site = at.sites[i];
    const auto current = absl::MakeConstSpan(at.decisions).subspan(site.begin, site.count);
    const size_t next = lists.IndexOf(site, current) + 1;
    if (next >= lists.Count(site)) continue;
    const absl::Span<const int64_t> values = lists.At(site, next);
    std::vector<int64_t> prefix(at.decisions.begin(), at.decisions.begin() + site.begin);
    prefix.insert(prefix.end(), values.begin(), values.end());
    return prefix;
  }
  return {};
}

}  // namespace

absl::StatusOr<std::vector<Enumerated>> EnumerateCandidates(const space::DesignSpace& space,
                                                            size_t limit) {
  std::vector<Enumerated> found;
  search::SiteValues lists;
  std::vector<int64_t> prefix;
  for (size_t tries = 0;; ++tries) {
    if (found.size() > limit || tries > kTriesPerCandidate * limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("design space ", space.name(), " has more than ", limit,
                       " candidates (or too many vectors to try): restrict its samplings"));
    }
    Prefix at(lists, prefix, space.decision_count());
    absl::StatusOr<schedule::Replayed> replayed =
        schedule::ReplayWith(space.workload(), space.trace(), at);
    if (replayed.ok() && space.IsLegal(at.decisions)) {
      found.push_back({at.decisions, replayed->program.StructuralDigest()});
    }
    prefix = Next(lists, at);
    if (prefix.empty()) return found;
  }
}

}  // namespace hone::lab

#ifndef HONE_SERVER_TUNER_SEARCH_SITE_VALUES_H_
#define HONE_SERVER_TUNER_SEARCH_SITE_VALUES_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "server/tuner/space/design_space.h"

namespace hone::search {

// Lists of the legal values of sites, which other tuners call knobs. Choices are in the order of
// the trace, tiles in lexicographic order. If a tile's sizes need not divide the extent and it has
// more than kMostValues values, only sizes that make even tiles are listed. Lists of tiles are
// cached. Used by one thread at a time.
class SiteValues {
 public:
  static constexpr size_t kMostValues = 4096;

  // Returns the values as rows of site.count numbers; there is at least one row. The reference is
  // valid until the next call.
  const std::vector<int64_t>& Of(const schedule::Site& site);
  size_t Count(const schedule::Site& site) { return Of(site).size() / site.count; }
  // The index of legal values in the list. For a tile that is not listed, the index of the next
  // tile in the order.
  size_t IndexOf(const schedule::Site& site, absl::Span<const int64_t> values);
  // REQUIRES: index < Count(site).
  absl::Span<const int64_t> At(const schedule::Site& site, size_t index) {
    return absl::MakeConstSpan(Of(site)).subspan(index * site.count, site.count);
  }

 private:
  using Key = std::tuple<schedule::Site::Kind, int, int64_t, int64_t>;
  absl::flat_hash_map<Key, std::vector<int64_t>> tiles_;
};

// Returns `wanted` if it is legal, otherwise a legal vector close to it. If the extents of tiles
// depend on earlier decisions, these tiles are repaired. ResourceExhausted: a constraint or a
// primitive rejects the decisions. InvalidArgument: the length is wrong.
absl::StatusOr<std::vector<int64_t>> Fit(const space::DesignSpace& space,
                                         absl::Span<const int64_t> wanted, Rng& rng);

// Returns the legal vectors that differ from `decisions` by one hop of `step` ≥ 1 at one site, each
// once, in the order of the sites. Returns none if `decisions` is illegal. The hops are:
// - tile: a prime factor moves `step` times from one part to another;
// - tile whose sizes need not divide the extent: also, a size changes to make `step` even tiles
//   more or fewer, or is multiplied or divided by 2^step;
// - choice: the row `step` rows before or after.
std::vector<std::vector<int64_t>> Hops(const space::DesignSpace& space,
                                       absl::Span<const int64_t> decisions, int step);

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_SITE_VALUES_H_

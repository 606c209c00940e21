#ifndef HONE_SERVER_SEARCH_SITE_VALUES_H_
#define HONE_SERVER_SEARCH_SITE_VALUES_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "server/space/design_space.h"

namespace hone::search {

// The legal values of sites as lists: what the field's tuners call a knob. Choices are listed as in
// the trace; tiles in lexicographic order. A tile whose sizes need not divide and that has more
// than kMostValues is listed only with sizes that make even tiles. Keeps what it listed. Used by
// one thread at a time.
class SiteValues {
 public:
  static constexpr size_t kMostValues = 4096;

  // Rows of site.count numbers, at least one. Valid until the next call.
  const std::vector<int64_t>& Of(const schedule::Site& site);
  size_t Count(const schedule::Site& site) { return Of(site).size() / site.count; }
  // The place of legal values in the list; of ones that are not listed, that of the next.
  size_t IndexOf(const schedule::Site& site, absl::Span<const int64_t> values);
  // The values at a place. REQUIRES index < Count(site).
  absl::Span<const int64_t> At(const schedule::Site& site, size_t index) {
    return absl::MakeConstSpan(Of(site)).subspan(index * site.count, site.count);
  }

 private:
  using Key = std::tuple<schedule::Site::Kind, int, int64_t, int64_t>;
  absl::flat_hash_map<Key, std::vector<int64_t>> tiles_;
};

// The legal vector that follows `wanted` as far as it can: where extents depend on earlier
// decisions, later tiles are repaired. ResourceExhausted: a constraint or a primitive forbids it.
// InvalidArgument: another length.
absl::StatusOr<std::vector<int64_t>> Fit(const space::DesignSpace& space,
                                         absl::Span<const int64_t> wanted, Rng& rng);

// Vectors that differ from legal `decisions` by one hop of `step` ≥ 1 at one site: of a tile, a
// prime factor moved `step` times from one part to another (where sizes need not divide: a size
// that makes `step` even tiles more or fewer, or is twice or half as large); of a choice, the row
// that many places away. Legal ones only, each once, in the order of the sites. None where the
// decisions are not legal.
std::vector<std::vector<int64_t>> Hops(const space::DesignSpace& space,
                                       absl::Span<const int64_t> decisions, int step);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_SITE_VALUES_H_

#include "server/tuner/search/site_values.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "common/ir/index.h"
#include "server/tuner/space/chooser.h"

namespace hone::search {
namespace {

using schedule::Site;

constexpr size_t kMostFactorizations = 1 << 16;  // listed per tile; others can only be drawn

// Lists the values of a tile, from its innermost part outwards.
class TileLister {
 public:
  TileLister(const Site& site, bool even_only)
      : site_(site), even_only_(even_only), values_(site.count, 1) {}

  // Returns false if there are more than `most` values.
  bool List(size_t most) {
    most_ = most;
    return Part(site_.count - 1, site_.extent);
  }
  std::vector<int64_t> Sorted() && {
    absl::c_sort(rows_);
    std::vector<int64_t> flat;
    for (const auto& row : rows_) flat.insert(flat.end(), row.begin(), row.end());
    return flat;
  }

 private:
  // `rest`: the number of iterations that this part and the parts outside it cover.
  bool Part(int part, int64_t rest) {
    if (part == 0) {
      if (rows_.size() >= most_) return false;
      values_[0] = rest;
      rows_.push_back(values_);
      return true;
    }
    int64_t limit = rest;
    if (part == site_.count - 1 && site_.max_inner > 0) limit = std::min(limit, site_.max_inner);
    for (int64_t size = 1; size <= limit; ++size) {
      if (site_.kind == Site::Kind::kPerfectTile && rest % size != 0) continue;
      const int64_t tiles = ir::CeilDivInt(rest, size);
      if (even_only_ && size != ir::CeilDivInt(rest, tiles)) continue;
      values_[part] = size;
      if (!Part(part - 1, tiles)) return false;
    }
    return true;
  }

  const Site& site_;
  const bool even_only_;
  size_t most_ = 0;
  std::vector<int64_t> values_;
  std::vector<std::vector<int64_t>> rows_;
};

// Repairs the wanted values during a replay, where the extents are known.
class FittingDecider final : public schedule::Decider {
 public:
  FittingDecider(absl::Span<const int64_t> wanted, Rng& rng) : wanted_(wanted), rng_(rng) {}
  absl::Status Decide(const Site& site, absl::Span<int64_t> values) override {
    std::copy_n(wanted_.begin() + site.begin, site.count, values.begin());
    space::Repair(site, rng_, values);
    return absl::OkStatus();
  }

 private:
  absl::Span<const int64_t> wanted_;
  Rng& rng_;
};

std::vector<int64_t> PrimeFactors(int64_t n) {
  std::vector<int64_t> primes;
  for (int64_t d = 2; n > 1; ++d) {
    if (d * d > n) d = n;
    if (n % d != 0) continue;
    primes.push_back(d);
    while (n % d == 0) n /= d;
  }
  return primes;
}

// Moves a prime factor `step` times between the parts from `first` on.
void FactorHops(const Site& site, absl::Span<const int64_t> values, int first, int step,
                std::vector<std::vector<int64_t>>& hops) {
  for (int from = first; from < site.count; ++from) {
    for (const int64_t prime : PrimeFactors(values[from])) {
      int64_t factor = 1;
      for (int i = 0; i < step && factor <= values[from]; ++i) factor *= prime;
      if (values[from] % factor != 0) continue;
      for (int to = first; to < site.count; ++to) {
        if (to == from) continue;
        std::vector<int64_t>& hop = hops.emplace_back(values.begin(), values.end());
        hop[from] /= factor;
        hop[to] *= factor;
      }
    }
  }
}

void SizeHops(const Site& site, absl::Span<const int64_t> values, int step,
              std::vector<std::vector<int64_t>>& hops) {
  int64_t inner = 1;  // product of the parts inside this one
  for (int part = site.count - 1; part > 0; inner *= values[part--]) {
    const int64_t total = ir::CeilDivInt(site.extent, inner);
    const int64_t tiles = ir::CeilDivInt(total, values[part]);
    const int64_t sizes[] = {ir::CeilDivInt(total, std::max<int64_t>(1, tiles - step)),
                             ir::CeilDivInt(total, tiles + step), values[part] << step,
                             std::max<int64_t>(1, values[part] >> step)};
    for (const int64_t size : sizes) {
      std::vector<int64_t>& hop = hops.emplace_back(values.begin(), values.end());
      hop[part] = size;
    }
  }
  FactorHops(site, values, /*first=*/1, step, hops);
  for (std::vector<int64_t>& hop : hops) {
    int64_t product = 1;
    for (int part = 1; part < site.count; ++part) product *= hop[part];
    hop[0] = ir::CeilDivInt(site.extent, product);
  }
}

}  // namespace

const std::vector<int64_t>& SiteValues::Of(const Site& site) {
  if (site.kind == Site::Kind::kChoice) return site.rows;
  auto [found, fresh] = tiles_.try_emplace({site.kind, site.count, site.extent, site.max_inner});
  if (fresh) {
    const bool perfect = site.kind == Site::Kind::kPerfectTile;
    TileLister all(site, /*even_only=*/false);
    if (all.List(perfect ? kMostFactorizations : kMostValues) || perfect) {
      found->second = std::move(all).Sorted();
    } else {
      TileLister even(site, /*even_only=*/true);
      even.List(kMostFactorizations);
      found->second = std::move(even).Sorted();
    }
  }
  return found->second;
}

size_t SiteValues::IndexOf(const Site& site, absl::Span<const int64_t> values) {
  if (site.kind == Site::Kind::kChoice) return site.RowOf(values);
  const size_t count = Count(site);
  const auto rows = std::views::iota(size_t{0}, count);
  const auto found = std::ranges::partition_point(rows, [&](size_t row) {
    return std::ranges::lexicographical_compare(At(site, row), values);
  });
  return std::min<size_t>(found - rows.begin(), count - 1);
}

absl::StatusOr<std::vector<int64_t>> Fit(const space::DesignSpace& space,
                                         absl::Span<const int64_t> wanted, Rng& rng) {
  if (static_cast<int>(wanted.size()) != space.decision_count())
    return absl::InvalidArgumentError("the number of decisions does not match the design space");
  if (space.IsLegal(wanted)) return std::vector<int64_t>(wanted.begin(), wanted.end());
  if (!space.Sites(wanted).ok()) {
    FittingDecider decider(wanted, rng);
    absl::StatusOr<schedule::Replayed> replayed =
        schedule::ReplayWith(space.workload(), space.trace(), decider);
    if (replayed.ok() && space.IsLegal(replayed->decisions)) return std::move(replayed->decisions);
  }
  return absl::ResourceExhaustedError("the decisions violate a constraint");
}

std::vector<std::vector<int64_t>> Hops(const space::DesignSpace& space,
                                       absl::Span<const int64_t> decisions, int step) {
  std::vector<std::vector<int64_t>> all;
  const absl::StatusOr<std::vector<Site>> sites = space.Sites(decisions);
  if (!sites.ok()) return all;
  absl::flat_hash_set<std::vector<int64_t>> seen = {
      std::vector<int64_t>(decisions.begin(), decisions.end())};
  Rng rng(/*key=*/0);  // to repair a choice whose row is no longer legal
  for (const Site& site : *sites) {
    const absl::Span<const int64_t> values = decisions.subspan(site.begin, site.count);
    std::vector<std::vector<int64_t>> hops;
    if (site.kind == Site::Kind::kPerfectTile) {
      FactorHops(site, values, /*first=*/0, step, hops);
    } else if (site.kind == Site::Kind::kTile) {
      SizeHops(site, values, step, hops);
    } else {
      const int64_t at = site.RowOf(values);
      for (const int64_t row : {at - step, at + step}) {
        if (row < 0 || row >= site.RowCount()) continue;
        const auto begin = site.rows.begin() + row * site.count;
        hops.emplace_back(begin, begin + site.count);
      }
    }
    for (const std::vector<int64_t>& hop : hops) {
      if (!site.IsLegal(hop)) continue;
      std::vector<int64_t> next(decisions.begin(), decisions.end());
      absl::c_copy(hop, next.begin() + site.begin);
      absl::StatusOr<std::vector<int64_t>> fitted = Fit(space, next, rng);
      if (fitted.ok() && seen.insert(*fitted).second) all.push_back(*std::move(fitted));
    }
  }
  return all;
}

}  // namespace hone::search

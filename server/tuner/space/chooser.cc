#include "server/tuner/space/chooser.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hone::space {
namespace {

using schedule::Site;

int64_t SmallestPrimeFactor(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return d;
  }
  return n;
}

// Returns a random prime factor of n > 1, weighted by its multiplicity.
int64_t RandomPrimeFactor(int64_t n, Rng& rng) {
  std::vector<int64_t> factors;
  while (n > 1) {
    factors.push_back(SmallestPrimeFactor(n));
    n /= factors.back();
  }
  return factors[rng.Below(factors.size())];
}

// Computes the first part of a tile from the others.
void InferOuter(const Site& site, absl::Span<int64_t> values) {
  int64_t inner = 1;
  for (int i = 1; i < site.count; ++i) inner *= values[i];
  values[0] = ir::CeilDivInt(site.extent, inner);
}

void MovePerfectTile(const Site& site, Rng& rng, absl::Span<int64_t> values) {
  constexpr int kTries = 16;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto from = static_cast<int>(rng.Below(site.count));
    auto to = static_cast<int>(rng.Below(site.count - 1));
    to += to >= from;
    if (values[from] == 1) continue;
    const int64_t factor = RandomPrimeFactor(values[from], rng);
    if (to == site.count - 1 && site.max_inner > 0 && values[to] * factor > site.max_inner) {
      continue;
    }
    values[from] /= factor;
    values[to] *= factor;
    return;
  }
  site.Sample(rng, values);
}

void MoveTile(const Site& site, Rng& rng, absl::Span<int64_t> values) {
  const auto level = 1 + static_cast<int>(rng.Below(site.count - 1));
  int64_t others = 1;  // product of the parts inside this one
  for (int i = level + 1; i < site.count; ++i) others *= values[i];
  const int64_t total =
      ir::CeilDivInt(site.extent, others);  // iterations shared by this level and the outer ones
  const int64_t tiles = ir::CeilDivInt(total, values[level]);
  switch (rng.Below(3)) {
    case 0: {  // one tile more or fewer, with even sizes
      const int64_t next = std::max<int64_t>(1, rng.Below(2) == 0 ? tiles - 1 : tiles + 1);
      values[level] = ir::CeilDivInt(total, next);
      break;
    }
    case 1: {  // double or half the size, rounded to even tiles
      const int64_t size = rng.Below(2) == 0 ? values[level] * 2 : ir::CeilDivInt(values[level], 2);
      values[level] = ir::CeilDivInt(total, ir::CeilDivInt(total, std::min(size, total)));
      break;
    }
    default:  // move a factor to or from another level
      if (site.count > 2) {
        auto other = 1 + static_cast<int>(rng.Below(site.count - 2));
        other += other >= level;
        if (values[other] > 1) {
          const int64_t factor = RandomPrimeFactor(values[other], rng);
          values[other] /= factor;
          values[level] *= factor;
          break;
        }
      }
      values[level] += rng.Below(2) == 0 ? 1 : -1;
  }
  values[level] = std::max<int64_t>(values[level], 1);
  Repair(site, rng, values);
}

}  // namespace

bool HasChoice(const Site& site) {
  if (site.kind == Site::Kind::kChoice) return site.RowCount() > 1;
  if (site.count == 1 || site.extent == 1) return false;
  return site.max_inner != 1 || site.count > 2;
}

void Repair(const Site& site, Rng& rng, absl::Span<int64_t> values) {
  if (site.IsLegal(values)) return;
  if (site.kind == Site::Kind::kChoice) {
    site.Sample(rng, values);
    return;
  }
  int64_t rest = site.extent;
  for (int i = site.count - 1; i > 0; --i) {
    int64_t wanted = std::max<int64_t>(values[i], 1);
    if (i == site.count - 1 && site.max_inner > 0) wanted = std::min(wanted, site.max_inner);
    values[i] =
        site.kind == Site::Kind::kPerfectTile ? std::gcd(wanted, rest) : std::min(wanted, rest);
    rest /= values[i];
  }
  InferOuter(site, values);
}

void Move(const Site& site, Rng& rng, absl::Span<int64_t> values) {
  if (site.kind == Site::Kind::kPerfectTile) return MovePerfectTile(site, rng, values);
  if (site.kind == Site::Kind::kTile) return MoveTile(site, rng, values);
  const int64_t rows = site.RowCount(), current = site.RowOf(values);
  int64_t next = static_cast<int64_t>(rng.Below(rows - 1));
  next += next >= current;
  if (rng.Below(2) == 0) {  // a nearby row; the rules sort the rows
    const int64_t step = 1 + static_cast<int64_t>(rng.Below(2));
    const int64_t near = rng.Below(2) == 0 ? current - step : current + step;
    if (near >= 0 && near < rows) next = near;
  }
  std::copy_n(site.rows.begin() + next * site.count, site.count, values.begin());
}

void SampleChooser::Choose(const Site& site, int, int, Rng& rng, absl::Span<int64_t> values) {
  site.Sample(rng, values);
}

MutateChooser::MutateChooser(absl::Span<const Site> sites, absl::Span<const int64_t> parent)
    : parent_(parent) {
  for (size_t i = 0; i < sites.size(); ++i) {
    if (HasChoice(sites[i])) movable_.push_back(static_cast<int>(i));
  }
}

void MutateChooser::Begin(Rng& rng) { target_ = movable_[rng.Below(movable_.size())]; }

void MutateChooser::Choose(const Site& site, int index, int attempt, Rng& rng,
                           absl::Span<int64_t> values) {
  std::copy_n(parent_.begin() + site.begin, site.count, values.begin());
  Repair(site, rng, values);
  if (!HasChoice(site) || (index != target_ && attempt == 0)) return;
  // If the constraints reject a site after the mutation, that site moves too. After two more
  // rejections, it is drawn at random.
  if (attempt <= 2) {
    Move(site, rng, values);
  } else {
    site.Sample(rng, values);
  }
}

void CrossoverChooser::Choose(const Site& site, int, int attempt, Rng& rng,
                              absl::Span<int64_t> values) {
  if (attempt > 2) {
    site.Sample(rng, values);
    return;
  }
  std::copy_n((rng.Below(2) == 0 ? a_ : b_).begin() + site.begin, site.count, values.begin());
  Repair(site, rng, values);
}

}  // namespace hone::space

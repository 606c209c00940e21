#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/search/random_draw.h"
#include "server/tuner/search/site_values.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

using schedule::Site;

constexpr int kAnsorGenerations = 5;    // including the first
constexpr double kAnsorPopulation = 4;  // times the usual one, which is 512: 2048
constexpr int kMutationTries = 8;       // until a mutation is legal

// Ansor's kinds of mutations, and how often they are tried.
enum MutationKind { kTileSize, kUnrolling, kLocation, kParallel, kMutationKinds };
constexpr std::array<double, kMutationKinds> kCpuWeights = {0.90, 0.04, 0.05, 0.01};
constexpr std::array<double, kMutationKinds> kGpuWeights = {0.90, 0.10, 0, 0};

// The kind of each decision of a space: tiles by how they are sampled, unless the first loop that a
// tile makes is a parallel one of its own; compute locations; and choices, which unroll or order
// loops, as unrolling.
std::vector<MutationKind> KindsOf(const space::DesignSpace& space) {
  std::vector<MutationKind> kinds(space.decision_count(), kUnrolling);
  absl::flat_hash_map<int, int> decision_of_loop;  // the tile decision that a loop's extent is
  for (const schedule::Instruction& instruction : space.trace().instructions) {
    const absl::string_view name = instruction.primitive->name;
    for (int d = 0; d < instruction.decision_count; ++d) {
      if (absl::StrContains(name, "tile")) kinds[instruction.decision_begin + d] = kTileSize;
      if (name == "sample_compute_location") kinds[instruction.decision_begin + d] = kLocation;
    }
    if (name == "split") {
      for (size_t r = 0; r < instruction.results.size() && r + 1 < instruction.operands.size();
           ++r) {
        const schedule::Operand& size = instruction.operands[r + 1];
        if (size.kind == schedule::Operand::Kind::kInt)
          decision_of_loop[instruction.results[r].reg] = size.reg;
      }
    }
    // A tile of a loop that is already fused only divides it among threads.
    if (name == "parallel" && decision_of_loop.contains(instruction.operands[0].reg))
      kinds[decision_of_loop[instruction.operands[0].reg]] = kParallel;
  }
  return kinds;
}

// Moves a random divisor of one part to another. A tile whose sizes need not divide its extent only
// changes its inner parts.
void MoveDivisor(const Site& site, Rng& rng, absl::Span<int64_t> values) {
  const int first = site.kind == Site::Kind::kPerfectTile ? 0 : 1;
  if (site.count - first < 2) return site.Sample(rng, values);
  std::vector<int> sources;
  for (int part = first; part < site.count; ++part) {
    if (values[part] > 1) sources.push_back(part);
  }
  if (sources.empty()) return site.Sample(rng, values);
  const int from = sources[rng.Below(sources.size())];
  int to = first + static_cast<int>(rng.Below(site.count - first - 1));
  if (to >= from) ++to;
  std::vector<int64_t> divisors;
  for (int64_t d = 2; d <= values[from]; ++d) {
    if (values[from] % d == 0) divisors.push_back(d);
  }
  const int64_t factor = divisors[rng.Below(divisors.size())];
  values[from] /= factor;
  values[to] *= factor;
}

// Mutates by Ansor's weights. Thread-compatible: the kinds of a space are found once.
class AnsorMutation {
 public:
  explicit AnsorMutation(bool gpu) : weights_(gpu ? kGpuWeights : kCpuWeights) {}

  absl::StatusOr<std::vector<int64_t>> operator()(const space::DesignSpace& space,
                                                  absl::Span<const int64_t> decisions, Rng& rng) {
    const absl::StatusOr<std::vector<Site>> sites = space.Sites(decisions);
    if (!sites.ok()) return sites.status();
    auto [kinds, fresh] = kinds_.try_emplace(&space);
    if (fresh) kinds->second = KindsOf(space);
    std::array<std::vector<const Site*>, kMutationKinds> by_kind;
    for (const Site& site : *sites) by_kind[kinds->second[site.begin]].push_back(&site);
    std::vector<double> weights(weights_.begin(), weights_.end());
    for (int kind = 0; kind < kMutationKinds; ++kind)
      weights[kind] *= by_kind[kind].empty() ? 0 : 1;
    const Roulette roulette(weights);
    for (int attempt = 0; attempt < kMutationTries && !sites->empty(); ++attempt) {
      const std::vector<const Site*>& some = by_kind[roulette.Spin(rng)];
      if (some.empty()) continue;  // all weights are 0
      const Site& site = *some[rng.Below(some.size())];
      std::vector<int64_t> wanted(decisions.begin(), decisions.end());
      const absl::Span<int64_t> values = absl::MakeSpan(wanted).subspan(site.begin, site.count);
      if (site.kind == Site::Kind::kChoice) {
        site.Sample(rng, values);
      } else {
        MoveDivisor(site, rng, values);
      }
      absl::StatusOr<std::vector<int64_t>> fitted = Fit(space, wanted, rng);
      if (fitted.ok() && !std::ranges::equal(*fitted, decisions)) return fitted;
    }
    return absl::ResourceExhaustedError("found no legal mutation");
  }

 private:
  const std::array<double, kMutationKinds> weights_;
  absl::flat_hash_map<const space::DesignSpace*, std::vector<MutationKind>> kinds_;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeAnsorSearch(SearchContext context) {
  const bool gpu = context.target.kind != target::Kind::kCpu;
  return MakeEvolutionarySearch(
      std::move(context),
      {.name = "ansor",
       .population = kAnsorPopulation,
       .generations = kAnsorGenerations,
       .mutate = [mutation = std::make_shared<AnsorMutation>(gpu)](
                     const space::DesignSpace& space, absl::Span<const int64_t> decisions,
                     Rng& rng) { return (*mutation)(space, decisions, rng); }});
}

}  // namespace hone::search

#include "server/lab/related_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/rng.h"

namespace hone::lab {
namespace {

constexpr uint64_t kDrawPurpose = 17;

}  // namespace

std::vector<search::Measured> DrawResults(std::vector<search::Measured> results, size_t count,
                                          uint64_t seed) {
  Rng rng(seed, kDrawPurpose);
  for (size_t i = results.size(); i > 1; --i) std::swap(results[i - 1], results[rng.Below(i)]);
  results.resize(std::min(results.size(), count));
  return results;
}

task::Transfer TransferFromSet(const Bench& related, const task::TaskSpaces& spaces,
                               uint64_t seed) {
  const task::RelatedWorkload workload{.results =
                                           DrawResults(related.Results(), kRelatedResults, seed)};
  return task::TransferFrom({workload}, spaces,
                            [&](const std::string& digest) { return related.SpaceText(digest); });
}

}  // namespace hone::lab

#include "common/base/nearest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone {
namespace {

// Shorter words are prefixes of too many others.
constexpr size_t kShortestBeginning = 3;

// The smallest number of insertions, deletions, replacements and swaps of adjacent letters.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  absl::c_iota(row, 0);
  for (size_t i = 0; i < a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = above[0] + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({row[j] + 1, above[j + 1] + 1, above[j] + (a[i] != b[j])});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

int Distance(absl::string_view word, absl::string_view known) {
  if (std::min(word.size(), known.size()) >= kShortestBeginning &&
      (absl::StartsWith(word, known) || absl::StartsWith(known, word))) {
    return word == known ? 0 : 1;
  }
  return EditDistance(word, known);
}

}  // namespace

std::string Nearest(absl::string_view word, absl::Span<const std::string> known) {
  std::string best;
  int best_distance = std::max<int>(2, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : known) {
    const int distance = Distance(word.substr(0, 64), candidate);
    if (distance < best_distance && 2 * distance <= static_cast<int>(candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

std::string DidYouMeanOneOf(absl::string_view word, absl::string_view what,
                            absl::Span<const std::string> known) {
  const std::string nearest = DidYouMean(word, known);
  return absl::StrCat(nearest, nearest.empty() ? "; the " : " The ", what, " are ",
                      absl::StrJoin(known, ", "));
}

}  // namespace hone

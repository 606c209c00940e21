#ifndef HONE_COMMON_BASE_NEAREST_H_
#define HONE_COMMON_BASE_NEAREST_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone {

// The element of `known` that `word` most likely stands for: few letters differ, at most half of
// them, or one of both words begins with the other. "" if none is near.
std::string Nearest(absl::string_view word, absl::Span<const std::string> known);

// The end of an error about an unknown word: "; did you mean 'matmul'?", or "" if none is near.
std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known);

}  // namespace hone

#endif  // HONE_COMMON_BASE_NEAREST_H_

#ifndef HONE_COMMON_BASE_NEAREST_H_
#define HONE_COMMON_BASE_NEAREST_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone {

// Returns the element of `known` that `word` most likely stands for: one is a prefix of the other,
// or only a few letters differ (at most half of them). "" if no element is that similar.
std::string Nearest(absl::string_view word, absl::Span<const std::string> known);

// The end of an error about an unknown word: "; did you mean 'matmul'?"; "" if none is similar.
std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known);
// The same with the list of known words: "; did you mean 'prod'? The reducers are sum, prod" or, if
// none is similar, "; the reducers are sum, prod". `what`: what they are, "reducers".
std::string DidYouMeanOneOf(absl::string_view word, absl::string_view what,
                            absl::Span<const std::string> known);

}  // namespace hone

#endif  // HONE_COMMON_BASE_NEAREST_H_

#ifndef HONE_TESTS_COMMON_SCHEDULE_REWRITE_REWRITE_CHECK_H_
#define HONE_TESTS_COMMON_SCHEDULE_REWRITE_REWRITE_CHECK_H_

#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"

namespace hone::schedule {

// REQUIRES a text that parses.
ir::Workload Parsed(const std::string& text);

enum class Fill { kInteger, kSymmetric, kPositive };  // -4..4; [-1, 1); [0, 1)
std::vector<ir::Values> RandomInputs(const ir::Workload& workload, Fill fill, Rng& rng);

// Largest errors of elements; infinite if an output has the wrong size or an element is NaN.
struct RewriteError {
  double by_element = 0;  // relative to the element's own magnitude (Σ|a·b|)
  double by_tensor = 0;   // relative to the largest magnitude of the output
};
// Interprets `rewritten` and compares it with the elements of `original`, computed without
// rounding.
RewriteError ErrorOf(const ir::Workload& original, const ir::Workload& rewritten,
                     const std::vector<ir::Values>& inputs);

// Applies a rewrite that changes only the order of summation. Expects that the result is the same
// on small integers, needs no tolerance, and prints a text that parses to the same workload.
ir::Workload ExactlyRewritten(const std::string& text, absl::string_view name,
                              absl::string_view stage, const std::vector<int64_t>& numbers);
// The error message of a rewrite, or "" if it succeeds.
std::string Refusal(const std::string& text, absl::string_view name, absl::string_view stage,
                    const std::vector<int64_t>& numbers);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_REWRITE_REWRITE_CHECK_H_

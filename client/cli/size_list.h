#ifndef HONE_CLIENT_CLI_SIZE_LIST_H_
#define HONE_CLIENT_CLI_SIZE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// Several sizes of a dimension on the command line, of networks ("--shape batch=1,4,8") and of
// operators ("m=1..64").
namespace hone::cli {

// More sizes than these would take too long to tune.
inline constexpr size_t kMostSizes = 16;

// Whether a text may be a list or a range of sizes, or a size with a weight.
bool NamesSeveralSizes(absl::string_view text);

// Sizes, and how much each counts when trials are divided among them.
struct SizeList {
  std::vector<int64_t> values;  // ascending, each once
  std::vector<double> weights;  // positive
};

// The sizes of a list, "1,4,8", a range, "1..512", or a list with ranges. A range stands for its
// ends and the powers of two between them. A size may have a weight, "1:3,8"; without one it has 1.
// InvalidArgument: a size or a weight is not a positive number, a range is empty or has a weight,
// or a size with a weight is repeated.
absl::StatusOr<SizeList> ParseSizeList(absl::string_view text);

// A dimension with its sizes.
struct NamedSizes {
  std::string name;
  std::vector<int64_t> values;
  std::vector<double> weights;
};

// InvalidArgument: there are more than kMostSizes combinations.
absl::Status CheckSizeCount(absl::Span<const NamedSizes> dimensions);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SIZE_LIST_H_

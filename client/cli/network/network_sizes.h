#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_SIZES_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/session.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/input_masks.h"

namespace hone::cli {

// One choice of all open dimensions.
struct NetworkSize {
  std::string label;   // "batch=4"; "" if --shape leaves no choice
  int64_t value = 0;   // of the dimension, if only one has several values
  double weight = 1;   // in the mean of the sizes
  NetworkWords words;  // with this choice
};

// The choices that the values of --shape leave.
struct NetworkSizes {
  NetworkWords words;             // as they were given
  std::string dimension;          // that has several values; "" if none or more than one has
  std::vector<NetworkSize> list;  // at least one; by ascending value if only one dimension varies

  bool AreSeveral() const { return list.size() > 1; }
  // The words for another value of the only dimension that varies.
  NetworkWords WordsFor(int64_t value) const;

  // Where the dimension is: the number of the shape, and its text around the value.
  size_t place = 0;
  std::string before, after;
};

// Expands lists and ranges (size_list.h): "batch=1,4,8", "length=1..512" and "x=1,4x3x224x224".
// With several such dimensions, all combinations are meant, whose weights are multiplied.
// InvalidArgument: a list or range is wrong, or there are more than kMostSizes combinations.
absl::StatusOr<NetworkSizes> ExpandSizes(const NetworkWords& words);

// The same for a command that uses what is known. Without --shape, if the model leaves the first
// dimension of its inputs open under a name, the sizes are those of the newest job that tuned
// several sizes of the network. A line on standard error tells the user. The session is opened if
// it is needed. Errors also as for Session::Open.
absl::StatusOr<NetworkSizes> ExpandKnownSizes(const Globals& globals, const NetworkWords& words,
                                              std::unique_ptr<Session>& session);

// Reads the network for each size. Warnings are printed for the first one. Errors are those of
// ReadNetwork; they name the size if there are several.
absl::StatusOr<std::vector<NetworkArgument>> ReadNetworks(const Globals& globals,
                                                          const NetworkSizes& sizes);

// Which sizes the values below them may be padded to.
struct Padding {
  // For each size: whether the values from the size before it on may be padded to it.
  std::vector<bool> pads;
  std::vector<std::vector<graph::InputMask>> masks;  // for each size, if it pads
  std::string why_not;  // why values between sizes are refused; "" if none is
};

// Proves for each size that samples do not depend on those behind them (graph/samples.h), with an
// import for each value that would be padded. REQUIRES: one dimension has several values.
Padding FindPadding(const NetworkSizes& sizes);

// How long padding the inputs to a size and copying the outputs takes, by their bytes. `other`: the
// graph for another size; inputs and outputs of equal shape are not copied.
double PaddingCopiesNs(const graph::Graph& graph, const graph::Graph& other);

// The sizes that are kept: the smallest, the largest, those that may not be padded or not to the
// next kept size, and those for which padding to it, with `copies_ns`, would take at least 5 %
// longer. REQUIRES: as many latencies and copies as sizes, ascending by size.
std::vector<size_t> KeptSizes(absl::Span<const double> latencies_ns,
                              absl::Span<const double> copies_ns, const Padding& padding);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_SIZES_H_

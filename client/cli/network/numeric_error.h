#ifndef HONE_CLIENT_CLI_NETWORK_NUMERIC_ERROR_H_
#define HONE_CLIENT_CLI_NETWORK_NUMERIC_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/output/json_output.h"
#include "client/cli/session.h"
#include "client/network/graph/graph.h"
#include "client/network/plan/network_kernel.h"

namespace hone::cli {

// The largest difference of two tensors, relative to the largest magnitude of the second one.
// Integers are subtracted exactly. Infinite if NaN or an infinity is not in the same places of
// both, or if only the second one is 0 everywhere. REQUIRES: both have the elements of `type`.
double ErrorOf(const graph::TensorType& type, absl::string_view got, absl::string_view expected);

// The largest ErrorOf an output of a network.
double LargestError(const NetworkArgument& network, absl::Span<const std::string> got,
                    absl::Span<const std::string> expected);

// How much an output may differ from the expected one. Negative: no limit of this kind. If there is
// any limit, integers must differ by at most `atol`, and booleans not at all.
struct ErrorLimits {
  double max_error = -1;  // of floats: ErrorOf
  // |got − expected| ≤ atol + rtol·|expected| for each float. NaN and infinities must be in the
  // same places. If only one is given, the other one is 0.
  double atol = -1;
  double rtol = -1;
  bool PerElement() const { return atol >= 0 || rtol >= 0; }
  bool Any() const { return max_error >= 0 || PerElement(); }
};

// How an output differs from the expected one.
struct OutputComparison {
  std::string tensor;
  double max_error = 0;  // ErrorOf
  int64_t elements = 0;
  int64_t beyond_limits = 0;  // the number of elements
  bool fails = false;
  // The element that exceeds its limit most or, without limits, differs most.
  struct Worst {
    std::vector<int64_t> index;
    std::string got, expected;
    double difference = 0;
  };
  std::optional<Worst> worst;  // nullopt: all elements are equal
};
// REQUIRES: both have the elements of `type`.
OutputComparison CompareOutput(const std::string& tensor, const graph::TensorType& type,
                               absl::string_view got, absl::string_view expected,
                               const ErrorLimits& limits);
// "Y[0, 3] is 2.5, expected 2 (differs by 0.5); 1 of the 8 elements exceeds the limits".
std::string WorstText(const OutputComparison& comparison, const ErrorLimits& limits);
// Aborted: an output fails; the message names the first such output with its worst element.
absl::Status CheckComparisons(absl::Span<const OutputComparison> comparisons,
                              const ErrorLimits& limits);
Json ComparisonsJson(absl::Span<const OutputComparison> comparisons);

// Adds --expect, --max-error, --atol and --rtol to a command.
void AddExpected(Command& command, std::vector<std::string>& paths, ErrorLimits& limits);

// The algorithm of a schedule if it needs a tolerance, such as "winograd 4"; "" if it computes the
// workload as written, or if the text is not a trace file.
std::string AlgorithmOf(absl::string_view trace);

// Counts the tasks by algorithm: "winograd 2 in 1 task, winograd 4 in 12 tasks". "" if all compute
// their workloads as written.
std::string AlgorithmsText(absl::Span<const std::string> algorithms);

// Says what other algorithms change, to append to AlgorithmsText: "; they change the outputs by at
// most …". `error`: of ErrorOfAlgorithms.
std::string ErrorText(const absl::StatusOr<double>& error);

// Runs a network with these kernels and again with strict ones in the place of those that have
// another algorithm, on the same random inputs. Returns the largest ErrorOf an output. `algorithms`
// has one for each task (AlgorithmOf). Strict kernels are the best known ones, or else those that a
// search would begin with, which are built here until `deadline`. Errors as for LoadOrDraftKernels,
// MakeRunner and RunTimed.
absl::StatusOr<double> ErrorOfAlgorithms(Session& session, const NetworkArgument& network,
                                         absl::Span<const network::NetworkKernel> kernels,
                                         absl::Span<const std::string> algorithms,
                                         absl::Time deadline);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NUMERIC_ERROR_H_

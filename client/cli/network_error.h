#ifndef HONE_CLIENT_CLI_NETWORK_ERROR_H_
#define HONE_CLIENT_CLI_NETWORK_ERROR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/network_argument.h"
#include "client/cli/session.h"
#include "client/network/network_kernel.h"
#include "common/graph/graph.h"

namespace hone::cli {

// The largest difference of two tensors, relative to the largest magnitude of the second one.
// Infinite if NaN or an infinity is not in the same places of both, or if only the second one is 0
// everywhere. REQUIRES: both have the elements of `type`.
double ErrorOf(const graph::TensorType& type, absl::string_view got, absl::string_view expected);

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

#endif  // HONE_CLIENT_CLI_NETWORK_ERROR_H_

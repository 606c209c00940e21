#ifndef HONE_CLIENT_CLI_NETWORK_OPERATOR_EXPORT_H_
#define HONE_CLIENT_CLI_NETWORK_OPERATOR_EXPORT_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/network/network_export.h"
#include "client/cli/workload_argument.h"

namespace hone::cli {

// Writes the best kernels of an operator for several sizes of a key as one library with the
// interface of an exported network (runtime/hone_network.h), which chooses the kernel at run time,
// and adds the kernels of a CPU to those that programs look up.
// Errors as for ReadWorkloadArgument, LoadNetworkKernels and ExportNetwork; NothingKnownError: a
// size has no best. Unimplemented: a kernel packs its constants ahead of time.
absl::Status ExportOperatorSizes(const Globals& globals, const OperatorSizes& sizes,
                                 double tolerance, const ExportPlace& place);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_OPERATOR_EXPORT_H_

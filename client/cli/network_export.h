#ifndef HONE_CLIENT_CLI_NETWORK_EXPORT_H_
#define HONE_CLIENT_CLI_NETWORK_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/globals.h"
#include "client/cli/network_argument.h"
#include "client/cli/network_kernels.h"

namespace hone::cli {

// Writes a network with the best known kernels into a folder; see network::ExportNetwork. Files and
// functions are named after `name`, or after the model's file if it is "". Errors as for
// ReadNetwork, LoadNetworkKernels and ExportNetwork.
absl::Status ExportNetworkFiles(const Globals& globals, const NetworkWords& words,
                                const NetworkKernelOptions& kernels, const std::string& folder,
                                const std::string& name);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_EXPORT_H_

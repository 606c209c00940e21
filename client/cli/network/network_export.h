#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_EXPORT_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/network/network_kernels.h"

namespace hone::cli {

// Where an export is written, and under which name.
struct ExportPlace {
  std::string folder;
  std::string name;        // of the files and functions; "": after what is exported
  bool overwrite = false;  // see client::ExportFolder
};

// Writes a network with the best known kernels into a folder, for one or several sizes; see
// network::ExportNetwork. Errors as
// for ReadNetwork, LoadNetworkKernels and ExportNetwork.
absl::Status ExportNetworkFiles(const Globals& globals, const NetworkWords& words,
                                const NetworkKernelOptions& kernels, const ExportPlace& place);

// Adds to the error of ExportFolder::Check what the user can do. `title`: what was to be exported.
absl::Status ExplainTaken(absl::Status taken, const std::string& title, bool may_be_named);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_EXPORT_H_

#include "client/cli/network_export.h"

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/network_kernels.h"
#include "client/lib/c_text.h"
#include "client/network/export.h"
#include "common/base/status_macros.h"

namespace hone::cli {

absl::Status ExportNetworkFiles(const Globals& globals, const NetworkWords& words,
                                const NetworkKernelOptions& kernel_options,
                                const std::string& folder, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const NetworkArgument network, ReadNetwork(globals, words));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::vector<network::NetworkKernel> kernels,
                        LoadNetworkKernels(*session, network, kernel_options));
  const std::string file = std::filesystem::path(words.path).stem().string();
  const absl::StatusOr<std::vector<network::ExportedFile>> files = network::ExportNetwork(
      network.graph, network.partition, kernels,
      {.folder = folder, .name = client::CIdentifier(name.empty() ? file : name)});
  if (!files.ok()) return WithExitCode(files.status(), kExitFailed);
  Json paths = Json::array();
  for (const network::ExportedFile& each : *files) {
    paths.push_back(each.path);
    if (!globals.json) absl::PrintF("%s  %s\n", each.path, FormatBytes(each.bytes));
  }
  if (!globals.json) return absl::OkStatus();
  return PrintJson({{"network", words.path}, {"files", std::move(paths)}});
}

}  // namespace hone::cli

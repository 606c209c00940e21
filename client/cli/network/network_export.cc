#include "client/cli/network/network_export.h"

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/bf16_choice.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/target_argument.h"
#include "client/network/export/c_text.h"
#include "client/network/export/export.h"
#include "client/network/export/export_folder.h"
#include "client/network/onnx/import.h"
#include "common/base/status_macros.h"

namespace hone::cli {

absl::Status ExplainTaken(absl::Status taken, const std::string& title, bool may_be_named) {
  if (!absl::IsInvalidArgument(taken)) return taken;
  return absl::InvalidArgumentError(absl::StrCat(
      taken.message(), "; nothing was written for ", title, ": choose another ",
      may_be_named ? "--name" : "folder with -o", ", or replace what is there with --overwrite"));
}

absl::Status ExportNetworkFiles(const Globals& globals, const NetworkWords& words,
                                const NetworkKernelOptions& kernel_options,
                                const ExportPlace& place) {
  HONE_ASSIGN_OR_RETURN(NetworkArgument network, ReadNetwork(globals, words));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  const std::filesystem::path path(words.path);
  network::ExportOptions options{
      .folder = place.folder,
      .name = client::CIdentifier(place.name.empty() ? path.stem().string() : place.name),
      .overwrite = place.overwrite};
  client::ExportFacts& facts = options.facts;
  facts.title = path.filename().string();
  HONE_ASSIGN_OR_RETURN(const Digest digest, onnx::DigestOfModel(words.path));
  facts.digest = digest.ToHex();
  const graph::Graph& graph = network.graph;
  facts.shapes = absl::StrCat(DescribeValues(graph, graph.inputs), " -> ",
                              DescribeValues(graph, graph.outputs));
  HONE_ASSIGN_OR_RETURN(facts.target, session->TargetKey());
  facts.tolerance = kernel_options.tolerance;
  // Whether the folder is free is asked before drafts are built, as if all kernels were measured.
  facts.name = options.name;
  facts.kind = "network";
  facts.kernels = facts.measured = static_cast<int64_t>(network.tasks.size());
  const std::vector<std::string> names = network::FilesOfNetwork(options.name);
  const client::ExportFolder folder(place.folder, place.overwrite);
  HONE_RETURN_IF_ERROR(ExplainTaken(folder.Check(facts, names), words.path, /*may_be_named=*/true));
  HONE_ASSIGN_OR_RETURN(NetworkKernels loaded,
                        LoadNetworkKernels(*session, network, kernel_options));
  HONE_ASSIGN_OR_RETURN(const Bf16Choice bf16,
                        ChooseBf16(*session, kernel_options, /*inputs=*/{}, network, loaded));
  const std::vector<network::NetworkKernel>& kernels = loaded.list;
  HONE_RETURN_IF_ERROR(ExplainTaken(folder.Check(network::FactsOf(options, kernels), names),
                                    words.path,
                                    /*may_be_named=*/true));
  const absl::StatusOr<std::vector<network::ExportedFile>> files =
      network::ExportNetwork(graph, network.partition, kernels, options);
  if (!files.ok()) return WithExitCode(files.status(), kExitFailed);
  PrintUnconfirmed(loaded.counts);
  PrintBf16(bf16, kernel_options.tolerance, /*given_inputs=*/false);
  Json paths = Json::array();
  for (const network::ExportedFile& each : *files) {
    paths.push_back(each.path);
    if (!globals.json) absl::PrintF("%s  %s\n", each.path, FormatBytes(each.bytes));
  }
  if (!globals.json) return absl::OkStatus();
  Json json = {{"network", words.path},
               {"schedule_count", ToJson(loaded.counts)},
               {"files", std::move(paths)}};
  if (bf16.considered) json["between"] = ToJson(bf16);
  return PrintJson(std::move(json));
}

}  // namespace hone::cli

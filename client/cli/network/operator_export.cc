#include "client/cli/network/operator_export.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/network/export/c_text.h"
#include "client/network/export/export.h"
#include "client/network/export/kernel_folder.h"
#include "client/network/graph/samples.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

// With more values than these below a size, nothing is padded to it.
constexpr int64_t kMostComparedValues = 4096;

// OK if all values below a size may be padded to it.
absl::Status CheckOperatorPadding(const Globals& globals, const OperatorSizes& sizes, int64_t size,
                                  const NetworkArgument& network) {
  if (size > kMostComparedValues) {
    return absl::FailedPreconditionError(
        absl::StrCat("there are too many values below ", size, " to check each"));
  }
  graph::SampleAxes axes;
  for (int64_t value = 1; value < size; ++value) {
    HONE_ASSIGN_OR_RETURN(
        const NetworkArgument other,
        ReadOperatorAsNetwork(globals, sizes.WordsFor(value), /*constants_are_inputs=*/true));
    if (!graph::DifferOnlyInExtents(network.tasks[0].workload, other.tasks[0].workload)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the formula depends on ", sizes.key, ", as for ", value));
    }
    HONE_ASSIGN_OR_RETURN(axes, graph::CompareSamples(network.graph, size, other.graph, value));
  }
  return graph::CheckSamplesAreIndependent(network.graph, network.partition, size, axes);
}

// The best kernel of an operator, for the folder in which programs look up kernels.
absl::StatusOr<client::FolderKernel> ForLookup(Session& session, const NetworkArgument& network,
                                               double tolerance) {
  HONE_ASSIGN_OR_RETURN(const std::vector<TaskSchedule> schedules,
                        FindSchedules(session, network.tasks, tolerance));
  const std::optional<v1::Best>& best = schedules[0].best;
  if (!best.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the best of ", network.path, " was removed meanwhile; run the command again"));
  }
  HONE_ASSIGN_OR_RETURN(record::Artifact artifact, ArtifactOf(session, *best));
  HONE_ASSIGN_OR_RETURN(target::Target target, target::Target::FromText(artifact.target));
  return client::FolderKernel{.names = {network.path},
                              .workload = network.tasks[0].workload,
                              .target = std::move(target),
                              .shared_object = std::move(artifact.shared_object),
                              .tolerance = tolerance,
                              .latency_ns = best->latency_ns(),
                              .gflops = best->gflops()};
}

}  // namespace

absl::Status ExportOperatorSizes(const Globals& globals, const OperatorSizes& sizes,
                                 double tolerance, const ExportPlace& place) {
  std::vector<NetworkArgument> networks;
  for (const int64_t value : sizes.values) {
    HONE_ASSIGN_OR_RETURN(
        networks.emplace_back(),
        ReadOperatorAsNetwork(globals, sizes.WordsFor(value), /*constants_are_inputs=*/true));
  }
  network::ExportOptions options{
      .folder = place.folder,
      .name =
          client::CIdentifier(place.name.empty() ? networks[0].tasks[0].workload.name : place.name),
      .overwrite = place.overwrite};
  HONE_RETURN_IF_ERROR(network::CheckExportName(options.name));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  std::vector<NetworkKernels> loaded;
  std::vector<double> latencies_ns, copies_ns;
  Padding padding;
  DigestBuilder digest;
  for (size_t k = 0; k < networks.size(); ++k) {
    HONE_ASSIGN_OR_RETURN(loaded.emplace_back(),
                          LoadNetworkKernels(*session, networks[k],
                                             {.tolerance = tolerance, .only_confirmed = true}));
    const network::NetworkKernel& kernel = loaded[k].list[0];
    if (kernel.packed_bytes > 0) {
      return absl::UnimplementedError(
          absl::StrCat("the kernel of ", networks[k].path,
                       " packs its constant inputs ahead of time, which a "
                       "library for several sizes cannot; export each size on its own"));
    }
    latencies_ns.push_back(kernel.latency_ns);
    copies_ns.push_back(PaddingCopiesNs(networks[k].graph, networks[k == 0 ? 1 : 0].graph));
    absl::Status proof;  // nothing is padded to a size of 1
    if (sizes.values[k] > 1) {
      proof = CheckOperatorPadding(globals, sizes, sizes.values[k], networks[k]);
    }
    padding.pads.push_back(proof.ok() && sizes.values[k] > 1);
    padding.masks.emplace_back();
    if (!proof.ok() && padding.why_not.empty()) padding.why_not = std::string(proof.message());
    digest.Add(networks[k].tasks[0].workload.StructuralDigest());
  }
  const std::vector<size_t> kept = KeptSizes(latencies_ns, copies_ns, padding);
  std::vector<network::NetworkOfSize> parts;
  std::vector<std::string> kept_values;
  for (const size_t k : kept) {
    const int64_t before = parts.empty() ? 0 : parts.back().value;
    parts.push_back({.value = sizes.values[k],
                     .graph = &networks[k].graph,
                     .partition = &networks[k].partition,
                     .kernels = loaded[k].list,
                     .pads = padding.pads[k] && sizes.values[k] > before + 1});
    kept_values.push_back(absl::StrCat(sizes.values[k]));
  }
  const std::string title = absl::StrJoin(sizes.words, " ");
  options.facts.title = title;
  options.facts.digest = digest.Finish().ToHex();
  options.facts.tolerance = tolerance;
  HONE_ASSIGN_OR_RETURN(options.facts.target, session->TargetKey());
  const client::ExportFolder folder(place.folder, place.overwrite);
  HONE_RETURN_IF_ERROR(ExplainTaken(
      folder.Check(network::FactsOf(options, parts), network::FilesOfNetwork(options)), title,
      /*may_be_named=*/true));
  client::KernelFolder lookup(place.folder);
  std::vector<client::FolderKernel> kernels;
  for (const size_t k : kept) {
    if (loaded[k].list[0].module != nullptr) continue;  // only kernels for CPUs can be looked up
    HONE_ASSIGN_OR_RETURN(kernels.emplace_back(), ForLookup(*session, networks[k], tolerance));
    HONE_RETURN_IF_ERROR(lookup.Check(kernels.back(), place.overwrite));
  }
  const absl::StatusOr<std::vector<network::ExportedFile>> files =
      network::ExportNetwork(sizes.key, parts, options);
  if (!files.ok()) return WithExitCode(files.status(), kExitFailed);
  for (const client::FolderKernel& kernel : kernels) {
    HONE_RETURN_IF_ERROR(WithExitCode(lookup.Add(kernel), kExitFailed));
  }
  if (!lookup.IsEmpty()) HONE_RETURN_IF_ERROR(WithExitCode(lookup.Commit(), kExitFailed));
  if (!padding.why_not.empty()) {
    PrintWrapped(stderr, absl::StrCat("other values of ", sizes.key,
                                      " are refused instead of padded, because ", padding.why_not));
  }
  if (globals.json) {
    Json paths = Json::array();
    for (const network::ExportedFile& each : *files) paths.push_back(each.path);
    Json list = Json::array();
    for (const network::NetworkOfSize& part : parts) {
      list.push_back({{"value", part.value}, {"pads", part.pads}});
    }
    return PrintJson({{"operator", title},
                      {"dimension", sizes.key},
                      {"sizes", std::move(list)},
                      {"files", std::move(paths)}});
  }
  for (const network::ExportedFile& each : *files) {
    absl::PrintF("%s  %s\n", each.path, FormatBytes(each.bytes));
  }
  PrintWrapped(absl::StrCat(
      "kernels   ", sizes.key, " = ", absl::StrJoin(kept_values, ", "),
      kept.size() < networks.size() ? "; padding costs less than 5 % for the other sizes" : ""));
  return absl::OkStatus();
}

}  // namespace hone::cli

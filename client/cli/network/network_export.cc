#include "client/cli/network/network_export.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/bf16_choice.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/network/network_sizes.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/target_argument.h"
#include "client/network/export/c_text.h"
#include "client/network/export/export.h"
#include "client/network/export/export_folder.h"
#include "client/network/onnx/host_tail.h"
#include "client/network/onnx/import.h"
#include "common/base/status_macros.h"

namespace hone::cli {

namespace {

// Says for which sizes a network is exported; "" for one.
std::string SizesSuffix(const NetworkSizes& sizes) {
  if (!sizes.AreSeveral()) return "";
  return absl::StrCat("; ", sizes.dimension, "=",
                      absl::StrJoin(sizes.list, ",", [](std::string* text, const auto& size) {
                        absl::StrAppend(text, size.value);
                      }));
}

// The nodes that run on the host as models; see ExportOptions.
absl::StatusOr<std::map<int64_t, std::string>> TailsOf(const std::vector<NetworkArgument>& networks,
                                                       const NetworkSizes& sizes) {
  const auto models = [&](bool fixes_shapes) -> absl::StatusOr<std::map<int64_t, std::string>> {
    std::map<int64_t, std::string> tails;
    for (size_t k = 0; k < networks.size(); ++k) {
      if (networks[k].tail == nullptr) continue;
      HONE_ASSIGN_OR_RETURN(tails[sizes.list[k].value], networks[k].tail->ToModel(fixes_shapes));
    }
    return tails;
  };
  HONE_ASSIGN_OR_RETURN(const auto open, models(/*fixes_shapes=*/networks.size() == 1));
  if (open.empty()) return open;
  const std::string& first = open.begin()->second;
  const bool are_same =
      absl::c_all_of(open, [&](const auto& tail) { return tail.second == first; });
  if (are_same && open.size() == networks.size()) return std::map<int64_t, std::string>{{0, first}};
  return models(/*fixes_shapes=*/true);
}

// The sum of the latencies of the kernels for each size. If one of them was not measured, all are
// 0, so that each size is kept.
std::vector<double> LatenciesOf(const std::vector<NetworkArgument>& networks,
                                const std::vector<NetworkKernels>& loaded) {
  std::vector<double> latencies_ns;
  for (size_t k = 0; k < networks.size(); ++k) {
    latencies_ns.push_back(SumOfKernels(networks[k], loaded[k].list));
    if (!(latencies_ns.back() > 0)) return std::vector<double>(networks.size(), 0);
  }
  return latencies_ns;
}

// What padding copies for each size.
std::vector<double> CopiesOf(const std::vector<NetworkArgument>& networks) {
  std::vector<double> copies_ns;
  for (const NetworkArgument& network : networks) {
    const size_t other = &network == networks.data() ? networks.size() - 1 : 0;
    copies_ns.push_back(PaddingCopiesNs(network.graph, networks[other].graph));
  }
  return copies_ns;
}

// Says which values the library refuses, and which sizes were left out.
void PrintSizes(const NetworkSizes& sizes, absl::Span<const network::NetworkOfSize> kept,
                const Padding& padding) {
  if (!padding.why_not.empty()) {
    PrintWrapped(stderr, absl::StrCat("other values of ", sizes.dimension,
                                      " are refused instead of padded, because ", padding.why_not));
  }
  if (kept.size() == sizes.list.size()) return;
  const auto value = [](std::string* text, const network::NetworkOfSize& size) {
    absl::StrAppend(text, size.value);
  };
  PrintWrapped(stderr, absl::StrCat("the library is for ", sizes.dimension, "=",
                                    absl::StrJoin(kept, ",", value),
                                    "; padding costs less than 5 % for the other sizes"));
}

void PrintTail(const onnx::HostTail& tail, const graph::Graph& graph,
               const network::ExportOptions& options) {
  const bool is_one = tail.nodes().size() == 1;
  std::vector<std::string> files;
  for (const auto& [size, model] : options.tails)
    files.push_back(network::TailFile(options.name, size));
  PrintWrapped(stderr, absl::StrCat(tail.Describe(), "; the library's outputs are what ",
                                    is_one ? "it reads: " : "they read: ",
                                    DescribeValues(graph, graph.outputs), "; ", options.name,
                                    ".py runs ", is_one ? "it" : "them",
                                    " with ONNX Runtime, from ", absl::StrJoin(files, ", ")));
}

}  // namespace

absl::Status ExplainTaken(absl::Status taken, const std::string& title, bool may_be_named) {
  if (!absl::IsInvalidArgument(taken)) return taken;
  return absl::InvalidArgumentError(absl::StrCat(
      taken.message(), "; nothing was written for ", title, ": choose another ",
      may_be_named ? "--name" : "folder with -o", ", or replace what is there with --overwrite"));
}

absl::Status ExportNetworkFiles(const Globals& globals, const NetworkWords& words,
                                const NetworkKernelOptions& kernel_options,
                                const ExportPlace& place) {
  const std::filesystem::path path(words.path);
  network::ExportOptions options{
      .folder = place.folder,
      .name = client::CIdentifier(place.name.empty() ? path.stem().string() : place.name),
      .overwrite = place.overwrite};
  HONE_RETURN_IF_ERROR(network::CheckExportName(options.name));
  std::unique_ptr<Session> session;
  HONE_ASSIGN_OR_RETURN(const NetworkSizes sizes, ExpandKnownSizes(globals, words, session));
  if (sizes.AreSeveral() && sizes.dimension.empty()) {
    return absl::InvalidArgumentError(
        "an export is for several sizes of one dimension; give each other dimension one value");
  }
  HONE_ASSIGN_OR_RETURN(std::vector<NetworkArgument> networks, ReadNetworks(globals, sizes));
  if (session == nullptr) {
    HONE_ASSIGN_OR_RETURN(session, Session::Open(globals));
  }
  client::ExportFacts& facts = options.facts;
  facts.title = path.filename().string();
  HONE_ASSIGN_OR_RETURN(const Digest digest, onnx::DigestOfModel(words.path));
  facts.digest = digest.ToHex();
  const graph::Graph& graph = networks.back().graph;
  facts.shapes = absl::StrCat(DescribeValues(graph, graph.inputs), " -> ",
                              DescribeValues(graph, graph.outputs), SizesSuffix(sizes));
  HONE_ASSIGN_OR_RETURN(facts.target, session->TargetKey());
  facts.tolerance = kernel_options.tolerance;
  // Whether the folder is free is asked before drafts are built, as if all kernels were measured.
  facts.name = options.name;
  facts.kind = "network";
  facts.kernels = 0;
  for (const NetworkArgument& network : networks) {
    facts.kernels += static_cast<int64_t>(network.tasks.size());
  }
  facts.measured = facts.kernels;
  HONE_ASSIGN_OR_RETURN(options.tails, TailsOf(networks, sizes));
  const std::vector<std::string> names = network::FilesOfNetwork(options);
  const client::ExportFolder folder(place.folder, place.overwrite);
  HONE_RETURN_IF_ERROR(ExplainTaken(folder.Check(facts, names), words.path, /*may_be_named=*/true));
  std::vector<NetworkKernels> loaded;
  std::vector<Bf16Choice> bf16;
  for (NetworkArgument& network : networks) {
    HONE_ASSIGN_OR_RETURN(bf16.emplace_back(), LoadWithBf16(*session, kernel_options, /*inputs=*/{},
                                                            network, loaded.emplace_back()));
  }
  Padding padding;  // of the only size
  padding.pads.resize(1);
  padding.masks.resize(1);
  if (sizes.AreSeveral()) padding = FindPadding(sizes);
  std::vector<network::NetworkOfSize> parts;
  ScheduleCounts counts;
  const std::vector<size_t> kept =
      KeptSizes(LatenciesOf(networks, loaded), CopiesOf(networks), padding);
  for (const size_t k : kept) {
    const int64_t value = sizes.list[k].value;
    parts.push_back(
        {.value = value,
         .graph = &networks[k].graph,
         .partition = &networks[k].partition,
         .kernels = loaded[k].list,
         .pads = padding.pads[k] && value > (parts.empty() ? 0 : parts.back().value) + 1,
         .masks = padding.masks[k]});
    counts.Add(loaded[k].counts);
  }
  std::erase_if(options.tails, [&](const auto& tail) {
    return tail.first != 0 && absl::c_none_of(parts, [&](const network::NetworkOfSize& part) {
             return part.value == tail.first;
           });
  });
  HONE_RETURN_IF_ERROR(ExplainTaken(folder.Check(network::FactsOf(options, parts), names),
                                    words.path,
                                    /*may_be_named=*/true));
  const absl::StatusOr<std::vector<network::ExportedFile>> files =
      network::ExportNetwork(sizes.dimension, parts, options);
  if (!files.ok()) return WithExitCode(files.status(), kExitFailed);
  PrintUnconfirmed(counts);
  for (const Bf16Choice& choice : bf16) {
    PrintBf16(choice, kernel_options.tolerance, /*given_inputs=*/false);
  }
  PrintSizes(sizes, parts, padding);
  const onnx::HostTail* const tail = networks.back().tail.get();
  if (tail != nullptr) PrintTail(*tail, graph, options);
  Json paths = Json::array();
  for (const network::ExportedFile& each : *files) {
    paths.push_back(each.path);
    if (!globals.json) absl::PrintF("%s  %s\n", each.path, FormatBytes(each.bytes));
  }
  if (!globals.json) return absl::OkStatus();
  Json json = {
      {"network", words.path}, {"schedule_count", ToJson(counts)}, {"files", std::move(paths)}};
  if (tail != nullptr) {
    json["host"] = {{"nodes", tail->nodes()}, {"outputs", tail->outputs()}};
    for (const auto& [size, model] : options.tails)
      json["host"]["files"].push_back(network::TailFile(options.name, size));
  }
  if (sizes.AreSeveral()) {
    json["dimension"] = sizes.dimension;
    if (!padding.why_not.empty()) json["not_padded_because"] = padding.why_not;
    for (size_t i = 0; i < kept.size(); ++i) {
      json["sizes"].push_back({{"value", parts[i].value}, {"pads", parts[i].pads}});
      if (bf16[kept[i]].considered) json["sizes"].back()["between"] = ToJson(bf16[kept[i]]);
    }
  } else if (bf16[0].considered) {
    json["between"] = ToJson(bf16[0]);
  }
  return PrintJson(std::move(json));
}

}  // namespace hone::cli

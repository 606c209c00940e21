#include "client/network/export/export.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/connection/program_call.h"
#include "client/network/export/c_text.h"
#include "client/network/export/embedded_files.h"
#include "client/network/export/kernel_object.h"
#include "client/network/export/network_header.h"
#include "client/network/export/program_object.h"
#include "client/network/plan/make_plan.h"
#include "client/network/plan/weights_file.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::network {
namespace {

// Prefix of all functions of the runtime.
constexpr char kRuntimePrefix[] = "hone_network_";

// What runs the kernels: "cpu", "cuda" or "opencl".
absl::string_view BackendName(absl::Span<const NetworkKernel> kernels) {
  return target::KindName(kernels.empty() ? target::Kind::kCpu : kernels[0].target.kind);
}

std::string KernelPrefix(size_t task) { return absl::StrCat("hone_job", task); }

// Links the kernels, the runtime and the plan to a shared object. `folder` is for object files.
absl::StatusOr<std::string> Link(const Plan& plan, absl::Span<const NetworkKernel> kernels,
                                 const ExportOptions& options, const std::string& folder) {
  std::vector<std::string> words = {"link", "--visible", absl::StrCat(options.name, "_")};
  const auto add = [&](absl::string_view name, absl::string_view object) {
    words.push_back(absl::StrCat(folder, "/", name));
    return WriteFileAtomically(words.back(), object, Durability::kProcess);
  };
  std::vector<std::string> prefixes;
  for (size_t t = 0; t < kernels.size(); ++t) {
    if (plan.is_gpu) break;  // the plan has the code
    if (kernels[t].object.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the object file of the kernel of ", plan.kernels[t].name, " is missing"));
    }
    prefixes.push_back(KernelPrefix(t));
    HONE_ASSIGN_OR_RETURN(const std::string object,
                          client::RenameFunctions(kernels[t].object, prefixes.back()));
    HONE_RETURN_IF_ERROR(add(absl::StrCat(prefixes.back(), ".o"), object));
  }
  const auto add_renamed = [&](absl::string_view name, absl::string_view object) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(
        const std::string renamed,
        client::RenameSymbols(object, kRuntimePrefix, absl::StrCat(options.name, "_")));
    return add(name, renamed);
  };
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (absl::EndsWith(file.name, ".o")) {
      HONE_RETURN_IF_ERROR(add_renamed(file.name, file.content));
    }
  }
  HONE_RETURN_IF_ERROR(add_renamed(
      "program.o",
      ProgramObject(absl::StrCat(kRuntimePrefix, "embedded"), plan.Encode(),
                    absl::StrCat("hone_", BackendName(kernels), "_backend"), prefixes)));
  return client::RunBuilder(words, "", options.program_dir);
}

}  // namespace

client::ExportFacts FactsOf(const ExportOptions& options, absl::Span<const NetworkKernel> kernels) {
  client::ExportFacts facts = options.facts;
  facts.name = options.name;
  facts.kind = "network";
  facts.kernels = static_cast<int64_t>(kernels.size());
  facts.measured =
      absl::c_count_if(kernels, [](const NetworkKernel& kernel) { return kernel.latency_ns > 0; });
  return facts;
}

std::vector<std::string> FilesOfNetwork(const std::string& name) {
  return {name + ".weights", absl::StrCat("lib", name, ".so"), name + ".h", name + ".hpp",
          name + ".py"};
}

absl::StatusOr<std::vector<ExportedFile>> ExportNetwork(const graph::Graph& graph,
                                                        const graph::Partition& partition,
                                                        absl::Span<const NetworkKernel> kernels,
                                                        const ExportOptions& options) {
  const std::string& name = options.name;
  if (name != client::CIdentifier(name) || absl::StartsWith(name, "hone_")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name,
                     "' cannot be the prefix of functions; a name has letters, digits and '_', and "
                     "does not begin with hone_"));
  }
  HONE_ASSIGN_OR_RETURN(PlannedNetwork planned, MakePlan(graph, partition, kernels));
  client::ExportFolder folder(options.folder, options.overwrite);
  HONE_ASSIGN_OR_RETURN(const std::string scratch, folder.Scratch());
  HONE_RETURN_IF_ERROR(
      WriteWeights(graph, kernels, absl::StrCat(scratch, "/", name, ".weights"), planned));
  HONE_ASSIGN_OR_RETURN(const std::string shared_object,
                        Link(planned.plan, kernels, options, scratch));
  const std::pair<std::string, std::string> contents[] = {
      {absl::StrCat("lib", name, ".so"), shared_object},  // Python would import NAME.so itself
      {absl::StrCat(name, ".h"), NetworkHeader(name, planned.plan)},
      {absl::StrCat(name, ".hpp"), CppHeader(name)},
      {absl::StrCat(name, ".py"), PythonModule(name, planned.plan)}};
  for (const auto& [file, content] : contents) HONE_RETURN_IF_ERROR(folder.Write(file, content));
  HONE_RETURN_IF_ERROR(folder.Add(FactsOf(options, kernels), FilesOfNetwork(name)));
  HONE_ASSIGN_OR_RETURN(const auto files, folder.Commit());
  return files[0];
}

}  // namespace hone::network

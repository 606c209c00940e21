#include "client/network/export.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/lib/c_text.h"
#include "client/lib/kernel_object.h"
#include "client/lib/program_call.h"
#include "client/network/embedded_files.h"
#include "client/network/gpu_export.h"
#include "client/network/make_plan.h"
#include "client/network/network_header.h"
#include "client/network/program_object.h"
#include "client/network/weights_file.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::network {
namespace {

namespace fs = std::filesystem;

// Prefix of all functions of the runtime.
constexpr char kRuntimePrefix[] = "hone_network_";

std::string KernelPrefix(size_t task) { return absl::StrCat("hone_task", task); }

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
      ProgramObject(absl::StrCat(kRuntimePrefix, "embedded"), plan.Encode(), prefixes)));
  return client::RunBuilder(words, "", options.program_dir);
}

// Writes the files of a network for a CPU. Returns their names.
absl::StatusOr<std::vector<std::string>> WriteCpuFiles(PlannedNetwork& planned,
                                                       const graph::Graph& graph,
                                                       absl::Span<const NetworkKernel> kernels,
                                                       const ExportOptions& options,
                                                       const std::string& scratch) {
  const std::string& name = options.name;
  const std::string weights = absl::StrCat(name, ".weights");
  HONE_RETURN_IF_ERROR(WriteWeights(graph, kernels, absl::StrCat(scratch, "/", weights), planned));
  HONE_ASSIGN_OR_RETURN(const std::string shared_object,
                        Link(planned.plan, kernels, options, scratch));
  const std::vector<std::pair<std::string, std::string>> contents = {
      {absl::StrCat("lib", name, ".so"), shared_object},  // Python would import NAME.so itself
      {absl::StrCat(name, ".h"), NetworkHeader(name, planned.plan)},
      {absl::StrCat(name, ".hpp"), CppHeader(name)},
      {absl::StrCat(name, ".py"), PythonModule(name, planned.plan)}};
  std::vector<std::string> names = {weights};
  for (const auto& [file, content] : contents) {
    names.push_back(file);
    HONE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(scratch, "/", file), content));
  }
  return names;
}

// Moves files from one folder to another one of the same file system.
absl::StatusOr<std::vector<ExportedFile>> MoveFiles(absl::Span<const std::string> names,
                                                    const std::string& from,
                                                    const std::string& to) {
  std::error_code error;
  std::vector<ExportedFile> files;
  for (const std::string& file : names) {
    const std::string path = (fs::path(to) / file).string();
    fs::rename(absl::StrCat(from, "/", file), path, error);
    if (error) return ErrnoStatus(error.value(), absl::StrCat("write ", path));
    files.push_back({path, static_cast<int64_t>(fs::file_size(path, error))});
  }
  return files;
}

// Moves the files of a network for a GPU to their folder. The kernels of an earlier export remain
// until the files that name them are replaced.
absl::StatusOr<std::vector<ExportedFile>> InstallGpuFiles(const std::vector<std::string>& names,
                                                          const std::string& scratch,
                                                          const ExportOptions& options) {
  const std::string folder = (fs::path(options.folder) / GpuKernelFolder(options.name)).string();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("make the folder ", folder));
  const std::vector<std::string> before = GpuKernelsIn(folder);
  const auto others = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return !absl::StartsWith(name, absl::StrCat(GpuKernelFolder(options.name), "/"));
  });
  const absl::Span<const std::string> all = names;
  const auto kernel_count = static_cast<size_t>(others - names.begin());
  auto files = MoveFiles(all.first(kernel_count), scratch, options.folder);
  if (!files.ok()) {
    RemoveGpuKernels(folder, before);
    return files.status();
  }
  std::vector<std::string> kernels;
  for (const ExportedFile& file : *files) kernels.push_back(file.path);
  HONE_ASSIGN_OR_RETURN(const std::vector<ExportedFile> rest,
                        MoveFiles(all.subspan(kernel_count), scratch, options.folder));
  RemoveGpuKernels(folder, kernels);
  files->insert(files->end(), rest.begin(), rest.end());
  return files;
}

}  // namespace

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
  std::error_code error;
  const std::string scratch =
      absl::StrCat(options.folder, "/.", name, "-", static_cast<int64_t>(getpid()));
  fs::create_directories(scratch, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("make the folder ", scratch));
  const absl::Cleanup remove_scratch = [&] { fs::remove_all(scratch, error); };

  const bool is_gpu = !kernels.empty() && kernels[0].module != nullptr;
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        is_gpu ? WriteGpuFiles(planned, graph, kernels, name, scratch)
                               : WriteCpuFiles(planned, graph, kernels, options, scratch));
  return is_gpu ? InstallGpuFiles(names, scratch, options)
                : MoveFiles(names, scratch, options.folder);
}

}  // namespace hone::network

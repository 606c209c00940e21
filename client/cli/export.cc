#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/known_best.h"
#include "client/lib/kernel_header.h"
#include "client/lib/kernel_object.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

struct ExportOptions {
  BestWords words;
  std::string folder;
  std::string name;
};

absl::StatusOr<std::string> Header(const ir::Workload& workload, const std::string& name,
                                   const std::string& functions, const record::Artifact& artifact,
                                   const client::Best& best) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(artifact.target));
  client::KernelFacts facts;
  facts.name = name;
  facts.functions = functions;
  facts.target_key = target.Key();
  facts.cpu_features = absl::StrJoin(target.features, " ");
  facts.workspace_bytes = best.record.result.facts.workspace_bytes;
  facts.latency_ns = client::LatencyNs(best);
  facts.gflops = best.gflops;
  return client::KernelHeader(workload, facts);
}

absl::Status Export(const Globals& globals, const ExportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const KnownBest known, LookUpBest(globals, options.words));
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ArtifactOf(*known.session, known.best));

  const ir::Workload& workload = known.argument.workload;
  const std::string name = client::CIdentifier(options.name.empty() ? workload.name : options.name);
  // --name also renames the functions.
  const std::string functions = options.name.empty() ? "" : name;
  HONE_ASSIGN_OR_RETURN(const std::string header,
                        Header(workload, name, functions, artifact, known.best));
  std::string object = artifact.object;
  if (!functions.empty()) {
    HONE_ASSIGN_OR_RETURN(object, client::RenameFunctions(artifact.object, functions));
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) {
    return WithExitCode(
        ErrnoStatus(error.value(), absl::StrCat("cannot make the folder ", options.folder)),
        kExitFailed);
  }
  const std::vector<std::pair<std::string, absl::string_view>> files = {
      {".so", artifact.shared_object},
      {".o", object},
      {".h", header},
      {".hone", artifact.workload},
      {".trace", artifact.trace},
      {".program", artifact.program}};
  std::vector<std::string> written;
  for (const auto& [suffix, content] : files) {
    const std::string path = (std::filesystem::path(options.folder) / (name + suffix)).string();
    if (absl::Status status = WriteFileAtomically(path, content); !status.ok()) {
      // Do not leave a new header beside the object of another kernel.
      for (const std::string& half : written) std::filesystem::remove(half, error);
      return WithExitCode(status, kExitFailed);
    }
    written.push_back(path);
  }
  if (globals.json) {
    Json json = BestJson(known.best);
    json["files"] = written;
    return PrintJson(json);
  }
  for (size_t i = 0; i < files.size(); ++i) {
    absl::PrintF("%s  %s\n", written[i], FormatBytes(static_cast<int64_t>(files[i].second.size())));
  }
  return absl::OkStatus();
}

}  // namespace

void AddExport(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("export", "Write the best kernel to files, exactly as it was measured");
  auto options = std::make_shared<ExportOptions>();
  AddBestWords(command, options->words);
  command.Add("-o,--output", options->folder, "DIR for the files; created if it does not exist",
              {Required()});
  command.Add(
      "--name", options->name,
      "Name of the files and prefix of the object's functions (NAME_run instead of "
      "hone_kernel_run), so that one program can link several kernels (default: the workload's "
      "name for files, hone_kernel for functions)",
      {PlainName()});
  Complete(
      command, globals,
      "Writes NAME.so and NAME.o (the kernel), NAME.h (how to call it), NAME.hone, NAME.trace and "
      "NAME.program (workload, trace and program as text). An adapted schedule (hone best "
      "--nearest) has no kernel to export: tune the operator or check the schedule first.\n\n"
      "Examples:\n"
      "  hone export matmul m=1024 n=1024 k=1024 -o kernel/\n"
      "  gcc main.c kernel/matmul.o -Ikernel -lgomp\n"
      "  hone export softmax m=1024 n=1024 -o kernel/ --name probabilities",
      [&globals, options] { return Export(globals, *options); });
}

}  // namespace hone::cli

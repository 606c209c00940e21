#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/known_best.h"
#include "client/cli/network_export.h"
#include "client/cli/network_kernels.h"
#include "client/cli/suggested_command.h"
#include "client/cli/table.h"
#include "client/cli/workload_argument.h"
#include "client/cli/workload_list.h"
#include "client/lib/c_text.h"
#include "client/lib/gpu_kernel_files.h"
#include "client/lib/kernel_folder.h"
#include "client/lib/kernel_header.h"
#include "client/lib/kernel_object.h"
#include "client/network/network_header.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/signature.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/target/gpu_module.h"
#include "common/target/gpu_sources.h"
#include "common/target/kernel_abi.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

struct ExportOptions {
  BestWords words;
  std::string file;  // a list of workloads
  std::string folder;
  std::string name;
  std::vector<std::string> shapes;
  bool overwrite = false;
  bool draft = false;  // for networks only
};

// The names of one exported kernel.
struct Naming {
  std::string files;                // the name of the files without suffix; a C identifier
  bool prefix = false;              // whether the object's functions begin with `files`
  std::vector<std::string> lookup;  // the names under which programs look up the kernel
};

// "my-net" for a workload that was read from nets/my-net.hone; "" for an operator or standard
// input.
std::string FileName(const WorkloadArgument& argument) {
  if (argument.title == "-" || !NamesFile({&argument.title, 1})) return "";
  return std::filesystem::path(argument.title).stem().string();
}

bool IsOneWord(const std::string& text) {
  return text.find_first_of(" \t\r\n") == std::string::npos;
}

Naming NamingOf(const WorkloadArgument& argument, const std::string& given) {
  Naming naming{.prefix = !given.empty()};
  naming.files = client::CIdentifier(given.empty() ? argument.workload.name : given);
  const auto add = [&](const std::string& name) {
    if (!absl::c_linear_search(naming.lookup, name)) naming.lookup.push_back(name);
  };
  const std::string file = FileName(argument);
  if (!file.empty()) {
    add(client::CIdentifier(file));
    if (IsOneWord(file)) add(file);
  } else {
    add(argument.title == "-" ? naming.files : argument.title);
  }
  if (!given.empty()) add(given);
  return naming;
}

// The names of a list's kernels. InvalidArgument: two kernels would get the same name.
absl::StatusOr<std::vector<Naming>> NamesOf(const std::vector<WorkloadArgument>& arguments) {
  std::vector<Naming> names;
  std::map<std::string, const WorkloadArgument*> owners;
  for (const WorkloadArgument& argument : arguments) {
    Naming& naming = names.emplace_back(NamingOf(argument, ""));
    const std::string file = FileName(argument);
    naming.files = client::CIdentifier(file.empty() ? argument.title : file);
    naming.prefix = true;
    const auto [owner, added] = owners.emplace(naming.files, &argument);
    if (!added && owner->second->text != argument.text) {
      return absl::InvalidArgumentError(
          absl::StrCat(owner->second->title, " and ", argument.title, " would both be named ",
                       naming.files, "; rename a file, or export one of them alone with --name"));
    }
  }
  return names;
}

absl::StatusOr<std::string> Header(const ir::Workload& workload, const Naming& naming,
                                   const target::Target& target, const client::Best& best) {
  client::KernelFacts facts;
  facts.name = naming.files;
  if (naming.prefix) facts.functions = naming.files;
  facts.target_key = target.Key();
  facts.cpu_features = absl::StrJoin(target.features, " ");
  facts.latency_ns = client::LatencyNs(best);
  facts.gflops = best.gflops;
  return client::KernelHeader(workload, facts);
}

struct WrittenFile {
  std::string path;
  size_t bytes = 0;
};

std::string PathOf(const std::string& folder, const Naming& naming, const char* suffix) {
  return (std::filesystem::path(folder) / (naming.files + suffix)).string();
}

// The files of an export.
std::vector<const char*> SuffixesOf(target::Kind kind) {
  switch (kind) {
    case target::Kind::kCpu:
      return {".so", ".o", ".h", ".trace", ".program"};
    case target::Kind::kCuda:
      return {".cubin", ".ptx", ".cu", ".json", ".h", "_host.c", ".trace", ".program"};
    case target::Kind::kOpenCl:
      return {".cl", ".json", ".h", "_host.c", ".trace", ".program"};
  }
  return {};
}

// Checks that an export under this name replaces only files of the same workload and kind of
// device. InvalidArgument: the folder has other files with this name.
absl::Status CheckFree(const WorkloadArgument& argument, const Naming& naming,
                       const ExportOptions& options, target::Kind kind) {
  const std::string& folder = options.folder;
  const std::string workload = PathOf(folder, naming, ".hone");
  std::error_code unknown;
  std::string found;
  if (const absl::StatusOr<std::string> text = ReadFile(workload); text.ok()) {
    const absl::StatusOr<ir::Workload> other = ir::ParseWorkload(*text);
    if (other.ok() && other->StructuralDigest() == argument.workload.StructuralDigest()) {
      // Kernels of every kind have a header NAME.h, so kernels of two kinds cannot share a name.
      constexpr std::pair<target::Kind, const char*> kKernels[] = {{target::Kind::kCpu, ".o"},
                                                                   {target::Kind::kCuda, ".cubin"},
                                                                   {target::Kind::kOpenCl, ".cl"}};
      for (const auto& [other_kind, suffix] : kKernels) {
        const std::string path = PathOf(folder, naming, suffix);
        if (other_kind == kind || !std::filesystem::exists(path, unknown)) continue;
        found = absl::StrCat(path, " is a kernel for ",
                             other_kind == target::Kind::kCpu    ? "a CPU"
                             : other_kind == target::Kind::kCuda ? "an NVIDIA GPU"
                                                                 : "an OpenCL device");
      }
      if (found.empty()) return absl::OkStatus();
    } else {
      found = absl::StrCat(workload, " is of another workload",
                           other.ok() ? absl::StrCat(", ", ir::SignatureOf(*other)) : "");
    }
  } else {
    for (const char* const suffix : SuffixesOf(kind)) {
      const std::string path = PathOf(folder, naming, suffix);
      if (std::filesystem::exists(path, unknown)) found = absl::StrCat(path, " exists");
    }
  }
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(found, "; nothing was written for ",
                                                 argument.title, ": choose another ",
                                                 options.file.empty() ? "--name" : "folder with -o",
                                                 ", or replace what is there with --overwrite"));
}

using Files = std::vector<std::pair<const char*, std::string>>;  // by suffix

absl::StatusOr<Files> CpuFiles(const WorkloadArgument& argument, const Naming& naming,
                               const target::Target& target, const client::Best& best,
                               const record::Artifact& artifact) {
  // Kernels of ABI 1 do not have this function, and cannot be called as the header declares.
  if (!absl::StrContains(artifact.object, target::kThreadsSymbol)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel of ", argument.title,
                     " was built by an older version and has another interface; ",
                     SuggestedCommandForTarget("revalidate"), " builds it again"));
  }
  std::string object = artifact.object;
  if (naming.prefix) {
    HONE_ASSIGN_OR_RETURN(object, client::RenameFunctions(artifact.object, naming.files));
  }
  HONE_ASSIGN_OR_RETURN(std::string header, Header(argument.workload, naming, target, best));
  return Files{{".so", artifact.shared_object}, {".o", std::move(object)}, {".h", header}};
}

absl::StatusOr<Files> GpuFiles(const WorkloadArgument& argument, const Naming& naming,
                               const target::Target& target, const client::Best& best,
                               const record::Artifact& artifact) {
  HONE_ASSIGN_OR_RETURN(const target::GpuModule module,
                        target::GpuModule::Decode(artifact.shared_object));
  const client::GpuKernelFacts facts{.name = naming.files,
                                     .target_key = target.Key(),
                                     .latency_ns = client::LatencyNs(best),
                                     .gflops = best.gflops};
  Files files{{".json", module.LaunchesAsJson() + "\n"},
              {".h", client::GpuKernelHeader(argument.workload, module, facts)},
              {"_host.c", client::GpuHostProgram(argument.workload, module, facts)}};
  if (module.kind == target::Kind::kOpenCl) {
    files.emplace_back(".cl", module.code);
    return files;
  }
  HONE_ASSIGN_OR_RETURN(const target::GpuSources sources,
                        target::GpuSources::Decode(artifact.object));
  files.insert(files.end(),
               {{".cubin", module.code}, {".ptx", sources.assembly}, {".cu", sources.source}});
  return files;
}

// Writes the files of a kernel, and its workload, trace and program as text. If one cannot be
// written, removes those that were written before.
absl::StatusOr<std::vector<WrittenFile>> WriteFiles(const std::string& folder, const Naming& naming,
                                                    const record::Artifact& artifact, Files files) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return WithExitCode(ErrnoStatus(error.value(), absl::StrCat("cannot make the folder ", folder)),
                        kExitFailed);
  }
  files.insert(
      files.end(),
      {{".hone", artifact.workload}, {".trace", artifact.trace}, {".program", artifact.program}});
  std::vector<WrittenFile> written;
  for (const auto& [suffix, content] : files) {
    const std::string path = PathOf(folder, naming, suffix);
    if (absl::Status status = WriteFileAtomically(path, content); !status.ok()) {
      // Do not leave a new header beside the object of another kernel.
      for (const WrittenFile& half : written) std::filesystem::remove(half.path, error);
      return WithExitCode(status, kExitFailed);
    }
    written.push_back({path, content.size()});
  }
  return written;
}

// Writes the files of the kernel of a best. Adds a kernel for a CPU to `folder`, where programs
// look it up; the caller commits `folder`.
absl::StatusOr<std::vector<WrittenFile>> WriteKernel(Session& session,
                                                     const WorkloadArgument& argument,
                                                     const Naming& naming, const client::Best& best,
                                                     const ExportOptions& options,
                                                     client::KernelFolder& folder) {
  HONE_ASSIGN_OR_RETURN(record::Artifact artifact, ArtifactOf(session, best));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(artifact.target));
  const bool cpu = target.kind == target::Kind::kCpu;
  if (!options.overwrite) {
    HONE_RETURN_IF_ERROR(CheckFree(argument, naming, options, target.kind));
  }
  HONE_ASSIGN_OR_RETURN(Files files, cpu ? CpuFiles(argument, naming, target, best, artifact)
                                         : GpuFiles(argument, naming, target, best, artifact));
  HONE_ASSIGN_OR_RETURN(std::vector<WrittenFile> written,
                        WriteFiles(options.folder, naming, artifact, std::move(files)));
  if (!cpu) return written;  // only kernels for CPUs use threads and can be looked up
  const std::string threads = (std::filesystem::path(options.folder) / "hone_threads.c").string();
  const std::string source = network::ThreadsSource();
  HONE_RETURN_IF_ERROR(WithExitCode(WriteFileAtomically(threads, source), kExitFailed));
  written.push_back({threads, source.size()});
  HONE_RETURN_IF_ERROR(WithExitCode(
      folder.Add({naming.lookup, argument.workload, target, std::move(artifact.shared_object),
                  options.words.tolerance, client::LatencyNs(best), best.gflops}),
      kExitFailed));
  return written;
}

Json ExportJson(const client::Best& best, const std::vector<WrittenFile>& files) {
  Json json = BestJson(best);
  for (const WrittenFile& file : files) json["files"].push_back(file.path);
  return json;
}

absl::Status ExportOne(const Globals& globals, const ExportOptions& options) {
  if (NamesNetwork(options.words.words)) {
    return ExportNetworkFiles(globals, {options.words.words[0], options.shapes},
                              {options.words.tolerance, options.draft, kDraftHint}, options.folder,
                              options.name);
  }
  HONE_ASSIGN_OR_RETURN(const KnownBest known, LookUpBest(globals, options.words));
  client::KernelFolder folder(options.folder);
  HONE_ASSIGN_OR_RETURN(
      const std::vector<WrittenFile> files,
      WriteKernel(*known.session, known.argument, NamingOf(known.argument, options.name),
                  known.best, options, folder));
  // Empty for a GPU, because only kernels for CPUs can be looked up.
  if (!folder.IsEmpty()) HONE_RETURN_IF_ERROR(WithExitCode(folder.Commit(), kExitFailed));
  if (globals.json) return PrintJson(ExportJson(known.best, files));
  for (const WrittenFile& file : files) {
    absl::PrintF("%s  %s\n", file.path, FormatBytes(static_cast<int64_t>(file.bytes)));
  }
  return absl::OkStatus();
}

// Exports the best known kernels of a list of workloads. The lookup index changes once, at the end.
absl::Status ExportList(const Globals& globals, const ExportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::vector<WorkloadArgument> arguments,
                        ReadWorkloadList(options.file));
  HONE_ASSIGN_OR_RETURN(const std::vector<Naming> names, NamesOf(arguments));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetKey());
  client::KernelFolder folder(options.folder);
  Json list = Json::array();
  Table table({Left("workload"), Right("latency"), Right("GFLOP/s"), Left("files")});
  UnconfirmedJobs jobs(*session, target, options.words.tolerance);
  auto naming = names.begin();
  const auto add = [&](const WorkloadArgument& argument,
                       const std::optional<client::Best>& best) -> absl::Status {
    const Naming& name = *naming++;
    if (!best.has_value()) {
      const std::string unconfirmed = jobs.Find(argument);
      list.push_back({{"workload", argument.text},
                      {"target", target},
                      {"best", nullptr},
                      {"unconfirmed_job", UnknownJson(unconfirmed)}});
      table.AddRow({argument.title, "-", "-", UnknownText(unconfirmed)});
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<WrittenFile> files,
                          WriteKernel(*session, argument, name, *best, options, folder));
    list.push_back(ExportJson(*best, files));
    table.AddRow({argument.title, FormatLatency(client::LatencyNs(*best)),
                  FormatGflops(best->gflops), name.files});
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(
      const std::vector<std::string> unknown,
      VisitBests(*session, arguments, options.words.tolerance, /*nearest=*/false, add));
  if (!folder.IsEmpty()) {
    HONE_RETURN_IF_ERROR(WithExitCode(folder.Commit(), kExitFailed));
  }
  const absl::Status result = CheckAllKnown(*session, unknown, arguments.size(), options.file,
                                            target, options.words.tolerance);
  if (globals.json)
    return PrintJson({{"kernels", std::move(list)}, {"unknown", unknown.size()}}, result);
  table.Print();
  return result;
}

}  // namespace

void AddExport(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("export", "Write the best kernel to files, exactly as it was measured");
  auto options = std::make_shared<ExportOptions>();
  AddBestWords(command, options->words, /*required=*/false, Names::kOperatorOrNetwork);
  command.Add("--file", options->file,
              "LIST of workloads, one on each line, whose kernels are exported; - reads standard "
              "input. Names of files in it are relative to the current folder. The files and "
              "functions are named after the words or the file of each "
              "workload",
              {NotEmpty(), Excludes("operator")});
  command.Add("-o,--output", options->folder, "DIR for the files; created if it does not exist",
              {Required()});
  command.Add(
      "--name", options->name,
      "Name of the files and prefix of the object's functions (NAME_run instead of "
      "hone_kernel_run), so that one program can link several kernels (default: the workload's "
      "name for files, hone_kernel for functions)",
      {PlainName(), Excludes("--file")});
  AddShapes(command, options->shapes);
  command.AddFlag("--overwrite", options->overwrite,
                  "Replace files of the same name that are of another workload");
  AddDraft(command, options->draft);
  Complete(
      command, globals,
      "Writes NAME.so and NAME.o (the kernel), NAME.h (how to call it), "
      "hone_threads.c (threads for programs that have none), NAME.hone, NAME.trace and "
      "NAME.program (workload, trace and program as text), and adds the kernel to lookup/, where "
      "programs find the kernel of a workload at run time with libhone_lookup (hone_lookup.h). "
      "For a GPU, the kernel is NAME.cl (OpenCL C) or, with CUDA, NAME.cubin, NAME.ptx and "
      "NAME.cu; NAME.json and NAME.h describe the launches, and NAME_host.c is a program that runs "
      "the kernel. Kernels for GPUs are not added to lookup/. "
      "Several exports may share a folder. Files of another workload, such as another shape, are "
      "only replaced with --overwrite. An adapted schedule (hone best --nearest) has no kernel to "
      "export: first tune the operator, or measure the schedule with hone schedule --check. For a "
      "workload of a --file without a confirmed schedule, the list names the job that measured it, "
      "if any (unconfirmed_job in JSON).\n\n"
      "A network, FILE.onnx, is exported as libNAME.so (all kernels and the code that runs them), "
      "NAME.weights, NAME.h for C and C++, and NAME.py for Python; for a GPU, as NAME_kernels/ "
      "(the "
      "code of all kernels), NAME.weights, NAME.json and NAME.h (buffers and launches), and "
      "NAME_host.c, a program that runs the network.\n\n"
      "Examples:\n"
      "  hone export matmul m=1024 n=1024 k=1024 -o kernel/\n"
      "  gcc main.c kernel/matmul.o kernel/hone_threads.c -Ikernel\n"
      "  hone export softmax m=1024 n=1024 -o kernel/ --name probabilities\n"
      "  hone export matmul m=1024 n=1024 k=1024 --target cuda -o gpu/\n"
      "  hone export --file network.txt -o kernels/\n"
      "  hone export resnet50.onnx -o resnet50/\n"
      "  hone export resnet50.onnx -o untuned/ --draft",
      [&globals, options]() -> absl::Status {
        if ((options->draft || !options->shapes.empty()) && !NamesNetwork(options->words.words)) {
          return absl::InvalidArgumentError("--draft and --shape are for networks (FILE.onnx)");
        }
        const std::string& name = options->name;
        if (!name.empty() && client::CIdentifier(name)[0] != name[0]) {
          return absl::InvalidArgumentError(absl::StrCat(
              "--name ", name, ": a name in C must not begin with a digit; try --name k", name));
        }
        return options->file.empty() ? ExportOne(globals, *options) : ExportList(globals, *options);
      });
}

}  // namespace hone::cli

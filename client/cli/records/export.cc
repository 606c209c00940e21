#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
#include "client/cli/network/bf16_choice.h"
#include "client/cli/network/network_export.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/network/operator_export.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/records/known_best.h"
#include "client/cli/suggested_command.h"
#include "client/cli/workload_argument.h"
#include "client/connection/program_call.h"
#include "client/network/export/c_text.h"
#include "client/network/export/export_folder.h"
#include "client/network/export/gpu_kernel_files.h"
#include "client/network/export/kernel_folder.h"
#include "client/network/export/kernel_header.h"
#include "client/network/export/kernel_object.h"
#include "client/network/export/network_header.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"
#include "common/record/artifact.h"
#include "common/target/gpu_module.h"
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
  std::string between = "auto";
};

// The names of one exported kernel.
struct Naming {
  std::string files;  // the name of the files without suffix, and the prefix of the object's
                      // functions; a C identifier
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
  Naming naming;
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
    const auto [owner, added] = owners.emplace(naming.files, &argument);
    if (!added && owner->second->text != argument.text) {
      return absl::InvalidArgumentError(
          absl::StrCat(owner->second->title, " and ", argument.title, " would both be named ",
                       naming.files, "; rename a file, or export one of them alone with --name"));
    }
  }
  return names;
}

// The source of the threads, which all kernels for CPUs in a folder share.
constexpr char kThreadsFile[] = "hone_threads.c";

// The words of workloads, for a command.
std::vector<std::string> WordsOf(const std::vector<WorkloadArgument>& arguments) {
  std::vector<std::string> words;
  for (const WorkloadArgument& argument : arguments) words.push_back(argument.words);
  return words;
}

absl::StatusOr<client::KernelFacts> FactsOf(const Naming& naming, const ir::Workload& workload,
                                            const target::Target& target, const v1::Best& best,
                                            const record::Artifact& artifact) {
  client::KernelFacts facts;
  facts.name = naming.files;
  facts.target_key = target.Key();
  facts.cpu_features = absl::StrJoin(target.features, " ");
  facts.latency_ns = best.latency_ns();
  facts.gflops = best.gflops();
  HONE_ASSIGN_OR_RETURN(facts.reads, record::InputsRead(artifact, workload.Inputs().size()));
  facts.accepts_null = absl::StrContains(artifact.object, target::kUsesSymbol);
  return facts;
}

// Links object files to a shared object whose functions begin with NAME_. The kernel's code is that
// of its object file. `folder` is for object files.
absl::StatusOr<std::string> LinkObjects(const std::string& name,
                                        absl::Span<const std::string> objects,
                                        const std::string& folder) {
  std::vector<std::string> words = {"link", "--visible", name + "_"};
  for (const std::string& object : objects) {
    const std::string file = absl::StrCat(name, "_part", words.size(), ".o");
    words.push_back((std::filesystem::path(folder) / file).string());
    HONE_RETURN_IF_ERROR(WriteFileAtomically(words.back(), object, Durability::kProcess));
  }
  return client::RunBuilder(words, "");
}

using Files = std::vector<std::pair<std::string, std::string>>;  // by name

absl::StatusOr<Files> CpuFiles(const WorkloadArgument& argument, const Naming& naming,
                               const target::Target& target, const v1::Best& best,
                               const record::Artifact& artifact, const std::string& scratch) {
  HONE_ASSIGN_OR_RETURN(std::string object, client::RenameFunctions(artifact.object, naming.files));
  HONE_ASSIGN_OR_RETURN(const client::KernelFacts facts,
                        FactsOf(naming, argument.workload, target, best, artifact));
  // The measured file has functions of the same names as that of every other kernel.
  HONE_ASSIGN_OR_RETURN(std::string shared_object, LinkObjects(naming.files, {object}, scratch));
  Files files{{naming.files + ".so", std::move(shared_object)},
              {naming.files + ".o", object},
              {naming.files + ".h", client::KernelHeader(argument.workload, facts)},
              {naming.files + "_example.c", client::KernelExample(argument.workload, facts)},
              {kThreadsFile, network::ThreadsSource()}};
  const std::string pool = network::ThreadsObject(target.arch);
  if (pool.empty()) return files;
  // With Hone's threads as NAME_pool, for Python.
  HONE_ASSIGN_OR_RETURN(const std::string threads,
                        client::RenameSymbols(pool, "hone_threads", naming.files + "_pool"));
  HONE_ASSIGN_OR_RETURN(std::string linked, LinkObjects(naming.files, {object, threads}, scratch));
  files.emplace_back(absl::StrCat("lib", naming.files, ".so"), std::move(linked));
  files.emplace_back(naming.files + "_kernel.py", client::KernelModule(argument.workload, facts));
  return files;
}

absl::StatusOr<Files> GpuFiles(const WorkloadArgument& argument, const Naming& naming,
                               const target::Target& target, const v1::Best& best,
                               const record::Artifact& artifact) {
  HONE_ASSIGN_OR_RETURN(const target::GpuModule module,
                        target::GpuModule::Decode(artifact.shared_object));
  client::GpuKernelFacts facts{.name = naming.files,
                               .target_key = target.Key(),
                               .latency_ns = best.latency_ns(),
                               .gflops = best.gflops()};
  HONE_ASSIGN_OR_RETURN(facts.reads,
                        record::InputsRead(artifact, argument.workload.Inputs().size()));
  const std::string& name = naming.files;
  Files files{{name + ".json", module.LaunchesAsJson() + "\n"},
              {name + ".h", client::GpuKernelHeader(argument.workload, module, facts)},
              {name + "_host.c", client::GpuHostProgram(argument.workload, module, facts)}};
  if (module.kind == target::Kind::kOpenCl) {
    files.emplace_back(name + ".cl", module.code);
    return files;
  }
  HONE_ASSIGN_OR_RETURN(const target::GpuSources sources,
                        target::GpuSources::Decode(artifact.object));
  files.insert(files.end(), {{name + ".cubin", module.code},
                             {name + ".ptx", sources.assembly},
                             {name + ".cu", sources.source}});
  return files;
}

// Collects the kernels of one command, and writes all of them or none.
class KernelExports {
 public:
  KernelExports(Session& session, const ExportOptions& options)
      : session_(session),
        options_(options),
        files_(options.folder, options.overwrite, {kThreadsFile}),
        lookup_(options.folder) {}

  // Adds the kernel of a best. Nothing is in its place before Commit.
  absl::Status Add(const WorkloadArgument& argument, const Naming& naming, const v1::Best& best) {
    if (!names_.insert(naming.files).second) return absl::OkStatus();  // a workload given twice
    HONE_ASSIGN_OR_RETURN(record::Artifact artifact, ArtifactOf(session_, best));
    HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(artifact.target));
    const bool cpu = target.kind == target::Kind::kCpu;
    const absl::StatusOr<std::string> scratch = files_.Scratch();
    if (!scratch.ok()) return WithExitCode(scratch.status(), kExitFailed);
    HONE_ASSIGN_OR_RETURN(Files files,
                          cpu ? CpuFiles(argument, naming, target, best, artifact, *scratch)
                              : GpuFiles(argument, naming, target, best, artifact));
    files.insert(files.end(), {{naming.files + ".hone", artifact.workload},
                               {naming.files + ".trace", artifact.trace},
                               {naming.files + ".program", artifact.program}});
    const client::ExportFacts facts = {.name = naming.files,
                                       .title = ir::SignatureText(argument.workload),
                                       .digest = argument.workload.StructuralDigest().ToHex(),
                                       .target = target.Key(),
                                       .tolerance = options_.words.tolerance};
    std::vector<std::string> names;
    for (const auto& [name, content] : files) names.push_back(name);
    const bool may_be_named = options_.file.empty();
    HONE_RETURN_IF_ERROR(ExplainTaken(files_.Check(facts, names), argument.title, may_be_named));
    if (cpu) {  // only kernels for CPUs can be looked up
      kernels_.push_back({naming.lookup, argument.workload, target,
                          std::move(artifact.shared_object), options_.words.tolerance,
                          best.latency_ns(), best.gflops()});
      HONE_RETURN_IF_ERROR(ExplainTaken(lookup_.Check(kernels_.back(), options_.overwrite),
                                        argument.title, may_be_named));
    }
    for (size_t i = 0; i < files.size(); ++i) {
      HONE_RETURN_IF_ERROR(WithExitCode(files_.Write(names[i], files[i].second), kExitFailed));
    }
    return WithExitCode(files_.Add(facts, std::move(names)), kExitFailed);
  }

  // Moves all files to their places. Returns those of each kernel, in the order of Add.
  absl::StatusOr<std::vector<std::vector<client::ExportedFile>>> Commit() {
    auto written = files_.Commit();
    if (!written.ok()) return WithExitCode(written.status(), kExitFailed);
    for (const client::FolderKernel& kernel : kernels_) {
      HONE_RETURN_IF_ERROR(WithExitCode(lookup_.Add(kernel), kExitFailed));
    }
    // The index changes once, at the end.
    if (!lookup_.IsEmpty()) HONE_RETURN_IF_ERROR(WithExitCode(lookup_.Commit(), kExitFailed));
    return written;
  }

 private:
  Session& session_;
  const ExportOptions& options_;
  client::ExportFolder files_;
  client::KernelFolder lookup_;
  std::vector<client::FolderKernel> kernels_;
  std::set<std::string> names_;
};

Json ExportJson(const v1::Best& best, const std::vector<client::ExportedFile>& files) {
  Json json = BestJson(best);
  for (const client::ExportedFile& file : files) json["files"].push_back(file.path);
  return json;
}

absl::Status ExportOne(const Globals& globals, const ExportOptions& options,
                       WorkloadArgument argument) {
  HONE_ASSIGN_OR_RETURN(const KnownBest known,
                        LookUpBest(globals, std::move(argument), options.words.tolerance));
  KernelExports exports(*known.session, options);
  HONE_RETURN_IF_ERROR(
      exports.Add(known.argument, NamingOf(known.argument, options.name), known.best));
  HONE_ASSIGN_OR_RETURN(const auto written, exports.Commit());
  if (globals.json) return PrintJson(ExportJson(known.best, written[0]));
  for (const client::ExportedFile& file : written[0]) {
    absl::PrintF("%s  %s\n", file.path, FormatBytes(file.bytes));
  }
  return absl::OkStatus();
}

// Exports the best known kernels of several workloads.
absl::Status ExportList(const Globals& globals, const ExportOptions& options,
                        const std::vector<WorkloadArgument>& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Naming> names, NamesOf(arguments));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetKey());
  KernelExports exports(*session, options);
  std::vector<std::optional<v1::Best>> bests;
  const auto add = [&](const WorkloadArgument& argument,
                       const std::optional<v1::Best>& best) -> absl::Status {
    const Naming& naming = names[bests.size()];
    bests.push_back(best);
    return best.has_value() ? exports.Add(argument, naming, *best) : absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(
      const std::vector<std::string> unknown,
      VisitBests(*session, arguments, options.words.tolerance, /*nearest=*/false, add));
  HONE_ASSIGN_OR_RETURN(const auto written, exports.Commit());
  Json list = Json::array();
  Table table({Left("workload"), Right("latency"), Right("GFLOP/s"), Left("files")});
  UnconfirmedJobs jobs(*session, target, options.words.tolerance);
  std::map<std::string, size_t> places;  // of the exports, by the names of their files
  for (size_t i = 0; i < bests.size(); ++i) {
    const WorkloadArgument& argument = arguments[i];
    if (!bests[i].has_value()) {
      const std::string unconfirmed = jobs.Find(argument).job;
      list.push_back({{"workload", argument.text},
                      {"target", target},
                      {"best", nullptr},
                      {"unconfirmed_job", UnknownJson(unconfirmed)}});
      table.AddRow({argument.title, "-", "-", UnknownText(unconfirmed)});
      continue;
    }
    const size_t place = places.emplace(names[i].files, places.size()).first->second;
    list.push_back(ExportJson(*bests[i], written[place]));
    table.AddRow({argument.title, FormatLatency(bests[i]->latency_ns()),
                  FormatGflops(bests[i]->gflops()), names[i].files});
  }
  const absl::Status result =
      CheckAllKnown(*session, unknown, arguments.size(), options.file, target,
                    options.words.tolerance, absl::StrJoin(WordsOf(arguments), " "));
  if (globals.json)
    return PrintJson({{"kernels", std::move(list)}, {"unknown", unknown.size()}}, result);
  table.Print();
  return result;
}

absl::Status Export(const Globals& globals, const ExportOptions& options) {
  const std::string& name = options.name;
  if (!name.empty() && client::CIdentifier(name)[0] != name[0]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--name ", name, ": a name in C must not begin with a digit; try --name k", name));
  }
  if (NamesNetwork(options.words.words)) {
    return ExportNetworkFiles(
        globals, {options.words.words[0], options.shapes},
        {.tolerance = options.words.tolerance,
         .draft = options.draft,
         .hint = kDraftHint,
         .between = options.between},
        {.folder = options.folder, .name = name, .overwrite = options.overwrite});
  }
  if (options.draft || !options.shapes.empty()) {
    return absl::InvalidArgumentError("--draft and --shape are for networks (FILE.onnx)");
  }
  if (options.file.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::optional<OperatorSizes> sizes,
                          ReadOperatorSizes(options.words.words));
    if (sizes.has_value()) {
      return ExportOperatorSizes(
          globals, *sizes, options.words.tolerance,
          {.folder = options.folder, .name = name, .overwrite = options.overwrite});
    }
  }
  HONE_ASSIGN_OR_RETURN(
      std::vector<WorkloadArgument> arguments,
      options.file.empty() ? ReadWorkloads(options.words.words) : ReadWorkloadList(options.file));
  // A list names its files in the same way, however many workloads it has.
  if (!options.file.empty() || arguments.size() > 1) {
    if (name.empty()) return ExportList(globals, options, arguments);
    return absl::InvalidArgumentError(
        absl::StrCat("--name is for one workload, and ", arguments.size(),
                     " are given, whose files are named after their words"));
  }
  return ExportOne(globals, options, std::move(arguments[0]));
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
      "Name of the files and prefix of the object's functions (NAME_run), so that one program can "
      "link several kernels (default: the workload's name)",
      {PlainName(), Excludes("--file")});
  AddShapes(command, options->shapes);
  command.AddFlag("--overwrite", options->overwrite,
                  "Replace files of the same name, whatever they are of");
  AddDraft(command, options->draft);
  AddBetween(command, options->between);
  AddLocked(command, globals, {Excludes("--draft")});
  Complete(
      command, globals,
      "Writes NAME.so and NAME.o (the kernel, with functions NAME_run and so on), NAME.h (how to "
      "call it), NAME_example.c (a program that does), libNAME.so and NAME_kernel.py (for Python), "
      "hone_threads.c (threads for programs that have none), NAME.hone, NAME.trace and "
      "NAME.program (workload, trace and program as text), and adds the measured file to lookup/, "
      "where programs find the kernel of a workload at run time with libhone_lookup "
      "(hone_lookup.h). "
      "For a GPU, the kernel is NAME.cl (OpenCL C) or, with CUDA, NAME.cubin, NAME.ptx and "
      "NAME.cu; NAME.json and NAME.h describe the launches, and NAME_host.c is a program that runs "
      "the kernel. Kernels for GPUs are not added to lookup/. "
      "Several workloads are exported together, as with --file. NAME.export.json says what the "
      "files "
      "are of, and several exports may share a folder. An export replaces an earlier one of the "
      "same "
      "name if it is of the same workload or network, with the same shapes, target and tolerance, "
      "and has no fewer measured kernels; other files are only replaced with --overwrite. All "
      "files "
      "are written, or none. An adapted schedule (hone best --nearest) has no kernel to "
      "export: first tune the operator, or measure the schedule with hone schedule --check. For a "
      "workload of a --file without a confirmed schedule, the list names the job that measured it, "
      "if any (unconfirmed_job in JSON).\n\n"
      "A network, FILE.onnx, is exported as libNAME.so (all kernels and the code that runs them, "
      "for this machine's CPU; GPUs' drivers are opened when it runs), NAME.weights, NAME.h and "
      "NAME.hpp for C and C++, and NAME.py for Python; an end of the model that runs on the host "
      "becomes NAME.tail.onnx, which NAME.py runs with ONNX Runtime or the package onnx. A task "
      "without a confirmed schedule uses "
      "the best measured one, or else that of the draft, which is neither checked nor timed. A "
      "message on standard error counts these tasks (schedule_count in JSON). The exit code is 3 "
      "if nothing of the "
      "network was ever tuned, unless --draft is given.\n\n"
      "Examples:\n"
      "  hone export matmul m=1024 n=1024 k=1024 -o kernel/\n"
      "  gcc main.c kernel/matmul.o kernel/hone_threads.c -Ikernel\n"
      "  hone export softmax m=1024 n=1024 -o kernel/ --name probabilities\n"
      "  hone export matmul m=1024 n=1024 k=1024 --target cuda -o gpu/\n"
      "  hone export matmul m=64 n=64 k=64 softmax m=64 n=64 -o kernels/\n"
      "  hone export --file network.txt -o kernels/\n"
      "  hone export resnet50.onnx -o resnet50/\n"
      "  hone export resnet50.onnx -o untuned/ --draft",
      [&globals, options] { return Export(globals, *options); });
}

}  // namespace hone::cli

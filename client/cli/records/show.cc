#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/records/known_best.h"
#include "client/cli/session.h"
#include "client/cli/target_argument.h"
#include "client/cli/tune/apply_trace.h"
#include "client/connection/program_call.h"
#include "client/network/onnx/import.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

struct ShowOptions {
  BestWords words;
  bool draft = false;
  bool workload = false;
  bool program = false;
  bool trace = false;
  bool code = false;
  std::vector<std::string> shapes;  // of a model's inputs
  bool inputs = false;              // only these

  // Whether a schedule must be known.
  bool NeedsSchedule() const { return program || trace || code || !workload; }
};

// The texts that can be shown.
struct Shown {
  std::string workload;
  std::string program;
  std::string trace;
  std::string code;
};

absl::Status Print(const Globals& globals, const ShowOptions& options, const Shown& shown) {
  // --code alone also shows the schedule.
  const bool chosen = options.workload || options.program || options.trace;
  const struct {
    const char* name;
    bool wanted;
    const std::string& text;
  } parts[] = {{"workload", options.workload || (!chosen && !options.code), shown.workload},
               {"program", options.program || !chosen, shown.program},
               {"trace", options.trace || !chosen, shown.trace},
               {"code", options.code, shown.code}};
  Json json = Json::object();
  int wanted = 0;
  for (const auto& part : parts) wanted += part.wanted ? 1 : 0;
  for (const auto& part : parts) {
    if (!part.wanted) continue;
    json[part.name] = part.text;
    if (globals.json) continue;
    if (wanted > 1) absl::PrintF("# %s\n", part.name);
    PrintText(part.text);
    if (wanted > 1) absl::PrintF("\n");
  }
  return globals.json ? PrintJson(json) : absl::OkStatus();
}

// Reads and replays a trace file. Needs no server.
absl::StatusOr<Shown> ReadTrace(const std::string& path, const std::string& text) {
  HONE_ASSIGN_OR_RETURN(const AppliedTrace applied, ApplyDecidedTrace(path, text));
  return Shown{.workload = applied.workload->ToText(),
               .program = applied.program.ToText(),
               .trace = applied.Text()};
}

// Adds the code of the trace. `target`: text form.
absl::Status AddCode(const std::string& target, Shown& shown) {
  HONE_ASSIGN_OR_RETURN(shown.code, client::KernelCode(shown.trace, target));
  return absl::OkStatus();
}

absl::Status ShowTrace(const Globals& globals, const ShowOptions& options, const std::string& path,
                       const std::string& text) {
  if (options.draft) {
    return absl::InvalidArgumentError(absl::StrCat("--draft makes a schedule for a workload, and ",
                                                   path, " is a schedule; omit --draft"));
  }
  HONE_ASSIGN_OR_RETURN(Shown shown, ReadTrace(path, text));
  if (options.code) {
    HONE_ASSIGN_OR_RETURN(const TargetArgument argument, ReadTargetArgument(globals.target));
    HONE_ASSIGN_OR_RETURN(const std::string target, argument.Text());
    if (!target::Target::FromText(target).ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--target ", globals.target, ": a key does not describe a target; give one of ",
          absl::StrJoin(target::TargetNames(), ", ")));
    }
    HONE_RETURN_IF_ERROR(AddCode(target, shown));
  }
  return Print(globals, options, shown);
}

// The schedule that a search of the workload begins with.
absl::StatusOr<Shown> Draft(const Globals& globals, const ShowOptions& options,
                            const WorkloadArgument& argument) {
  // Check the target first, because a usage error must not start a server.
  const TargetArgument target_argument{.given = globals.target};
  if (!target_argument.NamesDevice()) HONE_RETURN_IF_ERROR(target_argument.Key().status());
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetText());
  HONE_ASSIGN_OR_RETURN(
      const v1::DraftedSchedule drafted,
      session->connection().DraftSchedule(argument.text, target, options.words.tolerance));
  HONE_ASSIGN_OR_RETURN(const AppliedTrace applied,
                        ApplyTrace("the draft", drafted.trace(), /*seed=*/0));
  Shown shown{.program = applied.program.ToText(), .trace = drafted.trace()};
  if (options.code) HONE_RETURN_IF_ERROR(AddCode(drafted.target(), shown));
  return shown;
}

absl::StatusOr<Shown> Best(const Globals& globals, const ShowOptions& options,
                           WorkloadArgument argument) {
  HONE_ASSIGN_OR_RETURN(
      const KnownBest known,
      LookUpBest(globals, std::move(argument), options.words.tolerance,
                 {.hint = "; hone show --workload shows the workload alone, and --draft the "
                          "schedule that a search begins with"}));
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ArtifactOf(*known.session, known.best));
  Shown shown{.program = artifact.program, .trace = known.best.trace()};
  if (options.code) HONE_RETURN_IF_ERROR(AddCode(artifact.target, shown));
  return shown;
}

// The inputs of a model with their open dimensions: "x: f32[N, 3, ?]". In JSON, an open dimension
// is its name, or null if it has none.
absl::Status ShowInputs(const Globals& globals, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::vector<onnx::DeclaredInput> inputs, onnx::DeclaredInputs(path));
  Json listed = Json::array();
  std::string text;
  for (const onnx::DeclaredInput& input : inputs) {
    Json shape = nullptr;
    std::vector<std::string> words;
    if (input.shape.has_value()) {
      shape = Json::array();
      for (const auto& dimension : *input.shape) {
        if (const auto* const extent = std::get_if<int64_t>(&dimension)) {
          shape.push_back(*extent);
          words.push_back(absl::StrCat(*extent));
        } else {
          const std::string& name = std::get<std::string>(dimension);
          shape.push_back(name.empty() ? Json(nullptr) : Json(name));
          words.push_back(name.empty() ? "?" : name);
        }
      }
    }
    absl::StrAppend(&text, input.name, ": ", input.dtype.empty() ? "unsupported type" : input.dtype,
                    input.shape.has_value() ? absl::StrCat("[", absl::StrJoin(words, ", "), "]")
                                            : " of any shape",
                    "\n");
    listed.push_back({{"name", input.name}, {"dtype", input.dtype}, {"shape", std::move(shape)}});
  }
  if (globals.json) return PrintJson({{"inputs", std::move(listed)}});
  PrintText(text);
  return absl::OkStatus();
}

absl::Status ShowModel(const Globals& globals, const ShowOptions& options) {
  if (options.draft || options.workload || options.program || options.trace || options.code) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.words.words[0],
                     " is a network; omit the options that choose a part of a schedule"));
  }
  if (options.inputs) return ShowInputs(globals, options.words.words[0]);
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph,
                        ReadGraph({options.words.words[0], options.shapes}));
  if (globals.json) return PrintJson({{"graph", graph.ToText()}});
  PrintText(graph.ToText());
  return absl::OkStatus();
}

absl::Status Show(const Globals& globals, const ShowOptions& options) {
  if (NamesNetwork(options.words.words)) return ShowModel(globals, options);
  if (!options.shapes.empty()) {
    return absl::InvalidArgumentError("--shape is for models: hone show MODEL.onnx --shape ...");
  }
  if (options.inputs) {
    return absl::InvalidArgumentError("--inputs is for models: hone show MODEL.onnx --inputs");
  }
  WorkloadArgument argument;
  const std::vector<std::string>& words = options.words.words;
  if (NamesFile(words)) {
    const std::string& path = words[0];
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadTextArgument(path));
    if (IsTrace(text)) return ShowTrace(globals, options, path, text);
    HONE_ASSIGN_OR_RETURN(argument, ParseWorkloadArgument(path, text));
  } else {
    HONE_ASSIGN_OR_RETURN(argument, ReadWorkloadArgument(words));
  }
  const std::string workload = argument.text;
  Shown shown;
  if (options.NeedsSchedule()) {
    HONE_ASSIGN_OR_RETURN(shown, options.draft ? Draft(globals, options, argument)
                                               : Best(globals, options, std::move(argument)));
  }
  shown.workload = workload;
  return Print(globals, options, shown);
}

}  // namespace

void AddShow(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("show", "Show a workload with its best schedule's program, trace and code");
  auto options = std::make_shared<ShowOptions>();
  AddBestWords(command, options->words, /*required=*/true, Names::kOperatorOrNetwork);
  command.AddFlag(
      "--draft", options->draft,
      "Show the schedule that a search begins with, which the draft chooses, instead of "
      "the best known one. Measures nothing: the target need not exist here");
  command.AddFlag("--workload", options->workload, "Show the workload as text");
  command.AddFlag("--program", options->program, "Show the loop nest of the schedule");
  command.AddFlag("--trace", options->trace, "Show the schedule: its primitives and decisions");
  command.AddFlag("--code", options->code,
                  "Show the code of the schedule: assembly, or source for targets that compile it "
                  "themselves");
  AddShapes(command, options->shapes);
  command.AddFlag("--inputs", options->inputs,
                  "Show only the inputs of a model, with the dimensions that it leaves open");
  Complete(command, globals,
           "A MODEL.onnx is shown as the graph of its operators.\n\n"
           "The schedule is the best known one, that of FILE.trace, or with --draft the one that "
           "hone tune measures as its first trial if it knows nothing of the workload yet. Without "
           "--workload, --program, --trace and --code, shows the first three; --code alone shows "
           "the program and the trace, too. hone-builder, which must be in the folder of hone, "
           "generates the code: for the target of the schedule, or for --target if a FILE.trace is "
           "given.\n\n"
           "Examples:\n"
           "  hone show matmul m=1024 n=1024 k=1024 --program\n"
           "  hone show matmul m=64 n=64 k=64 --target x86-avx512 --draft --code\n"
           "  hone show resnet50.onnx --shape data=1x3x224x224\n"
           "  hone show resnet50.onnx --inputs\n"
           "  hone show kernel/matmul.trace --target arm-neon --code --json | jq -r .code\n"
           "  hone show conv2d n=1 h=14 w=14 ci=256 co=256 k=3 p=1 --workload > conv.hone",
           [&globals, options] { return Show(globals, *options); });
}

}  // namespace hone::cli

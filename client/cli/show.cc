#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/apply_trace.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/known_best.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"
#include "common/schedule/trace.h"

namespace hone::cli {
namespace {

struct ShowOptions {
  BestWords words;
  bool workload = false;
  bool program = false;
  bool trace = false;
};

// The texts that can be shown.
struct Shown {
  std::string workload;
  std::string program;
  std::string trace;
};

absl::Status Print(const Globals& globals, const ShowOptions& options, const Shown& shown) {
  const bool all = !options.workload && !options.program && !options.trace;
  const struct {
    const char* name;
    bool wanted;
    const std::string& text;
  } parts[] = {{"workload", all || options.workload, shown.workload},
               {"program", all || options.program, shown.program},
               {"trace", all || options.trace, shown.trace}};
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
  const absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(text);
  if (file.ok() && file->parsed.decisions.empty() && file->parsed.trace.decisions > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the trace is a design space, with ", file->parsed.trace.decisions,
        " decisions open; write the decisions after its samplings, as in \"= [16, 64]\""));
  }
  HONE_ASSIGN_OR_RETURN(const AppliedTrace applied, ApplyTrace(path, text, /*seed=*/0));
  return Shown{.workload = applied.workload->ToText(),
               .program = applied.program.ToText(),
               .trace = applied.Text()};
}

absl::Status Show(const Globals& globals, const ShowOptions& options) {
  WorkloadArgument argument;
  const std::vector<std::string>& words = options.words.words;
  if (NamesFile(words)) {
    const std::string& path = words[0];
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadTextArgument(path));
    if (IsTrace(text)) {
      HONE_ASSIGN_OR_RETURN(const Shown shown, ReadTrace(path, text));
      return Print(globals, options, shown);
    }
    HONE_ASSIGN_OR_RETURN(argument, ParseWorkloadArgument(path, text));
  } else {
    HONE_ASSIGN_OR_RETURN(argument, ReadWorkloadArgument(words));
  }
  Shown shown;
  shown.workload = argument.text;
  const bool needs_best = options.program || options.trace || !options.workload;
  if (needs_best) {
    HONE_ASSIGN_OR_RETURN(const KnownBest known,
                          LookUpBest(globals, std::move(argument), options.words.tolerance,
                                     {.hint = "; hone show --workload shows the workload alone"}));
    shown.trace = known.best.trace;
    HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ArtifactOf(*known.session, known.best));
    shown.program = artifact.program;
  }
  return Print(globals, options, shown);
}

}  // namespace

void AddShow(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "show", "Show a workload with its best schedule's program and trace, or a trace file");
  auto options = std::make_shared<ShowOptions>();
  AddBestWords(command, options->words);
  command.AddFlag("--workload", options->workload, "Show the workload as text");
  command.AddFlag("--program", options->program, "Show the loop nest of the best schedule");
  command.AddFlag("--trace", options->trace,
                  "Show the best schedule: its primitives and decisions");
  Complete(command, globals,
           "Without --workload, --program and --trace, shows all three.\n\n"
           "Examples:\n"
           "  hone show matmul m=1024 n=1024 k=1024 --program\n"
           "  hone show kernel/matmul.trace --program\n"
           "  hone show conv2d n=1 h=14 w=14 ci=256 co=256 k=3 p=1 --workload > conv.hone",
           [&globals, options] { return Show(globals, *options); });
}

}  // namespace hone::cli

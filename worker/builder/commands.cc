#include "worker/builder/commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "worker/builder/build.h"
#include "worker/builder/confined.h"
#include "worker/builder/link.h"

namespace hone::builder {
namespace {

// Returns the bytes of the artifact of a candidate with this schedule.
absl::StatusOr<std::string> ArtifactBytes(const std::string& trace, const target::Target& target,
                                          const std::string& folder) {
  HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(trace));
  const record::BuildResponse response = Build({.workload = file.workload.ToText(),
                                                .space = trace,
                                                .decisions = file.parsed.decisions,
                                                .target = target.ToText(),
                                                .artifact_dir = folder});
  if (response.outcome == record::Outcome::kOk) {
    return ReadFile(absl::StrCat(folder, "/", response.artifact_digest));
  }
  return response.outcome == record::Outcome::kInvalid ? absl::InvalidArgumentError(response.detail)
                                                       : absl::AbortedError(response.detail);
}

// The blocks of a kernel that are listed.
constexpr size_t kListedBlocks = 12;

std::string CostText(const codegen::ModelledCost& cost, const target::Target& target) {
  std::string text = absl::StrFormat("%.0f cycles, modelled for %s with %d cores\n", cost.cycles,
                                     target.cpu, target.cores);
  absl::StrAppendFormat(&text, "%12s %10s %12s %7s  %s\n", "executions", "cycles", "instructions",
                        "share", "block");
  for (size_t i = 0; i < std::min(kListedBlocks, cost.blocks.size()); ++i) {
    const codegen::ModelledBlock& block = cost.blocks[i];
    absl::StrAppendFormat(&text, "%12.0f %10.1f %12d %5.1f %%  %s\n", block.executions,
                          block.cycles, block.instructions,
                          100 * block.executions * block.cycles / std::max(cost.cycles, 1.0),
                          block.name);
  }
  return text;
}

// Answers one line of JSON.
absl::StatusOr<std::string> AnswerLine(absl::string_view line, const target::Target& target) {
  const nlohmann::json request = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object() || !request.contains("trace") || !request["trace"].is_string()) {
    return absl::InvalidArgumentError(
        "not an object with the text of a schedule, such as {\"trace\": \"workload …\"}");
  }
  const absl::StatusOr<codegen::ModelledCost> cost =
      CostOfTrace(request["trace"].get<std::string>(), target);
  const nlohmann::json answer =
      cost.ok() ? nlohmann::json{{"cycles", cost->cycles}}
                : nlohmann::json{{"error", std::string(cost.status().message())}};
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Returns the text of RunCostCommand.
absl::StatusOr<std::string> CostAnswer(const CostCommandOptions& options, const std::string& text,
                                       const target::Target& target, const std::string& lock_path) {
  const auto lock = [&] {
    return HostLock::Acquire(HostLock::Mode::kShared, absl::InfiniteFuture(), lock_path);
  };
  if (!options.lines) {
    HONE_ASSIGN_OR_RETURN(const HostLock held, lock());
    HONE_ASSIGN_OR_RETURN(const codegen::ModelledCost cost, CostOfTrace(text, target));
    return CostText(cost, target);
  }
  std::string answers;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    HONE_ASSIGN_OR_RETURN(const HostLock held, lock());
    const absl::StatusOr<std::string> answer = AnswerLine(line, target);
    if (!answer.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.file, ":", number, ": ", answer.status().message()));
    }
    absl::StrAppend(&answers, *answer, "\n");
  }
  return answers;
}

}  // namespace

const Command& AddCodeCommand(Command& app, CodeOptions& options) {
  Command& command =
      app.AddCommand("code",
                     "Print the code of a schedule: assembly, or source for targets that "
                     "compile it themselves");
  command.Add("--target", options.target,
              absl::StrCat("Target of the code: ", absl::StrJoin(target::TargetNames(), ", "),
                           ", cuda, cuda:N, opencl, opencl:N, or the text form of a target"),
              {ShowDefault(), NotEmpty()});
  command.AddFlag("--artifact", options.artifact,
                  "Write the artifact that workers run: the kernel with its texts");
  command.Add("file", options.file, "FILE.trace with its decisions; \"-\" reads standard input",
              {Required()});
  command.Footer(
      "native, cuda and opencl describe a device of this machine; the other targets need no "
      "device. "
      "The exit code is 2 if the target or the trace is wrong, and 1 if "
      "the code cannot be generated.\n"
      "Example: hone-builder code --target x86-avx512 best.trace");
  return command;
}

absl::StatusOr<std::string> RunCodeCommand(const CodeOptions& options,
                                           const std::string& lock_path) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, ReadTarget(options.target));
  absl::StatusOr<std::string> trace = ReadFile(options.file == "-" ? "/dev/stdin" : options.file);
  if (!trace.ok()) return absl::InvalidArgumentError(trace.status().message());
  return RunConfined(lock_path, [&](const std::string& folder) -> absl::StatusOr<std::string> {
    HONE_ASSIGN_OR_RETURN(
        const HostLock lock,
        HostLock::Acquire(HostLock::Mode::kShared, absl::InfiniteFuture(), lock_path));
    return options.artifact ? ArtifactBytes(*trace, target, folder) : CodeText(*trace, target);
  });
}

const Command& AddCostCommand(Command& app, CostCommandOptions& options) {
  Command& command = app.AddCommand(
      "cost", "Model how many cycles a schedule takes on a CPU, which need not be at hand");
  command.Add(
      "--target", options.target,
      absl::StrCat("Target of the code, a CPU: ", absl::StrJoin(target::TargetNames(), ", "),
                   ", or the text form of a target"),
      {ShowDefault(), NotEmpty()});
  command.AddFlag("--lines", options.lines,
                  "FILE has a schedule per line, as {\"trace\": TEXT}; answer each with a line, "
                  "{\"cycles\": N} or {\"error\": TEXT}");
  command.Add("file", options.file, "FILE.trace with its decisions; \"-\" reads standard input",
              {Required()});
  command.Footer(
      "The cycles are those of LLVM's model of the CPU for each basic block, times its executions. "
      "They contain no caches and no memory.\n"
      "Example: hone-builder cost --target arm/neoverse-v1 best.trace");
  return command;
}

absl::StatusOr<std::string> RunCostCommand(const CostCommandOptions& options,
                                           const std::string& lock_path) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, ReadTarget(options.target));
  const absl::StatusOr<std::string> text =
      ReadFile(options.file == "-" ? "/dev/stdin" : options.file);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return RunConfined(
      lock_path, [&](const std::string&) { return CostAnswer(options, *text, target, lock_path); });
}

const Command& AddLinkCommand(Command& app, LinkCommandOptions& options) {
  Command& command = app.AddCommand(
      "link", "Link object files to a shared object, which is written to standard output");
  command.Add("--visible", options.visible, "PREFIX of the functions that are visible",
              {Required(), NotEmpty()});
  command.Add("files", options.files,
              "FILE.o, object files for one machine: x86-64, aarch64 or ARMv7", {Required()});
  command.Footer(
      "The exit code is 2 if a file is missing or is not accepted by the linker.\n"
      "Example: hone-builder link --visible resnet_ kernels.o runtime.o > resnet.so");
  return command;
}

absl::StatusOr<std::string> RunLinkCommand(const LinkCommandOptions& options) {
  std::vector<std::string> objects;
  for (const std::string& file : options.files) {
    absl::StatusOr<std::string> object = ReadFile(file);
    if (!object.ok()) return absl::InvalidArgumentError(object.status().message());
    objects.push_back(*std::move(object));
  }
  const std::vector<absl::string_view> views(objects.begin(), objects.end());
  HONE_ASSIGN_OR_RETURN(const std::string triple, TripleOf(views[0]));
  return RunConfined(/*lock_path=*/"", [&](const std::string& folder) {
    return LinkSharedObject(views,
                            {.triple = triple, .scratch_dir = folder, .visible = options.visible});
  });
}

}  // namespace hone::builder

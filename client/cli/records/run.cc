#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/bf16_choice.h"
#include "client/cli/network/network_run.h"
#include "client/cli/network/numeric_error.h"
#include "client/cli/npy_argument.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/run_job.h"
#include "client/cli/workload_argument.h"
#include "client/network/export/kernel_call.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"

namespace hone::cli {
namespace {

struct RunOptions {
  std::vector<std::string> words;
  std::vector<std::string> in;
  std::vector<std::string> out;
  double tolerance = 0;
  std::vector<std::string> expect;
  ErrorLimits limits;
  // For networks only.
  std::vector<std::string> shapes;
  bool draft = false;
  std::string between = "auto";
  int repeat = 0;  // 0: not given
  bool profile = false;
};

// "A: f32[4, 8], B: f32[8] (constant)".
std::string Describe(const ir::Workload& workload, const std::vector<ir::BufferId>& ids) {
  return absl::StrJoin(ids, ", ", [&](std::string* text, ir::BufferId id) {
    const ir::Tensor& tensor = workload.tensors[id];
    absl::StrAppend(text, tensor.name, ": ", ir::TypeText(tensor.dtype, tensor.shape));
  });
}

absl::Status CheckCounts(const WorkloadArgument& argument, const RunOptions& options) {
  const ir::Workload& workload = argument.workload;
  const auto check = [&](const char* verb, const char* noun, const char* option,
                         const std::vector<ir::BufferId>& wanted, size_t given) {
    if (given == wanted.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(argument.title, verb, Counted(static_cast<int64_t>(wanted.size()), noun),
                     ", each with ", option, ": ", Describe(workload, wanted), "; ", given,
                     given == 1 ? " is" : " are", " given"));
  };
  HONE_RETURN_IF_ERROR(check(" takes ", "input", "--in", workload.Inputs(), options.in.size()));
  const size_t expected = options.expect.size();
  if (expected > 0) {
    HONE_RETURN_IF_ERROR(check(" gives ", "output", "--expect", workload.Outputs(), expected));
    if (options.out.empty()) return absl::OkStatus();
  }
  return check(" gives ", "output", "--out", workload.Outputs(), options.out.size());
}

struct Found {
  v1::Best best;
  bool stored = true;  // false: it was measured only now
};

// "best", "default", or "first" for the first candidate of a search.
std::string NameOf(const Found& found) {
  return found.stored ? "best" : found.best.record().is_default() ? "default" : "first";
}

std::string Describe(const Found& found) {
  if (found.stored) return "best known kernel";
  return found.best.record().is_default() ? "untiled default schedule"
                                          : "first schedule of a search";
}

// Returns the stored best, or with --locked the locked one. If there is none, runs a job that
// builds, checks and times the untiled default schedule and the first candidate of a search, and
// returns the faster one.
absl::StatusOr<Found> FindKernel(Session& session, const WorkloadArgument& argument,
                                 const RunOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string target, session.TargetKey());
  absl::StatusOr<v1::Best> best = FindBest(session, argument, target, options.tolerance);
  if (best.ok()) return Found{*std::move(best)};
  if (!absl::IsNotFound(best.status())) return best.status();
  HONE_RETURN_IF_ERROR(session.TargetForTuning().status());  // whether it can be measured
  PrintWrapped(stderr,
               absl::StrCat("no confirmed schedule is known for ", argument.title, " on ", target,
                            ": a job builds, checks and times the untiled default schedule and the "
                            "first schedule of a search, and publishes nothing"));
  v1::CreateJobRequest spec;
  spec.set_workload(argument.text);
  spec.set_target(target);
  spec.set_max_trials(1);
  spec.set_unpublished(true);
  spec.set_tolerance(options.tolerance);
  HONE_ASSIGN_OR_RETURN(FollowedJob followed, RunJob(session, spec));
  HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
  v1::Job& job = followed.job;
  if (job.state() == v1::JOB_STATE_DONE && job.has_best()) {
    return Found{std::move(*job.mutable_best()), /*stored=*/false};
  }
  return absl::AbortedError(
      absl::StrCat("no kernel is known for ", argument.title, ", and none could be made: ",
                   job.error().empty() ? OutcomesText(job) : WithRepeatedOptions(job.error())));
}

absl::Status Run(const Globals& globals, const RunOptions& options) {
  if (options.limits.Any() && options.expect.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.limits.max_error >= 0 ? "--max-error" : "--atol and --rtol",
                     options.limits.max_error >= 0 ? " needs" : " need", " --expect"));
  }
  if (NamesNetwork(options.words)) {
    return RunNetwork(globals, {.words = {options.words[0], options.shapes},
                                .in = options.in,
                                .out = options.out,
                                .expect = options.expect,
                                .limits = options.limits,
                                .kernels = {.tolerance = options.tolerance,
                                            .draft = options.draft,
                                            .hint = kDraftHint,
                                            .between = options.between},
                                .repeat = std::max(options.repeat, 1),
                                .profile = options.profile});
  }
  if (!options.shapes.empty() || options.repeat > 0 || options.profile || options.draft) {
    return absl::InvalidArgumentError(
        "--shape, --repeat, --profile and --draft are for networks (FILE.onnx)");
  }
  HONE_ASSIGN_OR_RETURN(const WorkloadArgument argument, ReadWorkloadArgument(options.words));
  const ir::Workload& workload = argument.workload;
  HONE_RETURN_IF_ERROR(CheckCounts(argument, options));
  std::vector<std::string> inputs;
  const std::vector<ir::BufferId> in = workload.Inputs(), out = workload.Outputs();
  for (size_t i = 0; i < in.size(); ++i) {
    const ir::Tensor& tensor = workload.tensors[in[i]];
    HONE_ASSIGN_OR_RETURN(inputs.emplace_back(),
                          ReadNpyArgument(options.in[i], absl::StrCat("input ", tensor.name),
                                          tensor.dtype, tensor.shape, tensor.bound));
  }
  std::vector<std::string> expected;
  for (size_t o = 0; o < options.expect.size(); ++o) {
    const ir::Tensor& tensor = workload.tensors[out[o]];
    HONE_ASSIGN_OR_RETURN(
        expected.emplace_back(),
        ReadNpyArgument(options.expect[o], absl::StrCat("expected output ", tensor.name),
                        tensor.dtype, tensor.shape));
  }
  HONE_RETURN_IF_ERROR(CheckNpyResults(options.out));

  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const Found found, FindKernel(*session, argument, options));
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ArtifactOf(*session, found.best));
  const std::vector<absl::string_view> views(inputs.begin(), inputs.end());
  const absl::StatusOr<std::vector<std::string>> outputs =
      client::CallKernel(workload, artifact, views, session->GpuName());
  // The codes of a driver's errors would be read as those of a server.
  if (!outputs.ok()) return WithExitCode(outputs.status(), kExitFailed);

  Json files = Json::array();
  std::vector<OutputComparison> comparisons;
  for (size_t o = 0; o < out.size(); ++o) {
    const ir::Tensor& tensor = workload.tensors[out[o]];
    if (!expected.empty()) {
      const graph::TensorType type{tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}};
      comparisons.push_back(
          CompareOutput(tensor.name, type, (*outputs)[o], expected[o], options.limits));
    }
    if (options.out.empty()) continue;
    HONE_RETURN_IF_ERROR(WriteNpyResult(options.out[o], tensor.dtype, tensor.shape, (*outputs)[o]));
    files.push_back({{"path", options.out[o]},
                     {"tensor", tensor.name},
                     {"dtype", std::string(ir::DTypeName(tensor.dtype))},
                     {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())}});
    if (!globals.json) {
      absl::PrintF("%s  %s: %s\n", options.out[o], tensor.name,
                   ir::TypeText(tensor.dtype, tensor.shape));
    }
  }
  const absl::Status result = CheckComparisons(comparisons, options.limits);
  if (globals.json) {
    Json json = BestJson(found.best);
    if (!found.stored) {  // "best" would claim more than is known
      json["kernel"] = std::move(json["best"]);
      json.erase("best");
    }
    json["schedule"] = NameOf(found);
    if (!options.out.empty()) json["outputs"] = std::move(files);
    if (!expected.empty()) json["comparisons"] = ComparisonsJson(comparisons);
    return PrintJson(json, result);
  }
  PrintWrapped(absl::StrCat("computed with the ", Describe(found), ", measured at ",
                            FormatLatency(found.best.latency_ns())));
  if (!found.stored) {
    PrintWrapped(absl::StrCat("no best is known; find one with: ",
                              SuggestedCommandForTarget(absl::StrCat(
                                  "tune ", argument.words, ToleranceOption(options.tolerance)))));
  }
  for (const OutputComparison& comparison : comparisons) {
    absl::PrintF("error     %.3g of the largest expected magnitude of %s\n", comparison.max_error,
                 comparison.tensor);
    const std::string worst = WorstText(comparison, options.limits);
    if (!worst.empty()) PrintWrapped(absl::StrCat("worst     ", worst));
  }
  return result;
}

}  // namespace

void AddRun(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("run", "Run the best known kernel, or a network, on NumPy files");
  auto options = std::make_shared<RunOptions>();
  AddWorkloadWords(command, options->words, /*required=*/true, Names::kOperatorOrNetwork);
  command.Add("--in", options->in,
              "A.npy of an input; once for each input, in order (hone operators lists them)",
              {OneWordPerUse()});
  command.Add("--out", options->out, "C.npy of an output; once for each output, in order",
              {OneWordPerUse()});
  command.Add("--tolerance", options->tolerance,
              "Tolerance that the operator was tuned with; 0 (default) is strict",
              {Range(0.0, 0.5)});
  AddShapes(command, options->shapes);
  AddExpected(command, options->expect, options->limits);
  command.Add("--repeat", options->repeat, "Time this many runs of a network (default 1)",
              {Range(1, 1'000'000)});
  AddDraft(command, options->draft);
  AddBetween(command, options->between);
  AddLocked(command, globals, {Excludes("--draft")});
  command.AddFlag("--profile", options->profile,
                  "Print the time of each step of a network, in the run with the median latency");
  Complete(
      command, globals,
      "Runs the best known kernel on this machine. If none is known, a job of the server "
      "builds, checks and times the untiled default schedule and the first schedule of a "
      "search, and the faster one runs. The job publishes nothing: \"hone best\" does not "
      "return this schedule, because it is not tuned.\n\n"
      "Files must have .npy version 1 or 2, be little-endian and in C order, and have the "
      "workload's shapes and types: f2 f4 f8 i1 u1 i4 i8 b1. bf16 is read as its bits, u2 or "
      "V2, and written as u2 (in NumPy: a.view(ml_dtypes.bfloat16)); f8e4m3 and f8e5m2 are u1 "
      "or V1, written as u1 (a.view(ml_dtypes.float8_e4m3fn), ml_dtypes.float8_e5m2); i4 and "
      "u4 are i1 or u1, an element per byte.\n\n"
      "A network, FILE.onnx, runs with the best known kernels of its tasks, which hone tune "
      "FILE.onnx finds. A task without a confirmed schedule uses the best measured one, or else "
      "that of the draft, which is not checked. A message on standard error counts these tasks "
      "(schedule_count in JSON). If nothing of the network was ever tuned, the exit code is "
      "3, and no job is created; --draft runs it nevertheless. With --target opencl or cuda, "
      "all of it runs on that "
      "device. Its inputs and expected outputs may also be ONNX's .pb "
      "files. --out may be omitted for a network, and with --expect. The first run is not "
      "timed. The output says whether "
      "other work disturbed the others; with --json, is_disturbed is true and disturbance "
      "says why.\n\n"
      "Examples:\n"
      "  hone run matmul m=512 n=512 k=512 --in A.npy --in B.npy --out C.npy\n"
      "  hone run mine.hone --in A.npy --out C.npy --out D.npy --json\n"
      "  hone run resnet50.onnx --in image.npy --out scores.npy --profile\n"
      "  hone run resnet50.onnx --in image.npy --expect scores.npy --atol 1e-5 --rtol 1e-3\n"
      "  hone run resnet50.onnx --in image.npy --out scores.npy --target opencl",
      [&globals, options] { return Run(globals, *options); });
}

}  // namespace hone::cli

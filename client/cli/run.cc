#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/known_best.h"
#include "client/cli/run_job.h"
#include "client/cli/session.h"
#include "client/cli/workload_argument.h"
#include "client/lib/kernel_call.h"
#include "client/lib/npy.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"

namespace hone::cli {
namespace {

struct RunOptions {
  std::vector<std::string> words;
  std::vector<std::string> in;
  std::vector<std::string> out;
  double tolerance = 0;
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
  const std::vector<ir::BufferId> inputs = workload.Inputs(), outputs = workload.Outputs();
  if (options.in.size() != inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(argument.title, " takes ", inputs.size(), " inputs, each with --in: ",
                     Describe(workload, inputs), "; ", options.in.size(), " are given"));
  }
  if (options.out.size() != outputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(argument.title, " gives ", outputs.size(), " outputs, each with --out: ",
                     Describe(workload, outputs), "; ", options.out.size(), " are given"));
  }
  return absl::OkStatus();
}

// Reads the elements of an input from its file.
absl::StatusOr<std::string> ReadInput(const std::string& path, const ir::Tensor& tensor) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return absl::InvalidArgumentError(bytes.status().message());
  const absl::StatusOr<client::NpyArray> array = client::ParseNpy(*bytes);
  if (!array.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", array.status().message()));
  }
  absl::Status fits = client::CheckNpy(*array, tensor.dtype, tensor.shape);
  if (fits.ok() && tensor.bound > 0) fits = client::CheckBelow(*array, tensor.dtype, tensor.bound);
  if (!fits.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ", the input ", tensor.name, ": ", fits.message()));
  }
  bytes->erase(0, bytes->size() - array->data.size());
  return bytes;
}

struct Found {
  client::Best best;
  bool stored = true;  // false: it was measured for this call
};

// "best", "default", or "first" for the first candidate of a search.
std::string NameOf(const Found& found) {
  return found.stored ? "best" : found.best.record.is_default ? "default" : "first";
}

std::string Describe(const Found& found) {
  if (found.stored) return "best known kernel";
  return found.best.record.is_default ? "untiled default schedule" : "first schedule of a search";
}

// Returns the stored best. If no best is stored, a job builds, checks and times the untiled default
// schedule and the first candidate of a search, and this function returns the faster one.
absl::StatusOr<Found> FindKernel(Session& session, const WorkloadArgument& argument,
                                 const RunOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string target, session.TargetKey());
  absl::StatusOr<client::Best> best =
      session.connection().LookupBest(argument.text, target, options.tolerance,
                                      /*nearest=*/false);
  if (best.ok()) return Found{*std::move(best)};
  if (!absl::IsNotFound(best.status())) return best.status();
  HONE_RETURN_IF_ERROR(session.TargetForTuning().status());  // whether it can be measured
  client::JobSpec spec;
  spec.workload = argument.text;
  spec.target = target;
  spec.max_trials = 1;
  spec.unpublished = true;
  spec.tolerance = options.tolerance;
  HONE_ASSIGN_OR_RETURN(FollowedJob followed, RunJob(session, spec));
  HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
  client::Job& job = followed.job;
  if (job.state == client::JobState::kDone && job.best.has_value()) {
    return Found{*std::move(job.best), /*stored=*/false};
  }
  return absl::AbortedError(absl::StrCat(
      "no kernel is known for ", argument.title,
      ", and none could be made: ", job.error.empty() ? OutcomesText(job) : job.error));
}

absl::Status Run(const Globals& globals, const RunOptions& options) {
  HONE_ASSIGN_OR_RETURN(const WorkloadArgument argument, ReadWorkloadArgument(options.words));
  const ir::Workload& workload = argument.workload;
  HONE_RETURN_IF_ERROR(CheckCounts(argument, options));
  std::vector<std::string> inputs;
  const std::vector<ir::BufferId> in = workload.Inputs(), out = workload.Outputs();
  for (size_t i = 0; i < in.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(inputs.emplace_back(), ReadInput(options.in[i], workload.tensors[in[i]]));
  }

  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const Found found, FindKernel(*session, argument, options));
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ArtifactOf(*session, found.best));
  const std::vector<absl::string_view> views(inputs.begin(), inputs.end());
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> outputs,
                        client::CallKernel(workload, artifact, views));

  Json files = Json::array();
  for (size_t o = 0; o < out.size(); ++o) {
    const ir::Tensor& tensor = workload.tensors[out[o]];
    const absl::Status written = WriteFileAtomically(
        options.out[o], absl::StrCat(client::NpyHeader(tensor.dtype, tensor.shape), outputs[o]));
    if (!written.ok()) return WithExitCode(written, kExitFailed);
    files.push_back({{"file", options.out[o]},
                     {"tensor", tensor.name},
                     {"dtype", std::string(ir::DTypeName(tensor.dtype))},
                     {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())}});
    if (!globals.json) {
      absl::PrintF("%s  %s: %s\n", options.out[o], tensor.name,
                   ir::TypeText(tensor.dtype, tensor.shape));
    }
  }
  if (globals.json) {
    Json json = BestJson(found.best);
    json["schedule"] = NameOf(found);
    json["outputs"] = std::move(files);
    return PrintJson(json);
  }
  absl::PrintF("computed with the %s, measured at %s\n", Describe(found),
               FormatLatency(client::LatencyNs(found.best)));
  if (!found.stored) {
    absl::PrintF("no best is known; find one with: hone tune %s\n", argument.title);
  }
  return absl::OkStatus();
}

}  // namespace

void AddRun(Command& app, Globals& globals) {
  Command& command = app.AddCommand("run", "Compute an operator on NumPy files");
  auto options = std::make_shared<RunOptions>();
  AddWorkloadWords(command, options->words, /*required=*/true);
  command.Add("--in", options->in,
              "A.npy of an input; once for each input, in order (hone operators lists them)",
              {OneWordPerUse(), Required()});
  command.Add("--out", options->out, "C.npy of an output; once for each output, in order",
              {OneWordPerUse(), Required()});
  command.Add("--tolerance", options->tolerance,
              "Tolerance that the operator was tuned with; 0 (default) is strict",
              {Range(0.0, 0.5)});
  Complete(command, globals,
           "Runs the best known kernel on this machine. If none is known, it builds, checks and "
           "times the untiled default schedule and the first schedule of a search, and runs the "
           "faster one. \"hone best\" does not return it, because it is not tuned.\n\n"
           "Files must have .npy version 1 or 2, be little-endian and in C order, and have the "
           "workload's shapes and types: f2 f4 f8 i1 u1 i4 i8 b1. bf16 is read as its bits, u2 or "
           "V2, and written as u2 (in NumPy: a.view(ml_dtypes.bfloat16)); f8e4m3 and f8e5m2 are u1 "
           "or V1, written as u1 (a.view(ml_dtypes.float8_e4m3fn), ml_dtypes.float8_e5m2).\n\n"
           "Examples:\n"
           "  hone run matmul m=512 n=512 k=512 --in A.npy --in B.npy --out C.npy\n"
           "  hone run mine.hone --in A.npy --out C.npy --out D.npy --json",
           [&globals, options] { return Run(globals, *options); });
}

}  // namespace hone::cli

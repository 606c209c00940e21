#include "worker/builder/build.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/ir/program.h"
#include "common/ir/reference_workload.h"
#include "common/ir/region.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/schedule/default_schedule.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "worker/builder/toolchain.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::builder {
namespace {

using record::BuildRequest;
using record::BuildResponse;
using record::Outcome;

double MillisecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// A step's error and the outcome it leads to.
struct Failure {
  Outcome outcome;
  absl::Status status;
};

// The design space's text begins with its workload. That is usually the text of the request's
// workload, which need not be parsed again then.
absl::StatusOr<Source> ReplayCandidate(const BuildRequest& request) {
  absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(request.space);
  if (!file.ok() || !absl::StartsWith(request.space, absl::StrCat(request.workload, "trace "))) {
    HONE_ASSIGN_OR_RETURN(const ir::Workload wanted, ir::ParseWorkload(request.workload));
    HONE_RETURN_IF_ERROR(file.status());
    if (file->workload.StructuralDigest() != wanted.StructuralDigest())
      return absl::InvalidArgumentError("the design space belongs to another workload");
  }
  return ReplayFile(*std::move(file), request.decisions);
}

// Schedules the reference kernel: everything in f64, each output's values and then its magnitudes.
// The schedule only has to be good enough for one run.
absl::StatusOr<Source> ScheduleReference(const BuildRequest& request,
                                         const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(request.workload));
  HONE_ASSIGN_OR_RETURN(ir::Workload reference, ir::ReferenceWorkload(workload));
  Source source{
      std::make_shared<const ir::Workload>(std::move(workload)),
      ir::Program::FromWorkload(std::make_shared<const ir::Workload>(std::move(reference))), ""};
  constexpr int kDoubleBits = 64;
  HONE_RETURN_IF_ERROR(
      schedule::ApplyDefaultSchedule(source.program, target.vector_bits / kDoubleBits));
  return source;
}

absl::StatusOr<BuildResponse> BuildProgram(const BuildRequest& request, Failure& failure) {
  BuildResponse response;
  failure.outcome = Outcome::kInvalid;
  HONE_ASSIGN_OR_RETURN(target::Target target, target::Target::FromText(request.target));
  // References are computed by the host of a GPU.
  if (request.reference && target.kind != target::Kind::kCpu) target = target::DetectHost();
  HONE_ASSIGN_OR_RETURN(const Source source, request.reference ? ScheduleReference(request, target)
                                                               : ReplayCandidate(request));
  response.facts.program_digest = source.program.StructuralDigest().ToHex();
  const auto compile_begin = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(source.program, target));
  response.facts.workspace_bytes = lowered.WorkspaceBytes(lowered.threads);

  absl::StatusOr<codegen::Code> code = codegen::Generate(lowered, target);
  // Exceeding a limit and unsupported code are the candidate's fault; anything else is an error of
  // the code generator.
  const bool refused =
      absl::IsInvalidArgument(code.status()) || absl::IsUnimplemented(code.status());
  if (!refused) failure.outcome = Outcome::kCompileError;
  HONE_RETURN_IF_ERROR(code.status());
  response.facts.compile_ms = MillisecondsSince(compile_begin);
  absl::StatusOr<Finished> finished = Finish(*code, target, request.artifact_dir);
  // Bad code is InvalidArgument; other errors come from the machine, such as a missing compiler.
  failure.outcome =
      absl::IsInvalidArgument(finished.status()) ? Outcome::kCompileError : Outcome::kDeviceLost;
  HONE_RETURN_IF_ERROR(finished.status());
  response.facts.link_ms = finished->link_ms;
  response.facts.code_bytes = finished->facts.code_bytes;
  response.facts.spills = finished->facts.spills;
  response.facts.loads_per_fma = finished->facts.loads_per_fma;

  failure.outcome = Outcome::kDeviceLost;
  // Artifacts for GPUs keep sources instead of an object file; for OpenCL, the binary has them.
  if (code->format != codegen::kElfObject) code->bytes = std::move(finished->sources);
  const std::string artifact =
      record::EncodeArtifact({.shared_object = std::move(finished->binary),
                              .object = std::move(code->bytes),
                              .workload = source.workload->ToText(),
                              .trace = source.trace,
                              .program = source.program.ToText(),
                              .target = target.KindText(),
                              .reads = record::ReadsText(ir::InputsThatRunReads(source.program))});
  response.artifact_digest = Sha256Of(artifact);
  HONE_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(request.artifact_dir, "/", response.artifact_digest),
                          artifact, Durability::kProcess));
  return response;
}

// Lowers the only candidate of a trace file.
absl::StatusOr<lower::LoweredProgram> LowerDecided(absl::string_view trace,
                                                   const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(trace));
  HONE_RETURN_IF_ERROR(
      schedule::CheckDecided(file.parsed, "code is generated for a single candidate"));
  const std::vector<int64_t> decisions = file.parsed.decisions;
  HONE_ASSIGN_OR_RETURN(const Source source, ReplayFile(std::move(file), decisions));
  return lower::Lower(source.program, target);
}

}  // namespace

absl::StatusOr<Source> ReplayFile(schedule::TraceFile file, absl::Span<const int64_t> decisions) {
  const auto workload = std::make_shared<const ir::Workload>(std::move(file.workload));
  const schedule::Trace& trace = file.parsed.trace;
  absl::StatusOr<ir::Program> program = schedule::Replay(workload, trace, decisions);
  if (!program.ok()) return absl::InvalidArgumentError(program.status().message());
  return Source{workload, *std::move(program),
                schedule::TraceFileText(*workload, trace, decisions)};
}

absl::StatusOr<std::string> CodeText(absl::string_view trace, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, LowerDecided(trace, target));
  HONE_ASSIGN_OR_RETURN(codegen::Code code,
                        codegen::Generate(lowered, target, {.keep_source = true}));
  return absl::StrCat(code.source, RemarksOn(code, target));
}

absl::StatusOr<codegen::ModelledCost> CostOfTrace(absl::string_view trace,
                                                  const target::Target& target) {
  if (target.kind != target::Kind::kCpu) {
    return absl::InvalidArgumentError(
        absl::StrCat(target.cpu, " is a GPU; only costs of CPUs can be modelled"));
  }
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, LowerDecided(trace, target));
  return codegen::ModelCost(lowered, target);
}

absl::StatusOr<target::Target> ReadTarget(absl::string_view text) {
  if (absl::StartsWith(text, "target ")) return target::Target::FromText(text);
  absl::StatusOr<target::Target> named = target::TargetByName(text);
  if (named.ok()) return named;
  return absl::InvalidArgumentError(named.status().message());
}

BuildResponse Build(const BuildRequest& request) {
  Failure failure{Outcome::kInvalid, absl::OkStatus()};
  absl::StatusOr<BuildResponse> response = BuildProgram(request, failure);
  if (response.ok()) return *std::move(response);
  return {.outcome = failure.outcome, .detail = std::string(response.status().message())};
}

}  // namespace hone::builder

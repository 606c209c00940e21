#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/record/artifact.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "tests/bench/compare/contender.h"
#include "tests/common/schedule/tolerance_needed.h"
#include "tests/temporary_folder.h"
#include "worker/builder/build.h"

namespace hone::compare {
namespace {

// Returns the names of the rewrites at the start of the trace.
std::string AlgorithmOf(const schedule::Trace& trace) {
  std::vector<absl::string_view> names;
  for (const schedule::Instruction& instruction : trace.instructions) {
    if (instruction.primitive->name == "rewrite") names.push_back(instruction.operands[0].text);
  }
  return absl::StrJoin(names, " ");
}

}  // namespace

absl::StatusOr<HoneSource> BuildTrace(const std::string& path, int threads) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(text);
  if (!file.ok())
    return absl::InvalidArgumentError(absl::StrCat(path, ":", file.status().message()));
  target::Target host = target::DetectHost();
  host.cores = threads;
  const TemporaryFolder folder;
  const record::BuildResponse built =
      builder::Build({.workload = file->workload.ToText(),
                      .space = schedule::TraceFileText(file->workload, file->parsed.trace),
                      .decisions = file->parsed.decisions,
                      .target = host.ToText(),
                      .artifact_dir = folder.path()});
  absl::StatusOr<record::Artifact> artifact = absl::InvalidArgumentError(
      absl::StrCat(path, ": ", record::OutcomeName(built.outcome), ": ", built.detail));
  if (built.outcome == record::Outcome::kOk) {
    HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(folder / built.artifact_digest));
    artifact = record::DecodeArtifact(bytes);
  }
  HONE_RETURN_IF_ERROR(artifact.status());
  HONE_ASSIGN_OR_RETURN(
      const double tolerance,
      schedule::ToleranceNeeded(file->workload, file->parsed.trace, file->parsed.decisions));
  // The first line may be a comment with the operator: "# conv2d n=1 h=56 …".
  absl::string_view first = absl::string_view(text).substr(0, text.find('\n'));
  if (!absl::ConsumePrefix(&first, "# ") ||
      op::FindOperator(first.substr(0, first.find(' '))) == nullptr) {
    first = {};
  }
  return HoneSource{.name = absl::StrCat("Hone ", std::filesystem::path(path).stem().string()),
                    .op = std::string(first),
                    .algorithm = AlgorithmOf(file->parsed.trace),
                    .tolerance = tolerance,
                    .workload = std::move(file->workload),
                    .shared_object = std::move(artifact->shared_object)};
}

}  // namespace hone::compare

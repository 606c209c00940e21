#include "tests/worker/builder/measured_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "worker/builder/build.h"

namespace hone {

MeasuredTrace::MeasuredTrace(runner::RunnerOptions options) {
  options.lock_path = lock_path();
  options.deadline = [](absl::Duration) { return nullptr; };
  runner_ = std::make_unique<runner::Runner>(std::move(options));
}

record::MeasureResult MeasuredTrace::Run(const std::string& text, double tolerance,
                                         const record::Policy& policy) {
  const absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(text);
  if (!file.ok())
    return {.outcome = record::Outcome::kInvalid, .detail = std::string(file.status().message())};
  const std::string workload = file->workload.ToText();
  record::BuildRequest build{.workload = workload,
                             .space = schedule::TraceFileText(file->workload, file->parsed.trace),
                             .decisions = file->parsed.decisions,
                             .target = target::DetectHost().ToText(),
                             .artifact_dir = folder_.path()};
  const record::BuildResponse built = builder::Build(build);
  if (built.outcome != record::Outcome::kOk)
    return {.outcome = built.outcome, .detail = built.detail};
  build.reference = true;
  const record::BuildResponse reference = builder::Build(build);
  if (reference.outcome != record::Outcome::kOk)
    return {.outcome = reference.outcome, .detail = reference.detail};
  return runner_->Run({.workload = workload,
                       .workload_digest = file->workload.StructuralDigest().ToHex(),
                       .artifact_path = folder_ / built.artifact_digest,
                       .reference_path = folder_ / reference.artifact_digest,
                       .reference_data = folder_ / "reference",
                       .policy = policy,
                       .tolerance = tolerance,
                       .seed = 1});
}

}  // namespace hone

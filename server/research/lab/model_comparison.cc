#include "server/research/lab/model_comparison.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/actor/job_codec.h"
#include "server/store/store.h"

namespace hone::lab {
namespace {

absl::Status WriteSet(const RecordedSet& set, store::Store& store) {
  HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(set.spaces[0]));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(set.target));
  const auto ignore = [](absl::Status) {};  // Flush reports errors
  const std::string workload = file.workload.StructuralDigest().ToHex();
  store.PutText(workload, file.workload.ToText(), ignore);
  std::vector<std::string> spaces;
  for (const std::string& text : set.spaces) {
    spaces.push_back(DigestOf(text).ToHex());
    store.PutText(spaces.back(), text, ignore);
  }
  store.PutJob(
      {.id = set.name,
       .request = job::EncodeSpec(
           {.workload = file.workload.ToText(), .target_key = target.Key(), .target = set.target}),
       .state = "done",
       .created_unix_ms = set.recorded_unix_ms},
      ignore);
  for (const RecordedCandidate* candidate : FirstCandidates(set)) {
    const Measurement& measured = set.measurements[candidate->measurement];
    record::Record record{.workload_digest = workload,
                          .op = file.workload.name,
                          .target = target.Key(),
                          .candidate = {spaces[candidate->space], candidate->decisions},
                          .job_id = set.name,
                          .created_unix_ms = set.recorded_unix_ms};
    record.policy.name = "screen";
    record.result.outcome = measured.outcome;
    record.result.latency_ns = measured.latency_ns;
    record.result.dispersion = measured.dispersion;
    store.Append(std::move(record), [](absl::StatusOr<record::Record>) {});
  }
  return store.Flush();
}

}  // namespace

absl::Status WriteSetsToStore(const std::vector<RecordedSet>& sets, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, store::OpenSqliteStore(path));
  for (const RecordedSet& set : sets) HONE_RETURN_IF_ERROR(WriteSet(set, *store));
  return absl::OkStatus();
}

absl::StatusOr<job::ModelEvaluation> EvaluateOnSets(const std::vector<RecordedSet>& sets,
                                                    const job::EvaluationQuery& query) {
  std::string folder = (std::filesystem::temp_directory_path() / "hone-lab-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return ErrnoStatus(errno, absl::StrCat("making ", folder));
  const absl::Cleanup remove_folder = [&folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  };
  const std::string path = folder + "/hone.db";
  HONE_RETURN_IF_ERROR(WriteSetsToStore(sets, path));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, store::OpenSqliteStore(path));
  const std::unique_ptr<job::TaskEnvironment> environment =
      job::MakeCompilerEnvironment(/*threads=*/1);
  const SystemClock clock;
  return job::EvaluateModels({.clock = &clock,
                              .store = store.get(),
                              .environment = environment.get(),
                              .pause = [] { return absl::OkStatus(); }},
                             query);
}

std::string EvaluationText(const job::ModelEvaluation& evaluation) {
  std::string text = absl::StrFormat(
      "%d candidates of %d workloads; %s\n\n| model | features | held out | top-1 | top-5 | peak | "
      "pairs | RMSE | calibration | in 1 spread | in 2 | µs each | train ms "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      evaluation.candidates, evaluation.tasks,
      evaluation.left_out.Total() > 0 ? evaluation.left_out.ToText() : "none left out");
  for (const job::ModelScore& score : evaluation.scores) {
    absl::StrAppendFormat(
        &text,
        "| %s | %s | %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f | %.2f | %.2f | %.0f |\n",
        score.model, score.feature_set, score.held_out, score.top1, score.top5, score.peak,
        score.pairwise, score.rmse, score.calibration_error, score.coverage1, score.coverage2,
        score.predict_us, score.train_ms);
  }
  return text;
}

}  // namespace hone::lab

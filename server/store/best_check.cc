#include "server/store/best_check.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::store {

absl::Status CheckPublishable(
    const record::Record& record,
    const std::function<absl::StatusOr<bool>(const std::string&)>& has_text,
    const std::function<absl::StatusOr<bool>(const std::string&)>& has_artifact) {
  const auto refuse = [&](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("record ", record.id, " cannot be published as best: ", why));
  };
  const auto missing = [&](absl::string_view what) {
    return refuse(absl::StrCat(what, " is not in the store"));
  };
  if (record.policy.name != "confirm") {
    const bool screened = record.policy.name == "screen";
    return refuse(
        screened ? "it comes from a search, and was not confirmed"
                 : absl::StrCat("it was measured as '", record.policy.name, "', not confirmed"));
  }
  if (record.result.outcome != record::Outcome::kOk) {
    return refuse(absl::StrCat("its outcome is ", record::OutcomeName(record.result.outcome)));
  }
  if (record.quarantined) return refuse("it is quarantined");
  HONE_ASSIGN_OR_RETURN(const bool workload, has_text(record.workload_digest));
  if (!workload) return missing("the text of its workload");
  HONE_ASSIGN_OR_RETURN(const bool space, has_text(record.candidate.space_digest));
  if (!space) return missing("the text of its design space");
  HONE_ASSIGN_OR_RETURN(const bool artifact, has_artifact(record.result.artifact_digest));
  if (!artifact) return missing("its kernel");
  return absl::OkStatus();
}

absl::Status NoBestError(const BestQuery& query) {
  return absl::NotFoundError(absl::StrCat("no best of the workload is known on ", query.target,
                                          " with tolerance ", query.tolerance));
}

absl::Status CheckTask(const record::Record& record, const TaskKey& task) {
  if (record.workload_digest == task.workload_digest && record.target == task.target &&
      record.tolerance == task.tolerance) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "record ", record.id, " is of ",
      record.workload_digest == task.workload_digest ? "this" : "another", " workload, a ",
      record.op, ", on ", record.target, " with tolerance ", record.tolerance,
      "; the best to replace is on ", task.target, " with tolerance ", task.tolerance));
}

absl::Status NoPinError(const TaskKey& task) {
  return absl::NotFoundError(absl::StrCat("no best of the workload is pinned on ", task.target,
                                          " with tolerance ", task.tolerance));
}

}  // namespace hone::store

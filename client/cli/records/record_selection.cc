#include "client/cli/records/record_selection.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/command.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/workload_argument.h"
#include "common/base/status_macros.h"
#include "common/record/record.h"

namespace hone::cli {
namespace {

// The time `age` ago, such as "30d".
absl::StatusOr<int64_t> Ago(const std::string& age) {
  HONE_ASSIGN_OR_RETURN(const absl::Duration duration, ParseDuration(age));
  return absl::ToUnixMillis(absl::Now() - duration);
}

}  // namespace

void AddSelection(Command& command, RecordSelection& selection) {
  AddWorkloadWords(command, selection.words, /*required=*/false);
  command.Add("--op", selection.op, "Only records of workloads with this name", {NotEmpty()});
  command.Add("--job", selection.job, "Only records of this job", {NotEmpty()});
  command.Add("--since", selection.since,
              "Only records from the last 2h, 30d, …; a number alone means seconds", {NotEmpty()});
  command.Add("--until", selection.until,
              "Only records older than 2h, 30d, …; a number alone means seconds", {NotEmpty()});
  command.Add("--outcome", selection.outcome, "Only records with this outcome: ok, crash, …",
              {NotEmpty()});
  command.Add("--proposer", selection.proposer,
              "Only records of schedules that this program proposed", {NotEmpty()});
  command.AddFlag("--best", selection.best, "Only the published bests");
  command.AddFlag("--quarantined", selection.quarantined, "Only quarantined records");
  command.AddFlag("--not-quarantined", selection.not_quarantined, "No quarantined records",
                  {Excludes("--quarantined")});
}

absl::StatusOr<v1::ListRecordsRequest> ReadSelection(const RecordSelection& selection) {
  v1::ListRecordsRequest filter;
  filter.set_operator_(selection.op);
  filter.set_job_id(selection.job);
  filter.set_proposer(selection.proposer);
  filter.set_best_only(selection.best);
  if (!selection.outcome.empty()) {
    if (const auto known = record::OutcomeFromName(selection.outcome); !known.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--outcome: ", known.status().message(), "; the outcomes are ",
          absl::StrJoin(record::AllOutcomes(), ", ", [](std::string* out, record::Outcome each) {
            absl::StrAppend(out, record::OutcomeName(each));
          })));
    }
    filter.set_outcome(selection.outcome);
  }
  if (selection.quarantined) filter.set_quarantine(v1::QUARANTINE_ONLY);
  if (selection.not_quarantined) filter.set_quarantine(v1::QUARANTINE_NONE);
  if (!selection.words.empty()) {
    HONE_ASSIGN_OR_RETURN(const WorkloadArgument argument, ReadWorkloadArgument(selection.words));
    filter.set_workload_digest(argument.workload.StructuralDigest().ToHex());
  }
  if (!selection.since.empty()) {
    HONE_ASSIGN_OR_RETURN(const int64_t since, Ago(selection.since));
    filter.set_since_unix_ms(since);
  }
  if (!selection.until.empty()) {
    HONE_ASSIGN_OR_RETURN(const int64_t until, Ago(selection.until));
    filter.set_until_unix_ms(until);
  }
  return filter;
}

absl::Status CompleteSelection(Session& session, v1::ListRecordsRequest& filter) {
  HONE_ASSIGN_OR_RETURN(*filter.mutable_target(), session.GivenTargetKey());
  if (filter.job_id().empty()) return absl::OkStatus();
  return session.connection().GetJob(filter.job_id()).status();  // NotFound if it does not exist
}

int64_t RecordsOfExport(absl::string_view last_line) {
  const Json line = Json::parse(last_line, nullptr, /*allow_exceptions=*/false);
  const bool complete = line.is_object() && line.contains("end") && line["end"].is_object();
  return complete ? line["end"].value("records", int64_t{0}) : 0;
}

}  // namespace hone::cli

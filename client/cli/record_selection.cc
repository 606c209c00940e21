#include "client/cli/record_selection.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/workload_argument.h"
#include "common/base/status_macros.h"
#include "common/record/record.h"

namespace hone::cli {
namespace {

// The moment that lies so long ago, "30d".
absl::StatusOr<int64_t> Ago(const std::string& age) {
  HONE_ASSIGN_OR_RETURN(const absl::Duration duration, ParseDuration(age));
  return absl::ToUnixMillis(absl::Now() - duration);
}

}  // namespace

void AddSelection(CLI::App& command, RecordSelection& selection) {
  AddWorkloadWords(command, selection.words, /*required=*/false);
  command.add_option("--op", selection.op, "Only of workloads with this name")->check(NotEmpty());
  command.add_option("--job", selection.job, "Only of this job")->check(NotEmpty());
  command.add_option("--since", selection.since, "Only of the last 2h, 30d, …")->check(NotEmpty());
  command.add_option("--until", selection.until, "Only older than 2h, 30d, …")->check(NotEmpty());
  command.add_option("--outcome", selection.outcome, "Only with this outcome: ok, crash, …")
      ->check(NotEmpty());
  command.add_flag("--best", selection.best, "Only the published bests");
  CLI::Option* const only =
      command.add_flag("--quarantined", selection.quarantined, "Only quarantined ones");
  command.add_flag("--not-quarantined", selection.not_quarantined, "No quarantined ones")
      ->excludes(only);
}

absl::StatusOr<client::RecordFilter> ReadSelection(const RecordSelection& selection) {
  client::RecordFilter filter;
  filter.op = selection.op;
  filter.job = selection.job;
  filter.best_only = selection.best;
  if (!selection.outcome.empty()) {
    if (const auto known = record::OutcomeFromName(selection.outcome); !known.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--outcome: ", known.status().message(), "; there are ",
          absl::StrJoin(record::AllOutcomes(), ", ", [](std::string* out, record::Outcome each) {
            absl::StrAppend(out, record::OutcomeName(each));
          })));
    }
    filter.outcome = selection.outcome;
  }
  if (selection.quarantined) filter.quarantined = client::Quarantined::kOnly;
  if (selection.not_quarantined) filter.quarantined = client::Quarantined::kNone;
  if (!selection.words.empty()) {
    HONE_ASSIGN_OR_RETURN(const WorkloadArgument argument, ReadWorkloadArgument(selection.words));
    filter.workload_digest = argument.workload.StructuralDigest().ToHex();
  }
  if (!selection.since.empty()) {
    HONE_ASSIGN_OR_RETURN(filter.since_unix_ms, Ago(selection.since));
  }
  if (!selection.until.empty()) {
    HONE_ASSIGN_OR_RETURN(filter.until_unix_ms, Ago(selection.until));
  }
  return filter;
}

absl::Status CompleteSelection(const Globals& globals, Session& session,
                               client::RecordFilter& filter) {
  if (globals.target_given) {
    HONE_ASSIGN_OR_RETURN(filter.target, session.TargetKey());
  }
  if (filter.job.empty()) return absl::OkStatus();
  return session.connection().GetJob(filter.job).status();  // there is one
}

}  // namespace hone::cli

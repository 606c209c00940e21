#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/network_output.h"
#include "client/cli/output/table.h"
#include "client/cli/records/known_best.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/run_job.h"
#include "client/cli/workload_argument.h"
#include "common/base/status_macros.h"
#include "common/record/given_inputs.h"
#include "common/record/proto_convert.h"

namespace hone::cli {
namespace {

struct RevalidateOptions {
  std::vector<std::string> words;
  int top = 3;
  bool older_codegen = false;
  bool all = false;
};

// A best and the result of its revalidation.
struct Revalidated {
  record::Record before;
  v1::Job job;
  bool Worked() const { return job.state() == v1::JOB_STATE_DONE && job.has_best(); }
};

// The current environment of the target's workers.
absl::StatusOr<record::Environment> EnvironmentToday(client::Connection& connection,
                                                     const std::string& target) {
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::WorkerInfo> workers, connection.ListWorkers());
  for (const v1::WorkerInfo& worker : workers) {
    if (!worker.connected() || !worker.can_run() || worker.target() != target) continue;
    if (worker.facts().codegen_version() > 0) return record::FromProto(worker.facts());
    return absl::FailedPreconditionError(absl::StrCat("no connected worker builds for ", target,
                                                      "; start hone-worker on a machine with "
                                                      "hone-builder"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no worker of ", target, " is connected; nothing can be measured again"));
}

bool IsDue(const RevalidateOptions& options, const record::Record& best,
           const record::Environment& today) {
  if (options.all) return true;
  // Version 0 means that the version is unknown, which is always due.
  const bool older = best.environment.codegen_version < today.codegen_version;
  // Other seeded inputs may have measured what real data never cost.
  const std::string& inputs = best.result.inputs;
  if (inputs != record::kSeededInputs && !record::AreGiven(inputs)) return true;
  return options.older_codegen ? older : best.environment != today;
}

absl::StatusOr<std::string> TargetOf(Session& session) {
  HONE_ASSIGN_OR_RETURN(std::string target, session.TargetForTuning());
  if (target != "native") return target;
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::WorkerInfo> workers,
                        session.connection().ListWorkers());
  for (const v1::WorkerInfo& worker : workers) {
    if (!worker.can_run()) continue;
    if (target != "native" && target != worker.target()) {
      return absl::InvalidArgumentError(
          "the server has workers of several targets; name one with --target");
    }
    target = worker.target();
  }
  return target;
}

// Returns the published bests that are due, and the best confirmed records of operators without a
// published best. The latter may be imported and never have been built here.
absl::StatusOr<std::vector<record::Record>> FindDue(
    Session& session, const RevalidateOptions& options,
    const std::optional<WorkloadArgument>& argument) {
  HONE_ASSIGN_OR_RETURN(const std::string target, TargetOf(session));
  HONE_ASSIGN_OR_RETURN(const record::Environment today,
                        EnvironmentToday(session.connection(), target));
  v1::ListRecordsRequest filter;
  filter.set_target(target);
  filter.set_best_only(true);
  if (argument.has_value()) {
    filter.set_workload_digest(argument->workload.StructuralDigest().ToHex());
  }
  HONE_ASSIGN_OR_RETURN(std::vector<record::Record> due,
                        session.connection().ListRecords(filter, /*limit=*/0));
  filter.set_best_only(false);
  filter.set_unpublished_best(true);
  HONE_ASSIGN_OR_RETURN(std::vector<record::Record> unpublished,
                        session.connection().ListRecords(filter, /*limit=*/0));
  if (due.empty() && unpublished.empty()) {
    return NothingKnownError(absl::StrCat("no best of ",
                                          argument.has_value() ? argument->title : "any operator",
                                          " is known on ", target));
  }
  const auto not_due = [&](const record::Record& best) { return !IsDue(options, best, today); };
  std::erase_if(due, not_due);
  if (options.older_codegen) std::erase_if(unpublished, not_due);
  due.insert(due.end(), unpublished.begin(), unpublished.end());
  return due;
}

absl::StatusOr<FollowedJob> RevalidateOne(Session& session, const RevalidateOptions& options,
                                          const record::Record& best) {
  v1::CreateJobRequest spec;
  spec.set_workload_digest(best.workload_digest);
  spec.set_target(best.target);
  spec.set_tolerance(best.tolerance);
  spec.set_max_trials(options.top);
  spec.set_revalidate(options.top);
  return RunJob(session, spec);
}

std::string CodeText(const record::Record& record) {
  const int version = record.environment.codegen_version;
  return version > 0 ? absl::StrCat(version) : "unknown";
}

void PrintReport(const std::vector<Revalidated>& all) {
  Table table({Left("workload"), Right("before"), Right("code"), Right("after"), Right("code"),
               Right("ratio"), Right("quarantined"), Left("")});
  for (const Revalidated& each : all) {
    const double before = record::SteadyLatencyNs(each.before.result);
    const double after = each.Worked() ? each.job.best().latency_ns() : 0;
    const bool pinned = each.Worked() && each.job.best().pinned_unix_ms() > 0;
    const bool same =
        each.Worked() && client::RecordOf(each.job.best()).candidate == each.before.candidate;
    table.AddRow({DescribeJob(each.job), FormatLatency(before), CodeText(each.before),
                  FormatLatency(after),
                  each.Worked() ? CodeText(client::RecordOf(each.job.best())) : "-",
                  after > 0 ? absl::StrFormat("%.3f", after / before) : "-",
                  absl::StrCat(each.job.quarantined()),
                  !each.Worked() ? WithRepeatedOptions(each.job.error())
                  : pinned       ? PinText(each.job.best())
                  : same         ? "the same schedule"
                                 : "another schedule"});
  }
  table.Print();
}

Json ReportJson(const std::vector<Revalidated>& all) {
  Json list = Json::array();
  for (const Revalidated& each : all) {
    list.push_back(
        {{"operator", each.before.op},
         {"workload_digest", each.before.workload_digest},
         {"target", each.before.target},
         {"before", ToJson(each.before)},
         {"after", each.Worked() ? ToJson(client::RecordOf(each.job.best())) : Json(nullptr)},
         {"quarantined_count", each.job.quarantined()},
         {"state", client::JobStateName(each.job.state())},
         {"error", each.job.error()},
         {"job", each.job.id()}});
  }
  return {{"revalidated", std::move(list)}};
}

absl::Status CheckWorked(const std::vector<Revalidated>& all) {
  const auto failed =
      std::count_if(all.begin(), all.end(), [](const Revalidated& each) { return !each.Worked(); });
  if (failed == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(failed, " of ", all.size(),
                                         " could not be confirmed again; those with a wrong "
                                         "schedule are no longer published"));
}

absl::Status Revalidate(const Globals& globals, const RevalidateOptions& options) {
  std::optional<WorkloadArgument> argument;
  if (!options.words.empty()) {
    HONE_ASSIGN_OR_RETURN(argument, ReadWorkloadArgument(options.words));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/true));
  HONE_RETURN_IF_ERROR(session->TargetForTuning().status());  // fail before waiting for a worker
  HONE_RETURN_IF_ERROR(session->WaitForWorker([] { return true; }));
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> due,
                        FindDue(*session, options, argument));
  std::vector<Revalidated> all;
  absl::Status cancelled;
  for (const record::Record& best : due) {
    HONE_ASSIGN_OR_RETURN(FollowedJob followed, RevalidateOne(*session, options, best));
    cancelled = CheckNotCancelled(followed);
    all.push_back({best, std::move(followed.job)});
    if (!cancelled.ok()) break;
  }
  const absl::Status result = cancelled.ok() ? CheckWorked(all) : cancelled;
  if (globals.json) return PrintJson(ReportJson(all), result);
  if (all.empty()) {
    absl::PrintF(
        "every best was measured with the current code generator in the current environment; "
        "--all confirms them again\n");
  } else {
    PrintReport(all);
  }
  return result;
}

}  // namespace

void AddRevalidate(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "revalidate",
      "Measure the best schedules again after a change of the code generator or environment");
  auto options = std::make_shared<RevalidateOptions>();
  AddWorkloadWords(command, options->words, /*required=*/false);
  command.Add("--top", options->top,
              "Measure this many stored schedules of each operator (default 3)", {Range(1, 64)});
  command.AddFlag(
      "--older-codegen", options->older_codegen,
      "Only bests from an older code generator (default: bests from another code generator or "
      "environment)");
  command.AddFlag("--all", options->all,
                  "All bests, even if the code generator and the environment are unchanged",
                  {Excludes("--older-codegen")});
  Complete(command, globals,
           "Without an operator, all bests of the target are revalidated, imported ones too, which "
           "are always due, and so are those that were measured on other inputs. "
           "Schedules are built again and confirmed as at the end of tuning. The "
           "fastest is published, even if it is slower than the previous best. A schedule that no "
           "longer replays, or gives another program or output, is quarantined. A pinned best is "
           "measured again and stays as it was built; it is withdrawn, with its pin, if its "
           "schedule cannot be built any more, or gives another program or a wrong output.\n\n"
           "Examples:\n"
           "  hone revalidate\n"
           "  hone revalidate matmul m=1024 n=1024 k=1024 --top 8 --all\n"
           "  hone revalidate --older-codegen --json",
           [&globals, options] { return Revalidate(globals, *options); });
}

}  // namespace hone::cli

#include "client/cli/records/known_best.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/running_job.h"
#include "common/base/status_macros.h"
#include "common/record/origin.h"

namespace hone::cli {
namespace {

// The number of look-ups that are in memory at a time.
constexpr size_t kBatch = 1024;
// The number of records among which NewestOf looks for those with the right tolerance.
constexpr int kNewest = 20;

// Returns successful measurements of a workload: the first ones that the filter lists. None if the
// server does not answer.
std::vector<record::Record> MeasurementsOf(Session& session, v1::ListRecordsRequest filter,
                                           const std::string& target, double tolerance,
                                           const WorkloadArgument& argument) {
  filter.set_workload_digest(argument.workload.StructuralDigest().ToHex());
  filter.set_target(target);
  filter.set_outcome("ok");
  absl::StatusOr<std::vector<record::Record>> measured =
      session.connection().ListRecords(filter, kNewest);
  if (!measured.ok()) return {};
  std::erase_if(*measured,
                [&](const record::Record& record) { return record.tolerance != tolerance; });
  return *std::move(measured);
}

// The newest ones, the newest first.
std::vector<record::Record> NewestOf(Session& session, const std::string& target, double tolerance,
                                     const WorkloadArgument& argument) {
  v1::ListRecordsRequest filter;
  filter.set_newest_first(true);
  return MeasurementsOf(session, std::move(filter), target, tolerance, argument);
}

// Returns the job of the fastest measurement that was made here, was not disturbed, and whose
// output was checked. Returns "" if there is no such measurement.
std::string FastestJobOf(Session& session, const std::string& target, double tolerance,
                         const WorkloadArgument& argument) {
  v1::ListRecordsRequest filter;
  filter.set_order(v1::RECORD_ORDER_LATENCY);
  filter.set_quarantine(v1::QUARANTINE_NONE);
  for (const record::Record& record :
       MeasurementsOf(session, std::move(filter), target, tolerance, argument)) {
    if (!record::IsImported(record.job_id) && record::OutputWasChecked(record.result)) {
      return record.job_id;
    }
  }
  return "";
}

// Returns UnconfirmedJobIn, or "" if that job was made by hone run, which confirms nothing.
std::string TuningJobIn(Session& session, absl::Span<const record::Record> newest) {
  const std::string id = UnconfirmedJobIn(newest);
  if (id.empty()) return "";
  const absl::StatusOr<v1::Job> job = session.connection().GetJob(id);
  return job.ok() && job->request().unpublished() ? "" : id;
}

// Returns a hint to append to the message that nothing is known of a workload: what the store has
// of it nevertheless. "" if it has nothing.
std::string HintOf(Session& session, const std::string& target, double tolerance,
                   const WorkloadArgument& argument) {
  const std::vector<record::Record> newest = NewestOf(session, target, tolerance, argument);
  const std::string job = TuningJobIn(session, newest);
  if (record::IsImported(job)) return "; the candidates that were imported are not confirmed";
  if (!job.empty()) {
    return absl::StrCat("; job ", job, " measured candidates, but none of them is confirmed");
  }
  const auto forgotten = std::find_if(newest.begin(), newest.end(), record::IsForgotten);
  if (forgotten == newest.end()) return "";
  return absl::StrCat("; what was known was ", forgotten->quarantine_reason);
}

}  // namespace

std::string HowToFind(Session& session, const std::string& target, double tolerance,
                      const WorkloadArgument& argument) {
  const std::optional<RunningJob> running =
      FindRunningJob(session, {argument.workload.StructuralDigest().ToHex()}, target, tolerance);
  if (running.has_value()) return absl::StrCat("; ", RunningJobText(*running, 1));
  std::string imported = ImportedHint(session, target, &argument);
  if (!imported.empty()) return imported;
  return absl::StrCat(
      HintOf(session, target, tolerance, argument), "; find one with: ",
      SuggestedMeasurement(absl::StrCat("tune ", argument.words, ToleranceOption(tolerance))));
}

void AddBestWords(Command& command, BestWords& words, bool required, Names names) {
  AddWorkloadWords(command, words.words, required, names);
  command.Add("--tolerance", words.tolerance,
              "Tolerance that the operator was tuned with; 0 (default) is strict",
              {Range(0.0, 0.5)});
}

std::string NamedTask::Title() const {
  return absl::StrCat(argument.title, " on ", task.target,
                      task.tolerance == 0 ? "" : absl::StrCat(" with tolerance ", task.tolerance));
}

absl::StatusOr<NamedTask> OpenTask(const Globals& globals, const BestWords& words) {
  HONE_ASSIGN_OR_RETURN(WorkloadArgument argument, ReadWorkloadArgument(words.words));
  NamedTask named{.argument = std::move(argument)};
  HONE_ASSIGN_OR_RETURN(named.session, Session::Open(globals));
  named.task = {.workload_digest = named.argument.workload.StructuralDigest().ToHex(),
                .tolerance = words.tolerance};
  HONE_ASSIGN_OR_RETURN(named.task.target, named.session->TargetKey());
  return named;
}

absl::StatusOr<KnownBest> LookUpBest(const Globals& globals, const BestWords& words,
                                     const LookUpOptions& options) {
  HONE_ASSIGN_OR_RETURN(WorkloadArgument argument, ReadWorkloadArgument(words.words));
  return LookUpBest(globals, std::move(argument), words.tolerance, options);
}

Unconfirmed UnconfirmedJobs::Find(const WorkloadArgument& argument) {
  if (looked_up_++ >= most_) return {};
  const std::string newest = UnconfirmedJobIn(NewestOf(session_, target_, tolerance_, argument));
  if (newest.empty()) return {};
  Unconfirmed found{.job = newest};
  const std::string digest = argument.workload.StructuralDigest().ToHex();
  // The fastest measurement may be of an earlier job. If all are disturbed, the newest job shows
  // the fastest of these.
  std::vector<std::string> jobs = {FastestJobOf(session_, target_, tolerance_, argument)};
  if (jobs[0] != newest) jobs.push_back(newest);
  for (const std::string& id : jobs) {
    if (id.empty() || record::IsImported(id)) continue;
    absl::StatusOr<v1::Job> job = session_.connection().GetJob(id);
    if (!job.ok()) continue;
    if (id == newest && job->request().unpublished()) found.job.clear();
    if (found.measured.has_value() || !job->has_best()) continue;
    if (IsUsable(job->best(), digest)) found.measured = std::move(*job->mutable_best());
  }
  return found;
}

bool IsUsable(const v1::Best& measured, absl::string_view workload_digest) {
  const record::Record record = client::RecordOf(measured);
  return record.workload_digest == workload_digest && measured.latency_ns() > 0 &&
         !measured.trace().empty() && record.result.outcome == record::Outcome::kOk &&
         record::OutputWasChecked(record.result) && !record::IsForgotten(record);
}

std::string UnconfirmedJobIn(absl::Span<const record::Record> newest) {
  if (newest.empty()) return "";
  const std::string& job = newest.front().job_id;
  const bool forgotten =
      std::any_of(newest.begin(), newest.end(), [&](const record::Record& record) {
        return record.job_id == job && record::IsForgotten(record);
      });
  return forgotten ? "" : job;
}

std::string UnknownText(const std::string& unconfirmed_job) {
  if (unconfirmed_job.empty()) return "nothing known";
  if (record::IsImported(unconfirmed_job)) return "imported, not confirmed";
  return absl::StrCat("job ", unconfirmed_job, ", not confirmed");
}

Json UnknownJson(const std::string& unconfirmed_job) {
  return unconfirmed_job.empty() || record::IsImported(unconfirmed_job) ? Json(nullptr)
                                                                        : Json(unconfirmed_job);
}

absl::StatusOr<v1::Best> FindBest(Session& session, const WorkloadArgument& argument,
                                  const std::string& target, double tolerance, bool nearest) {
  if (session.lock() == nullptr) {
    return session.connection().LookupBest(argument.text, target, tolerance, nearest);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Best> locked,
                        LockedBests(session, *session.lock(), {&argument, 1}, target, tolerance));
  return std::move(locked[0]);
}

absl::StatusOr<KnownBest> LookUpBest(const Globals& globals, WorkloadArgument argument,
                                     double tolerance, const LookUpOptions& options) {
  KnownBest known{.argument = std::move(argument)};
  HONE_ASSIGN_OR_RETURN(known.session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, known.session->TargetKey());
  absl::StatusOr<v1::Best> best =
      FindBest(*known.session, known.argument, target, tolerance, options.nearest);
  if (absl::IsNotFound(best.status())) {
    return NothingKnownError(absl::StrCat(
        "no schedule is known for ", known.argument.title,
        options.nearest ? absl::StrCat(", or for another ", known.argument.workload.name, ",") : "",
        " on ", target, options.hint,
        HowToFind(*known.session, target, tolerance, known.argument)));
  }
  HONE_RETURN_IF_ERROR(best.status());
  known.best = *std::move(best);
  return known;
}

std::string ImportedHint(Session& session, const std::string& target,
                         const WorkloadArgument* argument) {
  if (session.private_server() != nullptr && !session.IsHere(target)) return "";
  v1::ListRecordsRequest filter;
  filter.set_target(target);
  filter.set_unpublished_best(true);
  if (argument != nullptr) {
    filter.set_workload_digest(argument->workload.StructuralDigest().ToHex());
  }
  const absl::StatusOr<std::vector<record::Record>> imported =
      session.connection().ListRecords(filter, /*limit=*/1);
  if (!imported.ok() || imported->empty()) return "";
  return absl::StrCat(
      "; the store has imported records that this machine has not confirmed: "
      "\"",
      SuggestedCommandForTarget(absl::StrCat(
          "revalidate", argument == nullptr ? "" : absl::StrCat(" ", argument->words))),
      "\" measures them and publishes the best");
}

std::string PinText(const v1::Best& best) {
  return absl::StrCat("pinned ",
                      best.pinned_by().empty() ? "" : absl::StrCat("by ", best.pinned_by(), " "),
                      "on ", FormatTime(best.pinned_unix_ms()));
}

absl::StatusOr<std::vector<std::string>> VisitBests(
    Session& session, const std::vector<WorkloadArgument>& list, double tolerance, bool nearest,
    absl::FunctionRef<absl::Status(const WorkloadArgument&, const std::optional<v1::Best>&)>
        visit) {
  HONE_ASSIGN_OR_RETURN(const std::string target, session.TargetKey());
  std::vector<std::string> unknown;
  if (session.lock() != nullptr) {
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::Best> locked,
                          LockedBests(session, *session.lock(), list, target, tolerance));
    for (size_t i = 0; i < list.size(); ++i) HONE_RETURN_IF_ERROR(visit(list[i], locked[i]));
    return unknown;
  }
  for (size_t begin = 0; begin < list.size(); begin += kBatch) {
    const auto batch = absl::MakeConstSpan(list).subspan(begin, kBatch);
    std::vector<v1::LookupBestRequest> queries;
    for (const WorkloadArgument& argument : batch) {
      queries.push_back(client::BestQuery(argument.text, target, tolerance, nearest));
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<v1::Best>> bests,
                          session.connection().LookupBests(queries));
    for (size_t i = 0; i < bests.size(); ++i) {
      if (!bests[i].has_value()) unknown.push_back(batch[i].workload.StructuralDigest().ToHex());
      HONE_RETURN_IF_ERROR(visit(batch[i], bests[i]));
    }
  }
  return unknown;
}

absl::Status CheckAllKnown(Session& session, absl::Span<const std::string> unknown,
                           size_t workloads, const std::string& file, const std::string& target,
                           double tolerance, const std::string& words) {
  if (unknown.empty()) return absl::OkStatus();
  std::string what = absl::StrCat("no confirmed schedule is known for ", unknown.size(), " of the ",
                                  workloads, " workloads of ",
                                  file == "-"    ? "standard input"
                                  : file.empty() ? "the command line"
                                                 : file,
                                  " on ", target);
  const std::optional<RunningJob> running = FindRunningJob(session, unknown, target, tolerance);
  if (running.has_value()) {
    absl::StrAppend(&what, "; ", RunningJobText(*running, unknown.size()));
    if (running->tuned == unknown.size()) return NothingKnownError(what);
  }
  const std::string imported = ImportedHint(session, target, nullptr);
  return NothingKnownError(absl::StrCat(
      what, imported,
      file == "-"
          ? absl::StrCat("; ",
                         SuggestedMeasurement("tune --file FILE" + ToleranceOption(tolerance)),
                         " finds those of a file")
          : absl::StrCat("; find ", running.has_value() || !imported.empty() ? "the rest" : "them",
                         " with: ",
                         SuggestedMeasurement(absl::StrCat(
                             "tune ", file.empty() ? words : "--file " + ShellWord(file),
                             ToleranceOption(tolerance))))));
}

absl::StatusOr<record::Artifact> ArtifactOf(Session& session, const v1::Best& best) {
  const absl::StatusOr<std::string> bytes =
      session.connection().Artifact(best.record().result().artifact_digest());
  if (absl::IsNotFound(bytes.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel of record ", best.record().id(), " is no longer in the store; ",
                     SuggestedCommandForTarget("revalidate --all"), " builds it again"));
  }
  HONE_RETURN_IF_ERROR(bytes.status());
  return record::DecodeArtifact(*bytes);
}

}  // namespace hone::cli

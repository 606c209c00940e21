// Finalists from stored records: those of a revalidation, with the comparison of their first round
// with the records, and that of a search whose task has no published best.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/confirm/finalist.h"
#include "server/job/search/task_search.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// Returns whether the outcome is a property of the candidate and would be the same at another time.
bool IsLasting(record::Outcome outcome) {
  switch (outcome) {
    case record::Outcome::kInvalid:
    case record::Outcome::kCompileError:
    case record::Outcome::kCrash:
    case record::Outcome::kWrongOutput:
      return true;
    default:
      return false;
  }
}

// A stored candidate.
struct Stored {
  record::Record record;  // the latest confirmed one, else the best screened one
  double latency_ns = 0;
  std::string program;  // the latest digest; only results of builds have one
  bool IsConfirmed() const { return record.policy.name == "confirm"; }
};

bool IsBetterKnown(const record::Record& record, const Stored& than) {
  const bool confirmed = record.policy.name == "confirm";
  if (confirmed != than.IsConfirmed()) return confirmed;
  return confirmed || record::SteadyLatencyNs(record.result) < than.latency_ns;
}

// Returns all stored candidates that worked. Confirmed ones come first, because the fastest of many
// screened latencies are too low; both groups are sorted by latency. Sets `last_record`.
absl::StatusOr<std::vector<Stored>> ReadStored(const JobActor& job, const JobTask& task,
                                               int64_t& last_record) {
  std::map<Digest, Stored> known;
  const auto add = [&](const record::Record& record) {
    last_record = record.id;
    if (record.result.outcome != record::Outcome::kOk || record.quarantined ||
        record.tolerance != job.spec().tolerance) {
      return;
    }
    auto [entry, fresh] = known.try_emplace(CandidateDigest(record.candidate));
    Stored& stored = entry->second;
    const std::string& program = record.result.facts.program_digest;
    if (!program.empty()) stored.program = program;
    if (!fresh && !IsBetterKnown(record, stored)) return;
    stored.record = record;
    stored.latency_ns = record::SteadyLatencyNs(record.result);
  };
  HONE_RETURN_IF_ERROR(job.services().store->ForEachRecord(
      {.workload_digest = task.workload().digest, .target = job.spec().target_key}, add));
  std::vector<Stored> sorted;
  for (auto& [digest, stored] : known) sorted.push_back(std::move(stored));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Stored& a, const Stored& b) {
    if (a.IsConfirmed() != b.IsConfirmed()) return a.IsConfirmed();
    return a.latency_ns < b.latency_ns;
  });
  return sorted;
}

// Returns the best of a finished confirmation (RecordQuery::unpublished_best); nullopt if there is
// none.
absl::StatusOr<std::optional<record::Record>> FindUnpublishedBest(const JobActor& job,
                                                                  const JobTask& task) {
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> bests,
                        job.services().store->Query({.workload_digest = task.workload().digest,
                                                     .target = job.spec().target_key,
                                                     .unpublished_best = true}));
  for (const record::Record& record : bests) {
    if (record.tolerance == job.spec().tolerance) return record;
  }
  return std::nullopt;
}

// Returns a finalist without an artifact, so that the current code generator builds it. Returns
// nullopt, with a warning, if its design space cannot be read.
std::optional<Finalist> ToFinalist(const JobActor& job, const record::Record& record) {
  absl::StatusOr<std::string> space = job.services().store->GetText(record.candidate.space_digest);
  if (space.ok()) {
    return Finalist{.candidate = record.candidate,
                    .space = *std::move(space),
                    .trial = record.job_id == job.id() ? record.trial : record::kNoTrial,
                    .proposer = record.proposer,
                    .is_untiled = record.is_default};
  }
  spdlog::warn("job {}: the design space of record {} cannot be read: {}", job.id(), record.id,
               space.status().ToString());
  return std::nullopt;
}

// A slower default schedule is not measured only to compare it.
constexpr double kSlowDefaultNs = 0.2e9;

// Adds the default schedule to the candidates that a job only measures, for a speed-up.
void AddStoredDefault(const JobActor& job, const std::vector<Stored>& stored,
                      Finalists& finalists) {
  const auto untiled = std::find_if(stored.begin(), stored.end(), [](const Stored& each) {
    return each.record.is_default && each.latency_ns < kSlowDefaultNs;
  });
  if (untiled == stored.end()) return;
  // As the yardstick, it is measured in as many processes as the best, however slow it is.
  finalists.untiled = finalists.IndexOf(untiled->record.candidate);
  if (finalists.Has(finalists.untiled)) return;
  if (std::optional<Finalist> finalist = ToFinalist(job, untiled->record)) {
    finalists.list.push_back(*std::move(finalist));
  } else {
    finalists.untiled = -1;
  }
}

}  // namespace

void AddUnpublishedBest(const JobActor& job, const JobTask& task, Finalists& finalists) {
  const absl::StatusOr<std::optional<record::Record>> best = FindUnpublishedBest(job, task);
  if (!best.ok()) {
    spdlog::warn("job {}: the confirmed records cannot be read: {}", job.id(),
                 best.status().ToString());
    return;
  }
  if (!best->has_value()) return;
  const record::Record& record = **best;
  if (finalists.Has(finalists.IndexOf(record.candidate))) return;
  if (std::optional<Finalist> finalist = ToFinalist(job, record)) {
    finalists.list.push_back(*std::move(finalist));
  }
}

absl::StatusOr<Finalists> FindStoredFinalists(const JobActor& job, const JobTask& task) {
  Finalists finalists;
  HONE_ASSIGN_OR_RETURN(std::vector<Stored> sorted, ReadStored(job, task, finalists.last_record));
  // The best always comes first, so it is included and wins a tie. If none is published, this is
  // the best of an imported confirmation.
  const absl::StatusOr<store::BestRow> published = task.PublishedBest();
  if (!published.ok() && !absl::IsNotFound(published.status())) return published.status();
  std::optional<record::Record> best;
  if (published.ok()) {
    best = finalists.incumbent_record = published->record;
    finalists.pin = published->pin;
  } else {
    HONE_ASSIGN_OR_RETURN(best, FindUnpublishedBest(job, task));
  }
  if (best.has_value()) {
    std::stable_partition(sorted.begin(), sorted.end(), [&](const Stored& stored) {
      return stored.record.candidate == best->candidate;
    });
  }
  std::set<std::string> programs;  // equal programs count once
  for (const Stored& stored : sorted) {
    if (static_cast<int>(finalists.list.size()) >= job.spec().revalidate) break;
    const record::Record& record = stored.record;
    if (!stored.program.empty() && !programs.insert(stored.program).second) continue;
    std::optional<Finalist> finalist = ToFinalist(job, record);
    if (!finalist.has_value()) continue;
    if (published.ok() && record.candidate == published->record.candidate) {
      finalists.incumbent = static_cast<int>(finalists.list.size());
    }
    finalist->stored_program = stored.program;
    finalists.list.push_back(*std::move(finalist));
  }
  if (!finalists.list.empty()) {
    if (job.spec().unpublished) AddStoredDefault(job, sorted, finalists);
    return finalists;
  }
  return absl::NotFoundError(absl::StrCat("the store has no working candidate of the workload on ",
                                          job.spec().target_key, ": tune it first"));
}

std::string WhyStoredIsWrong(const Finalist& finalist, const record::MeasureResult& result) {
  const std::string& program = result.facts.program_digest;
  if (!program.empty() && !finalist.stored_program.empty() && program != finalist.stored_program) {
    return "its trace now gives another program";
  }
  if (!IsLasting(result.outcome)) return "";
  return absl::StrCat(record::OutcomeName(result.outcome), ": ", result.detail);
}

}  // namespace hone::job

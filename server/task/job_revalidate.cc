// A job without a search: the best stored candidates are built and confirmed again, after a change
// of the code generator or of the environment.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/task/job.h"
#include "server/task/job_messages.h"
#include "spdlog/spdlog.h"

namespace hone::task {
namespace {

// What says something about the candidate, and not about the moment.
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

// What is known of a stored candidate.
struct Stored {
  record::Record record;  // the latest confirmed one, else the best screened one
  double latency_ns = 0;
  std::string program;  // the latest digest: only results of builds have one
};

bool IsBetterKnown(const record::Record& record, const Stored& than) {
  const bool confirmed = record.policy.name == "confirm";
  if (confirmed != (than.record.policy.name == "confirm")) return confirmed;
  return confirmed || record::SteadyLatencyNs(record.result) < than.latency_ns;
}

}  // namespace

void Job::StartRevalidating() {
  doing_ = "choosing what is measured again";
  if (absl::Status status = FindStoredFinalists(); !status.ok()) {
    return End(JobState::kFailed, status);
  }
  state_.state = JobState::kConfirming;
  SetPhase("building the stored candidates again");
  ChooseDevice();
  Save();
  ShowState();
  confirmation_.emplace(static_cast<int>(finalists_.size()), incumbent_, spec_.seed,
                        options_.confirmation);
  NextRound();
}

absl::Status Job::FindStoredFinalists() {
  std::map<Digest, Stored> known;
  store::RecordQuery query{
      .workload_digest = workload_.digest, .target = spec_.target_key, .page_size = 1000};
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, services_.store->Query(query));
    for (const record::Record& record : page) {
      query.after_id = last_stored_record_ = record.id;
      if (record.result.outcome != record::Outcome::kOk || record.quarantined ||
          record.tolerance != spec_.tolerance) {
        continue;
      }
      auto [entry, fresh] = known.try_emplace(CandidateDigest(record.candidate));
      Stored& stored = entry->second;
      const std::string& program = record.result.facts.program_digest;
      if (!program.empty()) stored.program = program;
      if (!fresh && !IsBetterKnown(record, stored)) continue;
      stored.record = record;
      stored.latency_ns = record::SteadyLatencyNs(record.result);
    }
    if (static_cast<int>(page.size()) < query.page_size) break;
  }
  std::vector<Stored> sorted;
  for (auto& [digest, stored] : known) sorted.push_back(std::move(stored));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Stored& a, const Stored& b) { return a.latency_ns < b.latency_ns; });
  // The published one is always among them, and wins a tie.
  absl::StatusOr<store::BestRow> best =
      services_.store->LookupBest({.workload_digest = workload_.digest,
                                   .target = spec_.target_key,
                                   .tolerance = spec_.tolerance});
  if (!best.ok() && !absl::IsNotFound(best.status())) return best.status();
  if (best.ok()) {
    incumbent_record_ = best->record;
    std::stable_partition(sorted.begin(), sorted.end(), [&](const Stored& stored) {
      return stored.record.candidate == best->record.candidate;
    });
  }
  std::set<std::string> programs;  // equal programs are one finalist
  for (const Stored& stored : sorted) {
    if (static_cast<int>(finalists_.size()) >= spec_.revalidate) break;
    const record::Record& record = stored.record;
    if (!stored.program.empty() && !programs.insert(stored.program).second) continue;
    absl::StatusOr<std::string> space = services_.store->GetText(record.candidate.space_digest);
    if (!space.ok()) {
      spdlog::warn("job {}: the design space of record {} cannot be read: {}", id_, record.id,
                   space.status().ToString());
      continue;
    }
    if (best.ok() && record.candidate == best->record.candidate) {
      incumbent_ = static_cast<int>(finalists_.size());
    }
    // Without an artifact: today's code generator builds it.
    finalists_.push_back({.candidate = record.candidate,
                          .space = *std::move(space),
                          .trial = record.trial,
                          .stored_program = stored.program});
  }
  if (!finalists_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "nothing that worked is stored of the workload on ", spec_.target_key, ": tune it first"));
}

void Job::Judge(const Finalist& finalist, const record::Record& record) {
  const record::MeasureResult& result = record.result;
  const std::string& program = result.facts.program_digest;
  const bool stale =
      !program.empty() && !finalist.stored_program.empty() && program != finalist.stored_program;
  if (!stale && !IsLasting(result.outcome)) return;
  const std::string why =
      stale ? "its trace gives another program now"
            : absl::StrCat(record::OutcomeName(result.outcome), ": ", result.detail);
  spdlog::warn("job {}: the stored records of trial {} are quarantined: {}", id_, finalist.trial,
               why);
  ++state_.quarantined;
  services_.store->Quarantine(workload_.digest, spec_.target_key, finalist.candidate,
                              last_stored_record_, absl::StrCat("revalidation: ", why), Fence(),
                              [self = shared_from_this()](absl::Status status) {
                                if (status.ok()) return;
                                self->PostCall([status](Job& job) { job.OnNotStored(status); });
                              });
}

}  // namespace hone::task

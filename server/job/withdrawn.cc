#include "server/job/withdrawn.h"

#include <utility>
#include <vector>

#include "common/record/processes.h"

namespace hone::job {
namespace {

// Returns the record of a confirmed best as it is in the store; nullopt if it is not there.
std::optional<record::Record> StoredRecordOf(store::Store& store, const std::optional<Best>& best) {
  if (!best || !record::IsConfirmed(best->record)) return std::nullopt;
  absl::StatusOr<std::vector<record::Record>> stored =
      store.Query({.page_size = 1, .after_id = best->record.id - 1});
  if (!stored.ok() || stored->empty() || stored->front().id != best->record.id) {
    return std::nullopt;
  }
  return std::move(stored->front());
}

}  // namespace

bool IsStillConfirmed(store::Store& store, const std::optional<Best>& best) {
  const std::optional<record::Record> stored = StoredRecordOf(store, best);
  return stored && !stored->quarantined;
}

std::shared_ptr<const JobSnapshot> WithQuarantine(store::Store& store,
                                                  std::shared_ptr<const JobSnapshot> job) {
  if (!HasEnded(job->state)) return job;
  std::shared_ptr<JobSnapshot> marked;
  std::optional<record::Record> stored;
  for (const auto member : {&JobSnapshot::best, &JobSnapshot::own_best}) {
    const std::optional<Best>& best = (*job).*member;
    // Mostly, both are the same record.
    if (!stored || !best || stored->id != best->record.id) stored = StoredRecordOf(store, best);
    if (!stored || !stored->quarantined) continue;
    if (marked == nullptr) marked = std::make_shared<JobSnapshot>(*job);
    record::Record& record = ((*marked).*member)->record;
    record.quarantined = true;
    record.quarantine_reason = stored->quarantine_reason;
  }
  if (marked != nullptr) return marked;
  return job;
}

}  // namespace hone::job

#include "server/fleet/standing_changes.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hone::fleet {
absl::StatusOr<WorkerInfo> StandingChanges::Drain(const std::string& id, bool resume) {
  Worker* worker = parts_.registry->Find(id);
  if (worker == nullptr && parts_.standings->MayWork(id)) {
    return absl::NotFoundError(
        resume ? absl::StrCat("no worker ", id, " is connected, drained or removed")
               : absl::StrCat("there is no worker ", id));
  }
  if (const std::string other = parts_.standings->RefusedAs(id); resume && !other.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("worker ", id, " is the worker ", other,
                                                      ", which is refused; ", ResumeCommand(other),
                                                      " admits it again"));
  }
  Standing standing = parts_.standings->Own(id);
  if (standing.removed && !resume) {
    return absl::NotFoundError(absl::StrCat("worker ", id, " was removed, so it gets no work; ",
                                            ResumeCommand(id), " admits it again"));
  }
  standing.drained = !resume;
  if (resume) {
    standing.refused.clear();
    standing.removed = false;
    standing.identity.clear();
  }
  if (standing != parts_.standings->Own(id)) {
    parts_.events->StandingChanged(
        parts_.list->Of(id),
        absl::StrCat("was ", resume ? "resumed" : "drained", " by an administrator"));
  }
  const std::vector<std::string> names = parts_.standings->NamesOf(id);
  parts_.standings->Change(standing, /*drained=*/true, /*refused=*/resume);
  Apply(id);
  for (const std::string& name : names) {  // which may have been refused with it
    Worker* const other = parts_.registry->Find(name);
    if (other == nullptr || other == worker) continue;
    ApplyTo(*other);
    parts_.calls->Wake(*other);
  }
  if (worker != nullptr) parts_.calls->Wake(*worker);
  parts_.calls->Offer();
  return parts_.list->Of(id);
}

absl::StatusOr<int> StandingChanges::Remove(const std::string& id,
                                            const std::optional<std::string>& remembered) {
  Standing standing = parts_.standings->Own(id);
  if (standing.removed && parts_.registry->Find(id) == nullptr) {
    return absl::NotFoundError(absl::StrCat("worker ", id, " is already removed; ",
                                            ResumeCommand(id), " admits it again"));
  }
  const bool away = !parts_.standings->MayWork(id);
  if (parts_.registry->Find(id) == nullptr && !away && !remembered.has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no worker ", id));
  }
  standing.refused =
      absl::StrCat("an administrator removed it; ", ResumeCommand(id), " admits it again");
  standing.removed = true;
  if (standing.identity.empty()) standing.identity = parts_.standings->IdentityOf(id);
  if (standing.identity.empty()) standing.identity = remembered.value_or("");
  parts_.events->StandingChanged(parts_.list->Of(id), "was removed by an administrator");
  parts_.standings->Change(standing, /*drained=*/false, /*refused=*/true);
  const int requeued = Apply(id);
  Dismiss(id);
  parts_.calls->Offer();
  return requeued;
}

void StandingChanges::Distrust(const std::string& id, const std::string& why) {
  Standing standing = parts_.standings->Own(id);
  standing.refused = why;
  standing.identity = parts_.standings->IdentityOf(id);
  parts_.standings->Change(standing, /*drained=*/false, /*refused=*/true);
  Apply(id);
  if (parts_.options->on_standing == nullptr) return;
  parts_.deferred->Add(parts_.options->on_standing, id);
}

int StandingChanges::Apply(const std::string& id) {
  int taken = 0;
  const bool refused = !parts_.standings->Own(id).refused.empty();
  for (const std::string& name : parts_.standings->NamesOf(id)) {
    Worker* const worker = parts_.registry->Find(name);
    if (worker == nullptr || (name != id && !refused)) continue;
    taken += ApplyTo(*worker);
    if (name != id) parts_.calls->Wake(*worker);
  }
  return taken;
}

int StandingChanges::ApplyTo(Worker& worker) {
  const Standing standing = parts_.standings->Of(worker.id);
  const bool refused = !standing.refused.empty();
  worker.news.standing_told = false;
  // Otherwise, no other worker would retry the suspects.
  if (!parts_.standings->MayWork(worker.id)) worker.solo = false;
  parts_.calls->NoteHunger(worker);
  int taken = 0;
  const std::set<std::string> leases = parts_.book->Of(worker.id);
  for (const std::string& lease_id : leases) {
    const bool queued = parts_.book->Find(lease_id)->phase == LeasePhase::kQueued;
    if (!refused && !(standing.drained && queued)) continue;
    parts_.deliveries->TakeBack(lease_id);
    ++taken;
  }
  // The workers that may take its items may have changed.
  parts_.book->queue().RefreshAll();
  return taken;
}

void StandingChanges::Dismiss(const std::string& id) {
  for (const std::string& name : parts_.standings->NamesOf(id)) {
    Worker* const worker = parts_.registry->Find(name);
    if (worker == nullptr) continue;
    parts_.calls->Wake(*worker);
    parts_.calls->Answer(*worker);
    parts_.registry->Erase(name);
  }
}

}  // namespace hone::fleet

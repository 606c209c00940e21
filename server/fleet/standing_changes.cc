#include "server/fleet/standing_changes.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace hone::fleet {
absl::StatusOr<WorkerInfo> StandingChanges::Drain(const std::string& id, bool resume) {
  Worker* worker = parts_.registry->Find(id);
  if (worker == nullptr && parts_.standings->MayWork(id)) {
    return absl::NotFoundError(
        resume ? absl::StrCat("no worker ", id, " is connected, drained or removed")
               : absl::StrCat("there is no worker ", id));
  }
  Standing standing = parts_.standings->Of(id);
  if (standing.removed && !resume) {
    return absl::NotFoundError(absl::StrCat("worker ", id, " was removed, so it gets no work; ",
                                            ResumeCommand(id), " admits it again"));
  }
  standing.drained = !resume;
  if (resume) {
    standing.refused.clear();
    standing.removed = false;
  }
  if (standing != parts_.standings->Of(id)) {
    parts_.events->StandingChanged(
        parts_.list->Of(id),
        absl::StrCat("was ", resume ? "resumed" : "drained", " by an administrator"));
  }
  parts_.standings->Change(standing, /*drained=*/true, /*refused=*/resume);
  Apply(id);
  if (worker != nullptr) parts_.calls->Wake(*worker);
  parts_.calls->Offer();
  return parts_.list->Of(id);
}

absl::StatusOr<int> StandingChanges::Remove(const std::string& id) {
  Standing standing = parts_.standings->Of(id);
  if (standing.removed && parts_.registry->Find(id) == nullptr) {
    return absl::NotFoundError(absl::StrCat("worker ", id, " is already removed; ",
                                            ResumeCommand(id), " admits it again"));
  }
  const bool away = !parts_.standings->MayWork(id);
  if (parts_.registry->Find(id) == nullptr && !away) {
    return absl::NotFoundError(absl::StrCat("there is no worker ", id));
  }
  standing.refused =
      absl::StrCat("an administrator removed it; ", ResumeCommand(id), " admits it again");
  standing.removed = true;
  parts_.events->StandingChanged(parts_.list->Of(id), "was removed by an administrator");
  parts_.standings->Change(standing, /*drained=*/false, /*refused=*/true);
  const int requeued = Apply(id);
  Dismiss(id);
  parts_.calls->Offer();
  return requeued;
}

void StandingChanges::Distrust(const std::string& id, const std::string& why) {
  Standing standing = parts_.standings->Of(id);
  standing.refused = why;
  parts_.standings->Change(standing, /*drained=*/false, /*refused=*/true);
  Apply(id);
  if (parts_.options->on_standing == nullptr) return;
  parts_.deferred->Add(parts_.options->on_standing, id);
}

int StandingChanges::Apply(const std::string& id) {
  Worker* worker = parts_.registry->Find(id);
  if (worker == nullptr) return 0;
  const Standing standing = parts_.standings->Of(id);
  const bool refused = !standing.refused.empty();
  worker->news.standing_told = false;
  // Otherwise, no other worker would retry the suspects.
  if (!parts_.standings->MayWork(id)) worker->solo = false;
  parts_.calls->NoteHunger(*worker);
  int taken = 0;
  const std::set<std::string> leases = parts_.book->Of(id);
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
  Worker* worker = parts_.registry->Find(id);
  if (worker == nullptr) return;
  parts_.calls->Wake(*worker);
  parts_.calls->Answer(*worker);
  parts_.registry->Erase(id);
}

}  // namespace hone::fleet

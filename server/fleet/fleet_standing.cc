// How workers stand: draining, removing, flagging, and what is to be stored of it.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/fleet/fleet.h"

namespace hone::fleet {

Standing Fleet::StandingNow(const std::string& id) const {
  Standing standing{.worker_id = id, .drained = drained_.contains(id)};
  if (auto refused = refused_.find(id); refused != refused_.end()) {
    standing.refused = refused->second.why;
    standing.removed = refused->second.removed;
  }
  return standing;
}

Standing Fleet::StandingOf(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return StandingNow(id);
}

int Fleet::SetStanding(const Standing& standing, After& after) {
  const std::string& id = standing.worker_id;
  if (standing.drained) {
    drained_.insert(id);
  } else {
    drained_.erase(id);
  }
  if (standing.refused.empty()) {
    refused_.erase(id);
  } else {
    refused_[id] = {.why = standing.refused, .removed = standing.removed};
  }
  auto found = workers_.find(id);
  if (found == workers_.end()) return 0;
  Worker& worker = found->second;
  const bool refused = !standing.refused.empty();
  worker.drained = standing.drained;
  worker.standing_told = false;
  if (refused) worker.solo = false;
  if (!refused && !standing.drained) worker.past_epochs.clear();
  NoteHunger(id, worker);
  int taken = 0;
  const std::set<std::string> leases = worker.leases;
  for (const std::string& lease_id : leases) {
    const bool queued = leases_.at(lease_id).phase == LeasePhase::kQueued;
    if (!refused && !(standing.drained && queued)) continue;
    TakeBack(lease_id, after);
    ++taken;
  }
  CountRunners();
  OfferEverything();  // what was pinned to it, too
  return taken;
}

void Fleet::Dismiss(const std::string& id, After& after) {
  auto found = workers_.find(id);
  if (found == workers_.end()) return;
  Wake(id, found->second, after);
  Answer(id, found->second, SynchronizeReply(), after);
  workers_.erase(found);
  CountRunners();
}

void Fleet::NoteUnstored(const std::string& id, bool drained, bool refused) {
  Unstored& change = unstored_[id];
  if (change.stored) change = Unstored();
  change.number = ++standing_changes_;
  change.drained = change.drained || drained;
  change.refused = change.refused || refused;
}

std::optional<UnstoredStanding> Fleet::UnstoredOf(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  auto found = unstored_.find(id);
  if (found == unstored_.end() || found->second.stored) return std::nullopt;
  return UnstoredStanding{.standing = StandingNow(id),
                          .drained = found->second.drained,
                          .refused = found->second.refused,
                          .number = found->second.number};
}

void Fleet::StandingStored(const UnstoredStanding& stored) {
  absl::MutexLock lock(&mutex_);
  auto found = unstored_.find(stored.standing.worker_id);
  if (found == unstored_.end() || found->second.number != stored.number) return;
  // Whoever reads the store just now may have read it before.
  if (adopting_) {
    found->second.stored = true;
  } else {
    unstored_.erase(found);
  }
}

void Fleet::BeginAdopt() {
  absl::MutexLock lock(&mutex_);
  adopting_ = true;
}

void Fleet::BreakOffAdopt() {
  absl::MutexLock lock(&mutex_);
  adopting_ = false;
  std::erase_if(unstored_, [](const auto& entry) { return entry.second.stored; });
}

void Fleet::Adopt(const std::vector<Standing>& stored) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    std::map<std::string, Standing> wanted;
    for (const std::string& id : drained_) wanted[id] = {.worker_id = id};
    for (const auto& [id, refusal] : refused_) wanted[id] = {.worker_id = id};
    for (const Standing& standing : stored) wanted[standing.worker_id] = standing;
    for (const auto& [id, standing] : wanted) {
      if (unstored_.contains(id) || StandingNow(id) == standing || shut_down_) continue;
      SetStanding(standing, after);
      if (standing.removed) {
        Dismiss(id, after);
      } else if (auto found = workers_.find(id); found != workers_.end()) {
        Wake(id, found->second, after);
      }
    }
    Offer(after);
    adopting_ = false;
    std::erase_if(unstored_, [](const auto& entry) { return entry.second.stored; });
  }
  for (auto& call : after) std::move(call)();
}

void Fleet::TellStanding(const std::string& id, After& after) {
  if (options_.on_standing == nullptr) return;
  after.push_back([this, id] { options_.on_standing(id); });
}

void Fleet::Distrust(const std::string& id, const std::string& why, After& after) {
  Standing standing = StandingNow(id);
  standing.refused = why;
  SetStanding(standing, after);
  NoteUnstored(id, /*drained=*/false, /*refused=*/true);
  TellStanding(id, after);
}

void Fleet::Flag(const std::string& id, const std::string& why) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    auto found = workers_.find(id);
    if (found == workers_.end() || shut_down_) return;
    Distrust(id, why, after);
    Wake(id, found->second, after);
    Offer(after);
  }
  for (auto& call : after) std::move(call)();
}

absl::StatusOr<WorkerInfo> Fleet::Drain(const std::string& id, bool resume) {
  After after;
  WorkerInfo info;
  {
    absl::MutexLock lock(&mutex_);
    auto found = workers_.find(id);
    if (found == workers_.end() && !refused_.contains(id) && !drained_.contains(id)) {
      return absl::NotFoundError(absl::StrCat("there is no worker ", id));
    }
    Standing standing = StandingNow(id);
    standing.drained = !resume;
    if (resume) standing.refused.clear();
    SetStanding(standing, after);
    NoteUnstored(id, /*drained=*/true, /*refused=*/resume);
    if (found == workers_.end()) {
      return WorkerInfo{.id = id,
                        .draining = standing.drained,
                        .flagged = standing.refused,
                        .silent = absl::InfiniteDuration()};
    }
    Wake(id, found->second, after);
    Offer(after);
    info = Describe(id, found->second);
  }
  for (auto& call : after) std::move(call)();
  return info;
}

absl::StatusOr<int> Fleet::Remove(const std::string& id) {
  After after;
  int requeued = 0;
  {
    absl::MutexLock lock(&mutex_);
    Standing standing = StandingNow(id);
    const bool away = !standing.removed && (standing.drained || !standing.refused.empty());
    if (!workers_.contains(id) && !away) {
      return absl::NotFoundError(absl::StrCat("there is no worker ", id));
    }
    standing.refused = "an administrator removed it; hone workers resume lets it in";
    standing.removed = true;
    requeued = SetStanding(standing, after);
    NoteUnstored(id, /*drained=*/false, /*refused=*/true);
    Dismiss(id, after);
    Offer(after);
  }
  for (auto& call : after) std::move(call)();
  return requeued;
}

}  // namespace hone::fleet

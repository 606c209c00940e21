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

void Fleet::CountFlag(const Refusal& refusal, int64_t by) {
  if (refusal.removed) return;
  FlagCount& of_caller = flags_of_[refusal.caller];
  for (FlagCount* count : {&flags_, &of_caller}) {
    count->all += by;
    if (refusal.proven) count->proven += by;
  }
  if (of_caller.all == 0) flags_of_.erase(refusal.caller);
}

void Fleet::SetRefusal(const Standing& standing, Source source) {
  auto found = refused_.find(standing.worker_id);
  if (found != refused_.end()) CountFlag(found->second, -1);
  if (standing.refused.empty()) {
    if (found != refused_.end()) refused_.erase(found);
    return;
  }
  if (found == refused_.end()) {
    found = refused_.emplace(standing.worker_id, Refusal{.number = ++refusals_}).first;
    if (auto worker = workers_.find(standing.worker_id); worker != workers_.end()) {
      found->second.caller = worker->second.identity;
      found->second.proven = worker->second.believed;
    }
  }
  if (source == Source::kStore) found->second.proven = true;
  found->second.why = standing.refused;
  found->second.removed = standing.removed;
  CountFlag(found->second, +1);
}

int Fleet::SetStanding(const Standing& standing, Source source, After& after) {
  const std::string& id = standing.worker_id;
  if (standing.drained) {
    drained_.insert(id);
  } else {
    drained_.erase(id);
  }
  SetRefusal(standing, source);
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
      SetStanding(standing, Source::kStore, after);
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
  SetStanding(standing, Source::kHere, after);
  NoteUnstored(id, /*drained=*/false, /*refused=*/true);
  TellStanding(id, after);
  TrimFlags(after);
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

void Fleet::TrimFlags(After& after) {
  const auto over = [&](const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto of_caller = flags_of_.find(caller);
    return flags_.all > options_.max_flags ||
           (of_caller != flags_of_.end() && of_caller->second.all > options_.max_flags_per_caller);
  };
  if (std::none_of(flags_of_.begin(), flags_of_.end(),
                   [&](const auto& entry) { return over(entry.first); })) {
    return;
  }
  std::map<int64_t, std::string> of_no_consequence;  // the oldest first
  for (const auto& [id, refusal] : refused_) {
    auto worker = workers_.find(id);
    const bool here = worker != workers_.end() && worker->second.connected;
    if (!refusal.removed && !refusal.proven && !here) of_no_consequence[refusal.number] = id;
  }
  for (const auto& [number, id] : of_no_consequence) {
    if (!over(refused_.at(id).caller)) continue;
    Standing standing = StandingNow(id);
    standing.refused.clear();
    SetStanding(standing, Source::kHere, after);
    NoteUnstored(id, /*drained=*/false, /*refused=*/true);
    TellStanding(id, after);
    ++counts_.flags_dropped;
  }
}

std::string Fleet::WhyNoNewName(const WorkerReport& report) const {
  if (static_cast<int64_t>(workers_.size()) >= options_.max_workers) {
    return absl::StrCat(workers_.size(),
                        " workers are registered, the most that this server keeps");
  }
  // A name of somebody's own, and one that is flagged already.
  if (report.identity == report.worker_id || refused_.contains(report.worker_id)) return "";
  auto of_caller = flags_of_.find(report.identity);
  const int64_t mine = of_caller == flags_of_.end() ? 0 : of_caller->second.proven;
  const bool too_many = mine >= options_.max_flags_per_caller;
  if (!too_many && flags_.proven < options_.max_flags) return "";
  return absl::StrCat(
      too_many ? mine : flags_.proven, " flagged workers",
      too_many && !report.identity.empty() ? absl::StrCat(" of '", report.identity, "'") : "",
      " are the most that there may be: no new name is registered until an "
      "administrator has looked at them (hone workers list, hone workers resume)");
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
    SetStanding(standing, Source::kHere, after);
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
    requeued = SetStanding(standing, Source::kHere, after);
    NoteUnstored(id, /*drained=*/false, /*refused=*/true);
    Dismiss(id, after);
    Offer(after);
  }
  for (auto& call : after) std::move(call)();
  return requeued;
}

}  // namespace hone::fleet

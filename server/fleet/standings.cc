#include "server/fleet/standings.h"

#include <algorithm>

namespace hone::fleet {

Standing Standings::Of(const std::string& id) const {
  auto found = known_.find(id);
  return found == known_.end() ? Standing{.worker_id = id} : found->second;
}

bool Standings::IsDrained(const std::string& id) const {
  auto found = known_.find(id);
  return found != known_.end() && found->second.drained;
}

std::string Standings::Refusal(const std::string& id) const {
  auto found = known_.find(id);
  return found == known_.end() ? "" : found->second.refused;
}

int64_t Standings::refused() const {
  return std::count_if(known_.begin(), known_.end(),
                       [](const auto& entry) { return !entry.second.refused.empty(); });
}

void Standings::Set(const Standing& standing) {
  if (standing == Standing{.worker_id = standing.worker_id}) {
    known_.erase(standing.worker_id);
  } else {
    known_[standing.worker_id] = standing;
  }
}

void Standings::Change(const Standing& standing, bool drained, bool refused) {
  Set(standing);
  Pending& change = pending_[standing.worker_id];
  if (change.stored) change = Pending();
  change.number = ++changes_;
  change.drained = change.drained || drained;
  change.refused = change.refused || refused;
}

std::optional<UnstoredStanding> Standings::Unstored(const std::string& id) const {
  auto found = pending_.find(id);
  if (found == pending_.end() || found->second.stored) return std::nullopt;
  return UnstoredStanding{.standing = Of(id),
                          .drained = found->second.drained,
                          .refused = found->second.refused,
                          .number = found->second.number};
}

void Standings::Stored(const UnstoredStanding& stored) {
  auto found = pending_.find(stored.standing.worker_id);
  if (found == pending_.end() || found->second.number != stored.number) return;
  // A reader of the store that is at work just now may have read it before.
  if (adopting_) {
    found->second.stored = true;
  } else {
    pending_.erase(found);
  }
}

std::vector<Standing> Standings::Adopt(const std::vector<Standing>& stored) {
  std::map<std::string, Standing> wanted;
  for (const auto& [id, standing] : known_) wanted[id] = {.worker_id = id};
  for (const Standing& standing : stored) wanted[standing.worker_id] = standing;
  std::vector<Standing> changed;
  for (const auto& [id, standing] : wanted) {
    if (pending_.contains(id) || Of(id) == standing) continue;
    Set(standing);
    changed.push_back(standing);
  }
  EndAdopt();
  return changed;
}

void Standings::EndAdopt() {
  adopting_ = false;
  std::erase_if(pending_, [](const auto& entry) { return entry.second.stored; });
}

}  // namespace hone::fleet

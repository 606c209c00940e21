#include "server/fleet/standings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hone::fleet {

std::string ResumeCommand(const std::string& id) {
  return absl::StrCat("\"hone workers resume ", id, "\"");
}

std::string HowToResume(const std::string& id) {
  return absl::StrCat("an administrator gives it work again with ", ResumeCommand(id));
}

Standing Standings::Of(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return Get(id);
}

bool Standings::MayWork(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return !known_.contains(id);
}

std::map<std::string, Standing> Standings::all() const {
  absl::MutexLock lock(&mutex_);
  return known_;
}

int64_t Standings::refused_count() const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(known_.begin(), known_.end(),
                       [](const auto& entry) { return !entry.second.refused.empty(); });
}

Standing Standings::Get(const std::string& id) const {
  auto found = known_.find(id);
  return found == known_.end() ? Standing{.worker_id = id} : found->second;
}

void Standings::Set(const Standing& standing) {
  if (standing == Standing{.worker_id = standing.worker_id}) {
    known_.erase(standing.worker_id);
  } else {
    known_[standing.worker_id] = standing;
  }
}

void Standings::Change(const Standing& standing, bool drained, bool refused) {
  absl::MutexLock lock(&mutex_);
  Set(standing);
  Pending& change = pending_[standing.worker_id];
  change.number = ++changes_;
  change.drained = change.drained || drained;
  change.refused = change.refused || refused;
}

std::optional<UnstoredStanding> Standings::Unstored(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  auto found = pending_.find(id);
  if (found == pending_.end()) return std::nullopt;
  return UnstoredStanding{.standing = Get(id),
                          .drained = found->second.drained,
                          .refused = found->second.refused,
                          .number = found->second.number};
}

void Standings::MarkStored(const UnstoredStanding& stored) {
  absl::MutexLock lock(&mutex_);
  auto found = pending_.find(stored.standing.worker_id);
  if (found != pending_.end() && found->second.number == stored.number) pending_.erase(found);
}

void Standings::Adopt(const std::vector<Standing>& stored) {
  absl::MutexLock lock(&mutex_);
  for (const Standing& standing : stored) Set(standing);
}

}  // namespace hone::fleet

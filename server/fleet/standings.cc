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

Standing Standings::Of(const std::string& id) const { return Of(id, IdentityOf(id)); }

Standing Standings::Of(const std::string& id, const std::string& identity) const {
  absl::MutexLock lock(&mutex_);
  Standing standing = Get(id);
  const std::string other = RefusedName(identity);
  if (!standing.refused.empty() || other.empty()) return standing;
  const Standing& refusal = known_.at(other);
  standing.refused = absl::StrCat("it is the worker ", other, ": ", refusal.refused);
  standing.removed = refusal.removed;
  standing.identity = identity;
  return standing;
}

Standing Standings::Own(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return Get(id);
}

std::string Standings::RefusedAs(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return Get(id).refused.empty() ? RefusedName(Identity(id)) : "";
}

bool Standings::MayWork(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return !known_.contains(id) && (refused_.empty() || RefusedName(Identity(id)).empty());
}

void Standings::Identify(const std::string& id, const std::string& identity) {
  absl::MutexLock lock(&mutex_);
  if (identity.empty()) {
    identities_.erase(id);
  } else {
    identities_[id] = identity;
  }
}

std::string Standings::IdentityOf(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return Identity(id);
}

std::string Standings::Identity(const std::string& id) const {
  const auto found = identities_.find(id);
  return found == identities_.end() ? "" : found->second;
}

std::string Standings::RefusedName(const std::string& identity) const {
  if (identity.empty() || refused_.empty()) return "";
  const auto found = refused_.find(identity);
  return found == refused_.end() ? "" : *found->second.begin();
}

std::vector<std::string> Standings::NamesOf(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  const std::string own = Get(id).identity;
  const std::string identity = own.empty() ? Identity(id) : own;
  std::vector<std::string> names = {id};
  for (const auto& [name, other] : identities_) {
    if (name != id && other == identity) names.push_back(name);
  }
  return names;
}

bool Standings::IsOneOf(const std::string& id, const std::vector<std::string>& others) const {
  if (others.empty()) return false;
  absl::MutexLock lock(&mutex_);
  const std::string identity = Identity(id);
  return std::any_of(others.begin(), others.end(), [&](const std::string& other) {
    return other == id || (!identity.empty() && Identity(other) == identity);
  });
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
  const std::string& id = standing.worker_id;
  const std::string before = Get(id).identity;
  if (const auto names = refused_.find(before); names != refused_.end()) {
    names->second.erase(id);
    if (names->second.empty()) refused_.erase(names);
  }
  if (!standing.drained && standing.refused.empty()) {
    known_.erase(id);
    return;
  }
  known_[id] = standing;
  if (standing.refused.empty()) known_[id].identity.clear();
  if (const std::string& identity = known_[id].identity; !identity.empty()) {
    refused_[identity].insert(id);
  }
}

void Standings::Change(const Standing& standing) {
  absl::MutexLock lock(&mutex_);
  Set(standing);
  pending_[standing.worker_id] = ++changes_;
}

std::optional<UnstoredStanding> Standings::Unstored(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  auto found = pending_.find(id);
  if (found == pending_.end()) return std::nullopt;
  return UnstoredStanding{Get(id), found->second};
}

void Standings::MarkStored(const UnstoredStanding& stored) {
  absl::MutexLock lock(&mutex_);
  auto found = pending_.find(stored.standing.worker_id);
  if (found != pending_.end() && found->second == stored.number) pending_.erase(found);
}

void Standings::Adopt(const std::vector<Standing>& stored) {
  absl::MutexLock lock(&mutex_);
  for (const Standing& standing : stored) Set(standing);
}

}  // namespace hone::fleet

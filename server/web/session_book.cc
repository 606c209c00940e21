#include "server/web/session_book.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/secret.h"

namespace hone::web {

void SessionBook::Add(Sessions& to, size_t most, const std::string& secret, Session session) const {
  const absl::Time now = clock_->Now();
  std::erase_if(to, [&](const auto& entry) { return entry.second.expires <= now; });
  if (to.size() >= most) {
    to.erase(std::min_element(to.begin(), to.end(), [](const auto& a, const auto& b) {
      return a.second.expires < b.second.expires;
    }));
  }
  to[rpc::HashToken(secret)] = std::move(session);
}

absl::StatusOr<std::string> SessionBook::Invite(const rpc::Identity& caller, bool has_token) {
  HONE_ASSIGN_OR_RETURN(std::string code, rpc::RandomToken());
  absl::MutexLock lock(&mutex_);
  Add(codes_, kMaxCodes, code,
      {.caller = caller, .has_token = has_token, .expires = clock_->Now() + kCodeLifetime});
  return code;
}

absl::StatusOr<std::string> SessionBook::Begin(absl::string_view code) {
  HONE_ASSIGN_OR_RETURN(std::string token, rpc::RandomToken());
  HONE_ASSIGN_OR_RETURN(std::string csrf, rpc::RandomToken());
  absl::MutexLock lock(&mutex_);
  const auto found = codes_.find(rpc::HashToken(code));
  if (found == codes_.end() || found->second.expires <= clock_->Now()) {
    return absl::UnauthenticatedError(
        "this link has expired or was used before: run hone dashboard again");
  }
  Add(sessions_, kMaxSessions, token,
      {.caller = found->second.caller,
       .has_token = found->second.has_token,
       .csrf = std::move(csrf),
       .expires = clock_->Now() + kLifetime});
  codes_.erase(found);
  return token;
}

std::optional<SessionBook::Session> SessionBook::Find(absl::string_view token) const {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(rpc::HashToken(token));
  if (found == sessions_.end() || found->second.expires <= clock_->Now()) return std::nullopt;
  return found->second;
}

void SessionBook::End(absl::string_view token) {
  absl::MutexLock lock(&mutex_);
  sessions_.erase(rpc::HashToken(token));
}

}  // namespace hone::web

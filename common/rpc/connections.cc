#include "common/rpc/connections.h"

#include "common/rpc/address.h"

namespace hone::rpc {
std::optional<int64_t> Connections::Add(const std::string& host, const std::string& peer,
                                        std::function<void()> end) {
  absl::string_view reason;
  std::string refused = host;
  std::optional<int64_t> number;
  {
    absl::MutexLock lock(&mutex_);
    const auto known = of_host_.find(host);
    const int of_host = known == of_host_.end() ? 0 : known->second;
    if (of_host >= limits_.of_host) {
      reason = "connections_of_host";
    } else if (static_cast<int>(connections_.size()) >= limits_.all) {
      reason = "connections";
    }
    bool has_room = reason.empty();
    if (!has_room) {
      const auto unused = FindUnused(of_host >= limits_.of_host ? host : "");
      if (unused != connections_.end()) {
        refused = unused->second.host;
        unused->second.end();
        Erase(unused);
        has_room = true;
      }
    }
    if (has_room) {
      number = ++last_;
      connections_.emplace(
          last_,
          Connection{.host = host, .peer = peer, .end = std::move(end), .since = clock_->Now()});
      by_peer_[peer] = last_;
      ++of_host_[host];
    }
  }
  if (!reason.empty() && on_refusal_ != nullptr) on_refusal_(reason, refused);
  return number;
}

Connections::ByNumber::iterator Connections::FindUnused(const std::string& host) {
  const absl::Time now = clock_->Now();
  for (auto each = connections_.begin(); each != connections_.end(); ++each) {
    if (now - each->second.since < limits_.grace) break;  // the later ones are newer
    if (!each->second.is_used && (host.empty() || each->second.host == host)) return each;
  }
  return connections_.end();
}

void Connections::Erase(ByNumber::iterator connection) {
  const auto& [number, entry] = *connection;
  if (entry.is_used) --used_;
  // The port of an ended connection may be used again before its end is known here.
  if (auto peer = by_peer_.find(entry.peer); peer != by_peer_.end() && peer->second == number) {
    by_peer_.erase(peer);
  }
  if (auto host = of_host_.find(entry.host); --host->second == 0) of_host_.erase(host);
  connections_.erase(connection);
}

void Connections::Remove(int64_t connection) {
  absl::MutexLock lock(&mutex_);
  if (auto found = connections_.find(connection); found != connections_.end()) Erase(found);
}

void Connections::NoteCaller(absl::string_view peer) {
  const std::string plain = PlainPeer(peer);
  absl::MutexLock lock(&mutex_);
  const auto found = by_peer_.find(plain);
  if (found == by_peer_.end()) return;
  Connection& connection = connections_.at(found->second);
  if (!connection.is_used) ++used_;
  connection.is_used = true;
}

Connections::Counts Connections::counts() const {
  absl::MutexLock lock(&mutex_);
  return {.used = used_, .unused = static_cast<int64_t>(connections_.size()) - used_};
}

}  // namespace hone::rpc

#include "server/fleet/target_waits.h"

namespace hone::fleet {

void TargetWaits::Add(const std::string& key, absl::Time deadline, TargetDone done) {
  waits_.emplace(key, Wait{deadline, std::move(done)});
}

std::vector<TargetDone> TargetWaits::Take(const std::string& key) {
  std::vector<TargetDone> taken;
  const auto [begin, end] = waits_.equal_range(key);
  for (auto it = begin; it != end; ++it) taken.push_back(std::move(it->second.done));
  waits_.erase(begin, end);
  return taken;
}

std::vector<std::pair<std::string, TargetDone>> TargetWaits::TakeExpired(absl::Time now) {
  std::vector<std::pair<std::string, TargetDone>> taken;
  for (auto it = waits_.begin(); it != waits_.end();) {
    if (it->second.deadline > now) {
      ++it;
      continue;
    }
    taken.emplace_back(it->first, std::move(it->second.done));
    it = waits_.erase(it);
  }
  return taken;
}

}  // namespace hone::fleet

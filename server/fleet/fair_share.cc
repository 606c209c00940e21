#include "server/fleet/fair_share.h"

#include <algorithm>

namespace hone::fleet {
namespace {

// With more names than this, the entries at positions up to `now`, which have no effect, are
// removed.
constexpr size_t kManyNames = 256;

double Cost(int priority) {
  return priority >= kHighPriority ? 1.0 / 16 : priority <= kLowPriority ? 1.0 : 1.0 / 4;
}

}  // namespace

double FairShare::Line::Of(const std::string& name) const {
  auto found = behind.find(name);
  return found == behind.end() ? now : std::max(now, found->second);
}

void FairShare::Line::Move(const std::string& name, double by) {
  now = Of(name);
  behind[name] = now + by;
  if (behind.size() > kManyNames) {
    absl::erase_if(behind, [this](const auto& entry) { return entry.second <= now; });
  }
}

FairShare::Turn FairShare::TurnOf(const std::string& owner, const std::string& job) const {
  auto line = jobs_.find(owner);
  return {owners_.Of(owner), line == jobs_.end() ? 0 : line->second.Of(job)};
}

void FairShare::Charge(const std::string& owner, const std::string& job, int priority) {
  owners_.Move(owner, Cost(priority));
  jobs_[owner].Move(job, Cost(priority));
  if (jobs_.size() > kManyNames) {
    absl::erase_if(jobs_,
                   [this](const auto& line) { return !owners_.behind.contains(line.first); });
  }
}

}  // namespace hone::fleet

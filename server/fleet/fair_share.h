#ifndef HONE_SERVER_FLEET_FAIR_SHARE_H_
#define HONE_SERVER_FLEET_FAIR_SHARE_H_

#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace hone::fleet {

// Priorities of jobs.
inline constexpr int kLowPriority = -1;
inline constexpr int kNormalPriority = 0;
inline constexpr int kHighPriority = 1;

// Whose turn it is: stride scheduling (Waldspurger, Weihl 1995) on two levels, owners and their
// jobs. A grant moves its owner, and its job among the owner's, back by the inverse of the
// priority's weight: 16 for high, 4 for normal, 1 for low. The one that is furthest in front goes
// next. Owners therefore get equal shares, however many jobs they have, a high job gets four times
// as much as a normal one, and none starves. An owner that comes back after a pause has saved
// nothing, and still has its debt. Not thread-safe.
class FairShare {
 public:
  // Smaller goes first.
  using Turn = std::tuple<double, double>;
  Turn TurnOf(const std::string& owner, const std::string& job) const;
  // A lease of the job was granted.
  void Charge(const std::string& owner, const std::string& job, int priority);

 private:
  // The positions in one line. A name without an entry is at the position where the line is now.
  struct Line {
    double now = 0;  // the position of the last grant
    absl::flat_hash_map<std::string, double> behind;
    double Of(const std::string& name) const;
    void Move(const std::string& name, double by);
  };
  Line owners_;
  absl::flat_hash_map<std::string, Line> jobs_;  // by owner
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FAIR_SHARE_H_

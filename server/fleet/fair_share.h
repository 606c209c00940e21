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

// Stride scheduling (Waldspurger, Weihl 1995) on two levels: owners, and the jobs of each owner.
// Every owner and every job has a position, and the smallest position goes next. A grant adds the
// inverse of the priority's weight to the positions of its owner and its job; the weight is 16 for
// high, 4 for normal and 1 for low priority. Owners with jobs of the same priority therefore get
// equal shares, regardless of their numbers of jobs. A high-priority job gets four times as much as
// a normal one, and no job starves. An owner gains nothing from a pause: a position below that of
// the last grant is raised to it. Not thread-safe.
class FairShare {
 public:
  // Turns are compared; the smaller one goes first.
  using Turn = std::tuple<double, double>;
  Turn TurnOf(const std::string& owner, const std::string& job) const;
  // Called when a lease of the job is granted.
  void Charge(const std::string& owner, const std::string& job, int priority);

 private:
  // The positions of all owners, or of one owner's jobs. A name without an entry is at `now`.
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

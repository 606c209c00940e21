#ifndef HONE_SERVER_JOB_JOB_PLACES_H_
#define HONE_SERVER_JOB_JOB_PLACES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace hone::job {

// Enforces the limits on unfinished jobs, and reserves places for jobs that are about to be
// created. Not thread-safe: the owner must lock, also between a check and a reservation.
class JobPlaces {
 public:
  // A known job.
  struct Holder {
    std::string request_id;
    std::string owner;
    bool ended = false;
  };
  using Places = std::multimap<std::string, std::string>;
  using Place = Places::iterator;

  JobPlaces(int max_jobs, int max_jobs_per_owner)
      : max_jobs_(max_jobs), max_jobs_per_owner_(max_jobs_per_owner) {}

  // Checks that the owner may have one more job. Jobs and places of the same request count once,
  // and those of `request_id` do not count. ResourceExhausted: a limit is reached.
  absl::Status Check(absl::Span<const Holder> jobs, const std::string& request_id,
                     const std::string& owner) const;
  Place Reserve(const std::string& request_id, const std::string& owner) {
    return reserved_.emplace(request_id, owner);
  }
  void Release(Place place) { reserved_.erase(place); }

 private:
  const int max_jobs_;
  const int max_jobs_per_owner_;
  Places reserved_;  // request id → owner
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_JOB_PLACES_H_

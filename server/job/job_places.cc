#include "server/job/job_places.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hone::job {

absl::Status JobPlaces::Check(absl::Span<const Holder> jobs, const std::string& request_id,
                              const std::string& owner) const {
  int all = 0;
  int own = 0;
  std::set<absl::string_view> counted = {request_id};
  for (const Holder& job : jobs) {
    counted.insert(job.request_id);
    if (job.ended) continue;
    ++all;
    own += job.owner == owner ? 1 : 0;
  }
  for (const auto& [request, holder] : reserved_) {
    if (!counted.insert(request).second && !request.empty()) continue;
    ++all;
    own += holder == owner ? 1 : 0;
  }
  if (own >= max_jobs_per_owner_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        owner.empty() ? "this user" : absl::StrCat("'", owner, "'"), " has ", own,
        " jobs in progress, which is the limit for one user; wait for one to end, or cancel one"));
  }
  if (all < max_jobs_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      all, " jobs are in progress, which is the limit of this server; try again later"));
}

}  // namespace hone::job

#include "client/cli/job_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"

namespace hone::cli {

void JobWait::Explain(std::string phase, std::string message) {
  phase_ = std::move(phase);
  if (message == reason_) return;
  reason_ = std::move(message);
  if (!reason_.empty()) message_ = reason_;
}

void JobWait::Look(const client::Job& job, client::JobNews news) {
  if (news == client::JobNews::kNoServer) {
    away_since_ = std::min(away_since_, clock_.Now());
    const std::string since = FormatTime(absl::ToUnixMillis(away_since_));
    return Explain(absl::StrCat("no server since ", since),
                   absl::StrCat("the server has not answered since ", since, "; job ", job.id,
                                " continues when it is back"));
  }
  away_since_ = absl::InfiniteFuture();
  if (job.wait_reason.empty() || private_worker_) return Explain("", "");
  Explain("waiting for a worker", absl::StrCat("job ", job.id, " waits: ", job.wait_reason));
}

}  // namespace hone::cli

#include "client/cli/tune/job_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/output/format.h"
#include "client/cli/suggested_command.h"
#include "client/connection/connection.h"

namespace hone::cli {
namespace {

// A server that has a worker of the target creates a job faster than this.
constexpr absl::Duration kMoment = absl::Milliseconds(500);

}  // namespace

void JobWait::Explain(std::string phase, std::string message) {
  phase_ = std::move(phase);
  if (message == reason_) return;
  reason_ = std::move(message);
  if (!reason_.empty()) message_ = reason_;
}

void JobWait::Look(const v1::Job& job, client::JobNews news) {
  if (news == client::JobNews::kNoServer) {
    away_since_ = std::min(away_since_, clock_.Now());
    const std::string since = FormatTime(absl::ToUnixMillis(away_since_));
    if (is_private_) return Explain(absl::StrCat("no server since ", since), "");
    return Explain(absl::StrCat("no server since ", since),
                   absl::StrCat("the server has not answered since ", since, "; job ", job.id(),
                                " continues when it is back"));
  }
  away_since_ = absl::InfiniteFuture();
  if (job.wait_reason().empty() || is_private_) return Explain("", "");
  Explain("waiting for a worker",
          absl::StrCat("job ", job.id(), " waits: ", WithRepeatedOptions(job.wait_reason())));
}

std::optional<std::string> CreationWait::TakeMessage(bool connected) {
  const absl::Time now = clock_.Now();
  if (!connected) {
    connected_since_ = absl::InfiniteFuture();
    if (told_of_connection_ || now - began_ < kMoment) return std::nullopt;
    told_of_connection_ = true;
    return absl::StrCat("connecting to ", server_);
  }
  connected_since_ = std::min(connected_since_, now);
  if (told_of_server_ || now - connected_since_ < kMoment) return std::nullopt;
  told_of_server_ = true;
  return absl::StrCat("creating the job; if no worker ",
                      target_ == "native" ? "" : absl::StrCat("of target ", target_, " "),
                      "is registered, the server waits for one, at most ",
                      absl::ToInt64Seconds(client::kTargetWait), " s");
}

}  // namespace hone::cli

#include "client/cli/tune/job_remark.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/output/format.h"
#include "client/cli/output/network_output.h"
#include "client/cli/records/known_best.h"
#include "client/cli/suggested_command.h"
#include "common/base/counted.h"

namespace hone::cli {
namespace {

// The beginning of a note of the server.
constexpr absl::string_view kNotConfirmed = "no best could be confirmed";

}  // namespace

std::string JobFacts(const client::Job& job) {
  const std::string& priority = job.spec.priority;
  const absl::string_view took = HasEnded(job.state)                       ? ", took "
                                 : job.state == client::JobState::kPending ? ", has worked for "
                                                                           : ", running for ";
  return absl::StrCat(
      DescribeJobAndKind(job), " on ", job.target,
      priority.empty() || priority == "normal" ? "" : absl::StrCat(" with ", priority, " priority"),
      "; created ", FormatTime(job.created_unix_ms),
      job.owner.empty() ? "" : absl::StrCat(" by ", job.owner), took,
      FormatClock(absl::Milliseconds(job.wall_ms)));
}

std::string OriginOfBest(const client::Job& job) {
  if (!client::BestIsOfAnotherJob(job)) return "";
  const absl::Time measured = absl::FromUnixMillis(job.best->record.created_unix_ms);
  return absl::StrCat("of job ", job.best->record.job_id, ", ", FormatAge(absl::Now() - measured));
}

absl::string_view WhyOwnIsNotBest(const client::Job& job) {
  if (!client::BestIsOfAnotherJob(job) || !job.own_best.has_value()) return "";
  if (client::LatencyNs(*job.own_best) >= client::LatencyNs(*job.best)) return "";
  if (!client::LatencyIsConfirmed(*job.own_best)) return ", not confirmed";
  return job.best->pinned_unix_ms > 0 ? ", but the best is pinned" : ", not significantly faster";
}

absl::string_view Withdrawal(const client::Job& job) {
  if (!client::BestIsWithdrawn(job)) return "";
  return IsForgotten(job.best->record) ? "now forgotten" : "now quarantined";
}

std::string PhaseOf(const client::Job& job) {
  if (!job.wait_reason.empty()) return "waiting for a worker";
  if (job.left == absl::InfiniteDuration()) return job.phase;
  return absl::StrCat(job.phase, job.phase.empty() ? "" : ", ", FormatClock(job.left), " left");
}

std::string RemarkOn(const client::Job& job) {
  if (!job.error.empty()) return WithRepeatedOptions(job.error);
  if (!HasEnded(job.state)) {
    if (const std::string phase = PhaseOf(job); !phase.empty()) return phase;
  }
  std::vector<std::string> remarks;
  const bool confirms = !job.spec.unpublished;
  // The note of such a job may say why.
  const bool told = absl::StartsWith(job.note, kNotConfirmed);
  if (confirms && !told && HasEnded(job.state) && job.best.has_value() &&
      !client::BestIsConfirmed(job)) {
    remarks.push_back("best not confirmed");
  }
  if (const absl::string_view withdrawal = Withdrawal(job); !withdrawal.empty()) {
    remarks.push_back(absl::StrCat("best ", withdrawal));
  }
  if (const std::string origin = OriginOfBest(job); !origin.empty()) {
    remarks.push_back(absl::StrCat(
        "the best is ", origin,
        job.own_best.has_value()
            ? absl::StrCat("; its own takes ",
                           MarkUnconfirmed(FormatLatency(client::LatencyNs(*job.own_best)),
                                           client::LatencyIsConfirmed(*job.own_best)),
                           WhyOwnIsNotBest(job))
            : ""));
  }
  if (!job.note.empty()) remarks.push_back(job.note);
  if (job.disturbed > 0) {
    remarks.push_back(absl::StrCat(Counted(job.disturbed, "measurement"), " disturbed"));
  }
  return absl::StrJoin(remarks, "; ");
}

}  // namespace hone::cli

#include "client/cli/tune/job_remark.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/output/format.h"
#include "client/cli/output/network_output.h"
#include "client/cli/output/phase_text.h"
#include "client/cli/suggested_command.h"
#include "common/base/counted.h"
#include "common/record/origin.h"

namespace hone::cli {
std::string JobFacts(const v1::Job& job) {
  const std::string& priority = job.request().priority();
  const absl::string_view took = client::HasEnded(job.state())          ? ", took "
                                 : job.state() == v1::JOB_STATE_PENDING ? ", has worked for "
                                                                        : ", running for ";
  return absl::StrCat(
      DescribeJobAndKind(job), " on ", job.target(),
      priority.empty() || priority == "normal" ? "" : absl::StrCat(" with ", priority, " priority"),
      "; created ", FormatTime(job.created_unix_ms()),
      job.owner().empty() ? "" : absl::StrCat(" by ", job.owner()), took,
      FormatClock(absl::Milliseconds(job.wall_ms())));
}

std::string OriginOfBest(const v1::Job& job) {
  if (!client::BestIsOfAnotherJob(job)) return "";
  const absl::Time measured = absl::FromUnixMillis(job.best().record().created_unix_ms());
  return absl::StrCat("of job ", job.best().record().job_id(), ", ",
                      FormatAge(absl::Now() - measured));
}

absl::string_view WhyOwnIsNotBest(const v1::Job& job) {
  if (!client::BestIsOfAnotherJob(job) || !job.has_own_best()) return "";
  if (job.own_best().latency_ns() >= job.best().latency_ns()) return "";
  if (!client::LatencyIsConfirmed(job.own_best())) return ", not confirmed";
  return job.best().pinned_unix_ms() > 0 ? ", but the best is pinned"
                                         : ", not significantly faster";
}

absl::string_view Withdrawal(const v1::Job& job) {
  if (!client::BestIsWithdrawn(job)) return "";
  return record::IsForgotten(client::RecordOf(job.best())) ? "now forgotten" : "now quarantined";
}

std::string PhaseOf(const v1::Job& job) {
  if (!job.wait_reason().empty()) return "waiting for a worker";
  const std::string phase = PhaseText(job);
  if (client::TimeLeft(job) == absl::InfiniteDuration()) return phase;
  return absl::StrCat(phase, phase.empty() ? "" : ", ", FormatClock(client::TimeLeft(job)),
                      " left");
}

std::string RemarkOn(const v1::Job& job) {
  if (!job.error().empty()) return WithRepeatedOptions(job.error());
  if (!client::HasEnded(job.state())) {
    if (const std::string phase = PhaseOf(job); !phase.empty()) return phase;
  }
  std::vector<std::string> remarks;
  const bool confirms = !job.request().unpublished();
  if (confirms && !job.unconfirmed() && client::HasEnded(job.state()) && job.has_best() &&
      !job.best().confirmed()) {
    remarks.push_back("best not confirmed");
  }
  if (const absl::string_view withdrawal = Withdrawal(job); !withdrawal.empty()) {
    remarks.push_back(absl::StrCat("best ", withdrawal));
  }
  if (const std::string origin = OriginOfBest(job); !origin.empty()) {
    remarks.push_back(
        absl::StrCat("the best is ", origin,
                     job.has_own_best()
                         ? absl::StrCat("; its own takes ",
                                        MarkUnconfirmed(FormatLatency(job.own_best().latency_ns()),
                                                        client::LatencyIsConfirmed(job.own_best())),
                                        WhyOwnIsNotBest(job))
                         : ""));
  }
  if (!job.note().empty()) remarks.push_back(job.note());
  if (job.disturbed() > 0) {
    remarks.push_back(absl::StrCat(Counted(job.disturbed(), "measurement"), " disturbed"));
  }
  return absl::StrJoin(remarks, "; ");
}

}  // namespace hone::cli

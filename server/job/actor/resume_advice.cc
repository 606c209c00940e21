#include "server/job/actor/resume_advice.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace hone::job {

bool IsOfTheSurroundings(const absl::Status& why) {
  return absl::IsFailedPrecondition(why) || absl::IsUnavailable(why) ||
         absl::IsResourceExhausted(why);
}

std::string ResumeAdvice(const JobSnapshot& job, absl::string_view why) {
  const JobSpec& spec = job.spec;
  if (!job.is_resumable || spec.unpublished || !spec.parent.empty()) return "";
  std::string command = absl::StrCat("\"hone jobs resume ", job.id);
  if (absl::StrContains(why, command)) return "";
  if (spec.max_time > absl::ZeroDuration() && job.CountedWall() >= spec.max_time) {
    const absl::Duration more = absl::Ceil(2 * job.CountedWall(), absl::Seconds(1));
    absl::StrAppend(&command, " --time ", absl::ToInt64Seconds(more), "s");
  }
  return absl::StrCat("; ", command, "\" continues it");
}

}  // namespace hone::job

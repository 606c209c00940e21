#include "server/task/resume_advice.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace hone::task {
namespace {

bool IsOfTheSurroundings(const absl::Status& why) {
  return absl::IsFailedPrecondition(why) || absl::IsUnavailable(why) ||
         absl::IsResourceExhausted(why);
}

}  // namespace

std::string ResumeAdvice(const JobSnapshot& job, const absl::Status& why) {
  const JobSpec& spec = job.spec;
  if (!IsOfTheSurroundings(why) || spec.unpublished) return "";
  std::string command =
      absl::StrCat("\"hone jobs resume ", spec.parent.empty() ? job.id : spec.parent);
  if (absl::StrContains(why.message(), command)) return "";
  if (spec.max_time > absl::ZeroDuration() && job.wall >= spec.max_time) {
    const absl::Duration more = absl::Ceil(2 * job.wall, absl::Seconds(1));
    absl::StrAppend(&command, " --time ", absl::ToInt64Seconds(more), "s");
  }
  return absl::StrCat("; ", command, "\" continues ", spec.parent.empty() ? "it" : "its network");
}

}  // namespace hone::task

#include "server/job/search/draft_work.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "server/job/actor/exceptions.h"
#include "server/job/search/search_options.h"
#include "server/job/search/task_search.h"

namespace hone::job {

namespace {

absl::Status Stopped() { return absl::UnavailableError("the server is shutting down"); }

}  // namespace

void DraftWork::Draft(JobSpec spec, Done answer) {
  if (stopped_) return std::move(answer)(Stopped());
  if (++in_progress_ > kMaxAtOnce) {
    --in_progress_;
    return std::move(answer)(absl::ResourceExhaustedError(
        absl::StrCat(kMaxAtOnce, " drafts are in progress; try again later")));
  }
  Done done = [this, answer = std::move(answer)](absl::StatusOr<std::string> trace) mutable {
    --in_progress_;
    std::move(answer)(std::move(trace));
  };
  services_.executor->Schedule([this, spec = std::move(spec), done = std::move(done)]() mutable {
    if (stopped_) return std::move(done)(Stopped());
    absl::StatusOr<std::string> trace;
    const absl::Status thrown = CatchExceptions([&] {
      const HostShare share(options_.respect_timing_lock);
      trace = FirstTrace(spec);
    });
    if (!thrown.ok()) trace = thrown;
    std::move(done)(std::move(trace));
  });
}

absl::StatusOr<std::string> DraftWork::FirstTrace(const JobSpec& spec) const {
  const TaskEnvironment& environment = *services_.environment;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TaskSpaces> spaces,
                        environment.Open(spec.workload, spec.target, spec.space, spec.tolerance));
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<TaskSearch> search,
      TaskSearch::Create(&environment, spaces.get(), SearchOptionsOf(spec), /*prior=*/{}));
  HONE_RETURN_IF_ERROR(search->Propose(NextBatchOf(spec, options_, /*proposed=*/0)).status());
  if (search->trials().empty()) {
    return absl::FailedPreconditionError(
        "no schedule of the design spaces is legal for the workload on the target");
  }
  const record::Candidate& first = search->trials().begin()->second;
  for (const SpaceInfo& space : spaces->spaces()) {
    if (space.digest != first.space_digest) continue;
    return environment.TraceText(space.text, first.decisions);
  }
  return absl::InternalError("the search proposed a candidate of an unknown design space");
}

}  // namespace hone::job

#include "server/job/search/first_work.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/seconds_text.h"
#include "server/job/search/search_options.h"

namespace hone::job {
namespace {

// Enough to exercise a strategy's first draws, and few enough to be cheap.
constexpr int kFirstBatch = 4;

}  // namespace

absl::Status TimeWasOver(absl::Duration limit, absl::string_view step) {
  return absl::DeadlineExceededError(absl::StrCat("the job's time of ", SecondsText(limit),
                                                  " was over while ", step,
                                                  ", so nothing was measured; give it more time"));
}

void DoFirstWork(const TaskEnvironment& environment, const JobSpec& spec,
                 absl::FunctionRef<void(absl::string_view step)> begins) {
  begins(kMakingSpaces);
  if (!environment.Describe(spec.workload).ok()) return;
  const absl::StatusOr<std::unique_ptr<TaskSpaces>> spaces =
      environment.Open(spec.workload, spec.target, spec.space, spec.tolerance);
  if (!spaces.ok() || spec.revalidate > 0) return;
  begins(kProposing);
  const absl::StatusOr<std::unique_ptr<TaskSearch>> search =
      TaskSearch::Create(&environment, spaces->get(), SearchOptionsOf(spec), /*prior=*/{});
  if (!search.ok()) return;
  (*search)->Propose(kFirstBatch).status().IgnoreError();
}

}  // namespace hone::job

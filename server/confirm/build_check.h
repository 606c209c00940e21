#ifndef HONE_SERVER_CONFIRM_BUILD_CHECK_H_
#define HONE_SERVER_CONFIRM_BUILD_CHECK_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "server/fleet/fleet.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

// An artifact and the candidate that it was built from.
struct BuiltCandidate {
  std::string name;  // for messages: "trial 7"
  record::Candidate candidate;
  std::string space;
  std::string artifact_digest;
  fleet::BuilderVersion builder;
  std::string worker_id;  // the worker that has the artifact
};

// Has a candidate built again from its trace, by another builder of the same version or else by a
// new process of the same builder, and compares the artifacts. A builder at fault, or one that
// somebody has changed, must not give users its own code. Belongs to the job's strand.
class BuildCheck {
 public:
  // `on_news`: called when Check may return something else. REQUIRES: `task` is a member of `job`.
  BuildCheck(JobActor& job, JobTask& task, std::function<void()> on_news)
      : job_(job), task_(task), on_news_(std::move(on_news)) {}

  enum class State { kOpen, kSame, kRefused };
  // Returns the state, and asks for the build if that was not done yet for this artifact. Called
  // periodically while it is open. kRefused: the artifacts differ, or it was not built again in
  // time; why() says which.
  State Check(const BuiltCandidate& built);
  const std::string& why() const { return why_; }

 private:
  void Ask(const std::string& worker);
  void OnBuilt(int asked, const absl::StatusOr<fleet::WorkResult>& result);

  JobActor& job_;
  JobTask& task_;
  const std::function<void()> on_news_;
  BuiltCandidate built_;
  State state_ = State::kOpen;
  std::string why_;
  std::string built_by_;
  std::string worker_;             // that was asked last
  std::vector<std::string> slow_;  // workers that did not answer in time
  bool waits_ = false;             // for an answer
  int attempts_ = 0;               // for this artifact
  int asked_ = 0;                  // number of the last request
  absl::Time began_, asked_at_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_BUILD_CHECK_H_

#ifndef HONE_SERVER_JOB_MANAGED_CHILD_JOBS_H_
#define HONE_SERVER_JOB_MANAGED_CHILD_JOBS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/job/actor/child_jobs.h"
#include "server/job/actor/job_services.h"
#include "server/job/job.h"
#include "server/job/job_book.h"
#include "server/job/job_starter.h"

namespace hone::job {

// The children of jobs of networks are jobs of the same server, in its book. Thread-safe. REQUIRES:
// the parts outlive this object.
class ManagedChildJobs final : public ChildJobs {
 public:
  ManagedChildJobs(const JobServices& services, const JobBook* book, JobStarter* starter)
      : services_(services), book_(*book), starter_(*starter) {}

  void CreateChild(const std::string& id, JobSpec spec, int64_t allowance, Done done) override;
  void ReopenChild(const std::string& id, int64_t allowance, Done done) override;
  absl::StatusOr<Child> GetChild(const std::string& id) const override;
  void AllowChild(const std::string& id, int64_t candidates) override;
  void FinishChild(const std::string& id, absl::Duration limit, bool cancelled) override;
  void CancelChild(const std::string& id) override;

 private:
  // Returns null if the child is not in memory.
  std::shared_ptr<Job> FindChild(const std::string& id) const;

  const JobServices& services_;
  const JobBook& book_;
  JobStarter& starter_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_MANAGED_CHILD_JOBS_H_

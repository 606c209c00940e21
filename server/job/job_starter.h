#ifndef HONE_SERVER_JOB_JOB_STARTER_H_
#define HONE_SERVER_JOB_JOB_STARTER_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "server/job/actor/job_services.h"
#include "server/job/job_book.h"
#include "server/store/store.h"

namespace hone::job {

// Makes jobs, stores their rows and starts them. `Done` runs once with the state of the job when it
// is durable. Thread-safe. REQUIRES: the services and the book outlive this object.
class JobStarter {
 public:
  using Done = absl::AnyInvocable<void(SnapshotOr) &&>;

  JobStarter(const JobServices& services, const JobOptions& options, JobBook* book)
      : services_(services), options_(options), book_(*book) {}

  // Returns a claim of this server that begins now.
  store::JobClaim Claim() const;
  // Makes a job that neither the book nor the store has.
  std::shared_ptr<JobActor> Make(JobSnapshot snapshot) const;

  // Stores a new job and starts it. Errors are those of JobManager::Create.
  void StartNew(JobSnapshot snapshot, Done done);
  // Does the same for a child. If the server is shutting down, `done` is not called, and the next
  // server continues.
  void StartChild(JobSnapshot snapshot, Done done);
  // Starts a job that has ended again. `snapshot` is its new state, and `row` has this state.
  // Unavailable: the server is shutting down.
  void StartAgain(store::JobRow row, JobSnapshot snapshot, Done done);

 private:
  // Returns the row of a new job, with this server's claim.
  store::JobRow NewRow(const JobSnapshot& snapshot) const;
  // Stores the row of a job that was added to the book, and starts the job.
  void StoreAndStart(store::JobRow row, std::shared_ptr<JobActor> job, Done done);

  const JobServices& services_;
  const JobOptions& options_;
  JobBook& book_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_JOB_STARTER_H_

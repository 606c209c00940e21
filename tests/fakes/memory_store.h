#ifndef HONE_TESTS_FAKES_MEMORY_STORE_H_
#define HONE_TESTS_FAKES_MEMORY_STORE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/store/store.h"

namespace hone::store {

// A store in memory. Writes are committed at once, or by Commit while they are held. Crash drops
// uncommitted writes. Thread-safe.
class MemoryStore final : public Store {
 public:
  // Makes later writes wait for Commit.
  void Hold();
  void Commit();
  // Acts like the end of the process: drops held writes without their callbacks, and ends the
  // claims on jobs.
  void Crash();
  // Makes IsShared return true, as for a store that server replicas share.
  void Share() { shared_ = true; }
  bool IsShared() const override { return shared_; }
  // Makes later writes fail with this status.
  void FailWrites(absl::Status status);
  // Calls a function once, at the next PutJob, before its write.
  void BeforePutJob(std::function<void()> call);
  // Makes later writes of "propose" events fail with this status.
  void FailProposals(absl::Status status);

  void PutText(const std::string& digest, const std::string& text, Done done) override;
  absl::StatusOr<std::string> GetText(const std::string& digest) override;
  using Store::Append;
  using Store::PublishBest;
  using Store::Quarantine;
  void Append(record::Record record, const JobFence& fence,
              absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) override;
  absl::StatusOr<std::vector<record::Record>> Query(const RecordQuery& query) override;
  void PublishBest(int64_t record_id, std::optional<int64_t> incumbent, const JobFence& fence,
                   Done done) override;
  void Quarantine(const std::string& workload_digest, const std::string& target,
                  const record::Candidate& candidate, int64_t last_record,
                  const std::string& reason, const JobFence& fence, Done done) override;
  absl::StatusOr<BestRow> LookupBest(const BestQuery& query) override;
  void Forget(const TaskKey& task, const std::string& reason,
              absl::AnyInvocable<void(absl::StatusOr<Forgotten>) &&> done) override;
  void PinBest(const TaskKey& task, int64_t record, const std::string& by, Done done) override;
  void UnpinBest(const TaskKey& task, Done done) override;
  absl::StatusOr<std::vector<BestRow>> PinnedBests() override;
  void PutArtifact(const std::string& digest, std::string bytes, Done done) override;
  absl::StatusOr<std::string> GetArtifact(const std::string& digest) override;
  absl::StatusOr<int64_t> NextJobNumber() override;
  void PutJob(JobRow job, Done done) override;
  absl::StatusOr<JobRow> GetJob(const std::string& id) override;
  absl::StatusOr<JobRow> GetJobByRequest(const std::string& request_id) override;
  absl::StatusOr<std::vector<JobRow>> ListJobs(int page_size, const std::string& after_id) override;
  void ClaimJobs(const JobClaim& claim, int limit,
                 absl::AnyInvocable<void(absl::StatusOr<std::vector<JobRow>>) &&> done) override;
  void RenewJobs(
      const JobClaim& claim,
      absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>) &&> done) override;
  void ReleaseJob(const std::string& id, int64_t fence, Done done) override;
  void AppendEvent(JobEvent event, Done done) override;
  absl::StatusOr<std::vector<JobEvent>> Events(const std::string& job_id) override;
  void PutModel(ModelRow model, absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done) override;
  absl::StatusOr<ModelRow> GetModel(const ModelKey& key) override;
  absl::StatusOr<ModelRow> GetModelById(int64_t id) override;
  absl::StatusOr<std::vector<ModelRow>> ListModels(const std::string& name,
                                                   const std::string& target) override;
  void ChangeStanding(StandingChange change, Done done) override;
  absl::StatusOr<std::vector<WorkerStanding>> Standings() override;
  void PutWorker(KnownWorker worker, Done done) override;
  void ForgetWorker(const std::string& worker_id, Done done) override;
  absl::StatusOr<std::vector<KnownWorker>> Workers() override;
  absl::StatusOr<std::string> Identity() override { return std::string("memory"); }
  // Import, Backup and Compact return Unimplemented.
  void Import(ImportBatch batch,
              absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done) override;
  absl::StatusOr<BackupReport> Backup(const std::string& path,
                                      const std::function<bool()>& cancelled) override;
  absl::StatusOr<CompactReport> Compact(const CompactOptions& options,
                                        const std::function<bool()>& cancelled) override;
  StoreHealth Health() override { return {.backend = "memory"}; }
  absl::Status Flush() override;

 private:
  // Runs `write` now, or at the next Commit if writes are held. `write` gets the status of the
  // commit and calls the callback.
  void Write(absl::AnyInvocable<void(absl::Status) &&> write);

  absl::Status CheckFence(const JobFence& fence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsUnpublishedBest(const record::Record& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The id of the published record of a task; 0: none is published.
  int64_t Published(const TaskKey& task) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BestRow MakeRow(int64_t id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Withdraw(int64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckPublishable(const record::Record& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool shared_ = false;
  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  absl::Status proposal_failure_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> before_put_job_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::AnyInvocable<void(absl::Status) &&>> writes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> texts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> artifacts_ ABSL_GUARDED_BY(mutex_);
  std::vector<record::Record> records_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> published_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Pin> pins_ ABSL_GUARDED_BY(mutex_);  // by record
  std::vector<JobRow> jobs_ ABSL_GUARDED_BY(mutex_);
  int64_t job_number_ ABSL_GUARDED_BY(mutex_) = 0;  // the last one given
  std::map<std::string, std::vector<JobEvent>> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<ModelRow> models_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, WorkerStanding> standings_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, KnownWorker> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::store

#endif  // HONE_TESTS_FAKES_MEMORY_STORE_H_

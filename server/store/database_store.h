#ifndef HONE_SERVER_STORE_DATABASE_STORE_H_
#define HONE_SERVER_STORE_DATABASE_STORE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/store/connection.h"
#include "server/store/read_limit.h"
#include "server/store/store.h"

namespace hone::store {

// A Store over the tables of a database. Derived classes implement the parts that differ between
// databases: how reads and writes get a connection, and how a whole store is copied or compacted.
class DatabaseStore : public Store {
 public:
  void PutText(const std::string& digest, const std::string& text, Done done) override;
  absl::StatusOr<std::string> GetText(const std::string& digest) override;
  void Append(record::Record record, const JobStep& step,
              absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) override;
  absl::StatusOr<std::vector<record::Record>> Query(const RecordQuery& query) override;
  void PublishBest(int64_t record_id, std::optional<int64_t> incumbent, Done done) override;
  void Quarantine(const std::string& workload_digest, const std::string& target,
                  const record::Candidate& candidate, int64_t last_record,
                  const std::string& reason, Done done) override;
  absl::StatusOr<BestRow> LookupBest(const BestQuery& query) override;
  void Forget(const TaskKey& task, const std::string& reason,
              absl::AnyInvocable<void(absl::StatusOr<Forgotten>) &&> done) override;
  void PinBest(const TaskKey& task, int64_t record, const std::string& by, Done done) override;
  void UnpinBest(const TaskKey& task, Done done) override;
  absl::StatusOr<std::vector<BestRow>> PinnedBests() override;
  void PutArtifact(const std::string& digest, std::string bytes, Done done) override;
  absl::StatusOr<std::string> GetArtifact(const std::string& digest) override;
  void PutJob(JobRow job, Done done, WhenFull when_full = WhenFull::kWait) override;
  absl::StatusOr<JobRow> GetJob(const std::string& id) override;
  absl::StatusOr<JobRow> GetJobByRequest(const std::string& request_id) override;
  absl::StatusOr<std::vector<JobRow>> ListJobs(int page_size, const std::string& after_id) override;
  absl::StatusOr<std::vector<JobRow>> UnfinishedJobs() override;
  void AppendEvent(JobEvent event, Done done) override;
  absl::StatusOr<std::vector<JobEvent>> Events(const std::string& job_id) override;
  void PutModel(ModelRow model, absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done) override;
  absl::StatusOr<ModelRow> GetModel(const ModelKey& key) override;
  absl::StatusOr<ModelRow> GetModelById(int64_t id) override;
  absl::StatusOr<std::vector<ModelRow>> ListModels(const std::string& name,
                                                   const std::string& target,
                                                   bool with_earlier = false) override;
  void PutCached(CachedRow row, Done done) override;
  absl::StatusOr<CachedRow> GetCached(const std::string& name,
                                      const std::string& environment) override;
  void ChangeStanding(StandingChange change, Done done) override;
  absl::StatusOr<std::vector<WorkerStanding>> Standings() override;
  void PutWorker(KnownWorker worker, Done done) override;
  absl::StatusOr<std::vector<KnownWorker>> Workers() override;
  absl::StatusOr<std::string> Identity() override;
  void Import(ImportBatch batch,
              absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done) override;
  absl::StatusOr<CompactReport> Compact(const CompactOptions& options,
                                        const std::function<bool()>& cancelled) override;

 protected:
  // May run more than once; only the last run counts.
  using Apply = absl::AnyInvocable<absl::Status(Connection&)>;
  static constexpr size_t kRowBytes = 512;  // approximate size of a queued write without its texts
  static size_t BytesOf(const record::Record& record);

  // If `clock` is null, the system's clock is used.
  explicit DatabaseStore(const Clock* clock) : clock_(clock != nullptr ? *clock : system_clock_) {}

  // Runs `read` on a connection for reading, and returns its result.
  virtual absl::Status Read(absl::FunctionRef<absl::Status(Connection&)> read) = 0;
  // Queues a write, which runs inside a transaction. `bytes`: its approximate size in memory.
  virtual void Write(Apply apply, Done done, size_t bytes, WhenFull when_full) = 0;
  // Gives unused space back to the disk.
  virtual absl::Status FreeSpace(const std::function<bool()>& cancelled) = 0;
  // Writes on the calling thread, and waits for the commit. REQUIRES: not called from a `done`.
  absl::Status WriteNow(const std::function<absl::Status(Connection&)>& work);

  // Runs a read that returns a value.
  template <typename Select>
  auto Get(Select select) -> decltype(select(std::declval<Connection&>())) {
    NoReads::Check();
    decltype(select(std::declval<Connection&>())) result = absl::UnknownError("no read ran");
    const absl::Status status = Read([&](Connection& connection) {
      result = select(connection);
      return result.status();
    });
    if (!status.ok()) return status;
    return result;
  }
  int64_t NowUnixMs() const { return absl::ToUnixMillis(clock_.Now()); }

 private:
  // Queues a write whose callback gets its result.
  template <typename Result>
  void WriteForResult(absl::AnyInvocable<absl::StatusOr<Result>(Connection&)> write,
                      absl::AnyInvocable<void(absl::StatusOr<Result>) &&> done, size_t bytes,
                      WhenFull when_full = WhenFull::kWait);

  const SystemClock system_clock_;
  const Clock& clock_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_DATABASE_STORE_H_

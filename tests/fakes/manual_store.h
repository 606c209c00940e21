#ifndef HONE_TESTS_FAKES_MANUAL_STORE_H_
#define HONE_TESTS_FAKES_MANUAL_STORE_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace hone::store {

// The store on SQLite, in memory and without threads of its own. Writes are committed at once, or
// by Commit while they are held. Thread-safe.
class ManualStore : public Store {
 public:
  ManualStore();
  // Makes later writes wait for Commit.
  void Hold();
  void Commit();
  // Acts like the end of the process: drops held writes without their callbacks.
  void Crash();
  // What Lead returns from now on. After anything but true, this server does not lead any more.
  void SetLeads(absl::StatusOr<bool> leads);
  absl::StatusOr<bool> Lead() override;
  absl::Status KeepLeading() override;
  absl::Status Leading() override { return KeepLeading(); }
  // Acts like a store whose disk is full: writes wait, and those that must not wait fail. OK: there
  // is space again, and the waiting writes are committed.
  void SetSpace(const absl::Status& space);
  absl::Status CheckSpace() override;
  // Makes later commits fail with this status.
  void FailWrites(absl::Status status);
  // Called before each read from now on. A read for which it returns an error fails with that.
  void BeforeReads(std::function<absl::Status()> hook);
  // Makes later writes of "propose" events fail with this status.
  void FailProposals(absl::Status status) { proposal_failure_ = std::move(status); }

  void AppendEvent(JobEvent event, Done done) override;
  absl::StatusOr<int64_t> NextJobNumber() override { return ++job_number_; }
  StoreHealth Health() override { return {}; }
  absl::Status Flush() override;
  // Returns Unimplemented.
  absl::StatusOr<BackupReport> Backup(const std::string& path,
                                      const std::function<bool()>& cancelled) override;

 private:
  struct HeldWrite {
    Apply apply;
    Done done;
  };

  absl::Status Read(absl::FunctionRef<absl::Status(Connection&)> read) override;
  void Write(Apply apply, Done done, size_t bytes, WhenFull when_full) override;
  absl::Status FreeSpace(const std::function<bool()>&) override { return absl::OkStatus(); }
  absl::Status CommitOne(Apply& apply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<int64_t> job_number_ = 0;  // the last one given
  absl::Status proposal_failure_;
  absl::Mutex mutex_;
  std::unique_ptr<SqliteConnection> connection_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status()> before_reads_ ABSL_GUARDED_BY(mutex_);
  absl::Status space_ ABSL_GUARDED_BY(mutex_);
  absl::StatusOr<bool> leads_ ABSL_GUARDED_BY(mutex_) = true;
  std::deque<HeldWrite> writes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::store

#endif  // HONE_TESTS_FAKES_MANUAL_STORE_H_

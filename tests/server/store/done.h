#ifndef HONE_TESTS_SERVER_STORE_DONE_H_
#define HONE_TESTS_SERVER_STORE_DONE_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "server/store/store.h"

namespace hone::store {

// Starts a write with a done callback, and waits for the status that the callback receives.
inline absl::Status Wait(const std::function<void(Store::Done)>& start) {
  absl::Notification ready;
  absl::Status result;
  start([&](absl::Status status) {
    result = std::move(status);
    ready.Notify();
  });
  ready.WaitForNotification();
  return result;
}

inline absl::Status PutText(Store& store, const std::string& digest, const std::string& text) {
  return Wait([&](Store::Done done) { store.PutText(digest, text, std::move(done)); });
}

inline absl::Status PutArtifact(Store& store, const std::string& digest, const std::string& bytes) {
  return Wait([&](Store::Done done) { store.PutArtifact(digest, bytes, std::move(done)); });
}

inline absl::Status PublishBest(Store& store, int64_t id,
                                std::optional<int64_t> incumbent = std::nullopt) {
  return Wait([&](Store::Done done) { store.PublishBest(id, incumbent, std::move(done)); });
}

inline absl::Status Quarantine(Store& store, const record::Record& record, int64_t last_record) {
  return Wait([&](Store::Done done) {
    store.Quarantine(record.workload_digest, record.target, record.candidate, last_record,
                     "a reason", std::move(done));
  });
}

inline absl::StatusOr<Forgotten> Forget(Store& store, const TaskKey& task,
                                        const std::string& reason) {
  absl::Notification ready;
  absl::StatusOr<Forgotten> result;
  store.Forget(task, reason, [&](absl::StatusOr<Forgotten> forgotten) {
    result = std::move(forgotten);
    ready.Notify();
  });
  ready.WaitForNotification();
  return result;
}

// Record 0 is the published best.
inline absl::Status PinBest(Store& store, const TaskKey& task, int64_t record = 0,
                            const std::string& by = "somebody") {
  return Wait([&](Store::Done done) { store.PinBest(task, record, by, std::move(done)); });
}

inline absl::Status UnpinBest(Store& store, const TaskKey& task) {
  return Wait([&](Store::Done done) { store.UnpinBest(task, std::move(done)); });
}

inline absl::Status PutStanding(Store& store, const WorkerStanding& standing) {
  return Wait([&](Store::Done done) { store.PutStanding(standing, std::move(done)); });
}

inline absl::Status PutJob(Store& store, const JobRow& job) {
  return Wait([&](Store::Done done) { store.PutJob(job, std::move(done)); });
}

inline absl::Status AppendEvent(Store& store, const JobEvent& event) {
  return Wait([&](Store::Done done) { store.AppendEvent(event, std::move(done)); });
}

inline absl::StatusOr<record::Record> Append(Store& store, const record::Record& record,
                                             const JobStep& step = {}) {
  absl::Notification ready;
  absl::StatusOr<record::Record> result;
  store.Append(record, step, [&](absl::StatusOr<record::Record> appended) {
    result = std::move(appended);
    ready.Notify();
  });
  ready.WaitForNotification();
  return result;
}

inline absl::StatusOr<int64_t> PutModel(Store& store, const ModelRow& model) {
  absl::Notification ready;
  absl::StatusOr<int64_t> result;
  store.PutModel(model, [&](absl::StatusOr<int64_t> id) {
    result = std::move(id);
    ready.Notify();
  });
  ready.WaitForNotification();
  return result;
}

inline absl::StatusOr<ImportReport> Import(Store& store, const ImportBatch& batch) {
  absl::Notification ready;
  absl::StatusOr<ImportReport> result;
  store.Import(batch, [&](absl::StatusOr<ImportReport> report) {
    result = std::move(report);
    ready.Notify();
  });
  ready.WaitForNotification();
  return result;
}

inline absl::StatusOr<CompactReport> Compact(Store& store, const CompactOptions& options) {
  return store.Compact(options, [] { return false; });
}

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_DONE_H_

// Takes over the rows of another store.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/record/origin.h"
#include "server/store/exchange/exchange.h"
#include "server/store/store.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

// Returns the name that a job of the store `origin` gets in the store `here`.
std::string ImportedJob(absl::string_view job, absl::string_view origin, absl::string_view here) {
  if (job.empty() || origin == here || record::IsImported(job)) return std::string(job);
  return record::ImportedJobId(origin, job);
}

// Adds the place of the record in the batch to the beginning of the message.
absl::Status AtRecord(const ImportBatch& batch, size_t index, const absl::Status& status) {
  const std::string where =
      index < batch.where.size() ? batch.where[index] : absl::StrCat("record ", index + 1);
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

// Checks that every record of the batch is well formed, and that its texts are in the batch or in
// the store. InvalidArgument: a record fails the check; the message says which.
absl::Status CheckBatch(Connection& connection, const ImportBatch& batch) {
  absl::flat_hash_map<std::string, bool> known;
  for (size_t i = 0; i < batch.records.size(); ++i) {
    const record::Record& record = batch.records[i];
    if (const absl::Status status = CheckRecord(record); !status.ok()) {
      return AtRecord(batch, i, status);
    }
    for (const std::string* const digest :
         {&record.workload_digest, &record.candidate.space_digest}) {
      if (batch.texts.contains(*digest)) continue;
      auto found = known.find(*digest);
      if (found == known.end()) {
        HONE_ASSIGN_OR_RETURN(const bool has, HasText(connection, *digest));
        found = known.emplace(*digest, has).first;
      }
      if (found->second) continue;
      return AtRecord(batch, i,
                      absl::InvalidArgumentError(absl::StrCat(
                          "its text ", *digest, " is neither in the import nor in the store")));
    }
  }
  return absl::OkStatus();
}

// Publishes a record unless the published best is at least as fast. Returns whether it was
// published.
absl::StatusOr<bool> PublishIfFaster(Connection& connection, const record::Record& record,
                                     int64_t id, int64_t now_unix_ms) {
  const absl::StatusOr<BestRow> best =
      SelectBest(connection, {.workload_digest = record.workload_digest,
                              .target = record.target,
                              .tolerance = record.tolerance,
                              .policy = record.policy.Key()});
  if (!best.ok() && !absl::IsNotFound(best.status())) return best.status();
  // Latencies on different inputs are not compared: the best of this store stays.
  if (best.ok() && (best->record.result.inputs != record.result.inputs ||
                    best->record.result.latency_ns <= record.result.latency_ns)) {
    return false;
  }
  const absl::Status published =
      InsertBest(connection, id, /*incumbent=*/std::nullopt, now_unix_ms);
  if (absl::IsFailedPrecondition(published)) return false;  // quarantined in this store
  if (absl::IsAlreadyExists(published)) return false;       // this store's best is pinned
  HONE_RETURN_IF_ERROR(published);
  return true;
}

absl::StatusOr<ImportReport> ImportRows(Connection& connection, const ImportBatch& batch,
                                        int64_t now_unix_ms) {
  HONE_RETURN_IF_ERROR(CheckBatch(connection, batch));
  HONE_ASSIGN_OR_RETURN(const std::string here, SelectIdentity(connection));
  for (const auto& [digest, text] : batch.texts) {
    HONE_RETURN_IF_ERROR(InsertText(connection, digest, text, now_unix_ms));
  }
  for (const auto& [digest, bytes] : batch.artifacts) {
    HONE_RETURN_IF_ERROR(InsertArtifact(connection, digest, bytes, now_unix_ms));
  }
  ImportReport report;
  std::vector<int64_t> ids(batch.records.size());
  for (size_t i = 0; i < batch.records.size(); ++i) {
    record::Record record = batch.records[i];
    HONE_ASSIGN_OR_RETURN(const std::optional<int64_t> same, FindSameRecord(connection, record));
    if (same.has_value()) {
      ids[i] = *same;
      ++report.known;
      continue;
    }
    record.job_id = ImportedJob(record.job_id, batch.origin, here);
    if (const absl::Status inserted = InsertRecord(connection, record); !inserted.ok()) {
      return AtRecord(batch, i, inserted);
    }
    ids[i] = record.id;
    ++report.added;
  }
  for (const size_t index : batch.bests) {
    absl::StatusOr<bool> published =
        PublishIfFaster(connection, batch.records[index], ids[index], now_unix_ms);
    if (!published.ok()) return AtRecord(batch, index, published.status());
    report.bests += *published ? 1 : 0;
  }
  return report;
}

constexpr int kRecordsAtOnce = 1000;
constexpr int kBestsAtOnce = 50;  // few, because their artifacts are large

// Adds the texts of records to a batch. A record whose texts are missing is not copied.
class Texts {
 public:
  explicit Texts(Store& from) : from_(from) {}
  // Adds the text to the batch unless an earlier batch contained it.
  absl::StatusOr<bool> Add(const std::string& digest, ImportBatch& batch) {
    if (sent_.contains(digest)) return true;
    absl::StatusOr<std::string> text = from_.GetText(digest);
    if (absl::IsNotFound(text.status())) return false;
    HONE_RETURN_IF_ERROR(text.status());
    batch.texts.emplace(digest, *std::move(text));
    sent_.insert(digest);
    return true;
  }

 private:
  Store& from_;
  absl::flat_hash_set<std::string> sent_;
};

absl::Status Send(Store& into, ImportBatch batch, ImportReport& sum) {
  absl::Notification done;
  absl::StatusOr<ImportReport> report;
  into.Import(std::move(batch), [&](absl::StatusOr<ImportReport> result) {
    report = std::move(result);
    done.Notify();
  });
  done.WaitForNotification();
  HONE_RETURN_IF_ERROR(report.status());
  sum.added += report->added;
  sum.known += report->known;
  sum.bests += report->bests;
  return absl::OkStatus();
}

}  // namespace

void Store::Import(ImportBatch batch,
                   absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done) {
  const size_t bytes = kRowBytes * (1 + batch.records.size());
  WriteForResult<ImportReport>(
      [this, batch = std::move(batch)](Connection& c) { return ImportRows(c, batch, NowUnixMs()); },
      std::move(done), bytes, WhenFull::kFail);
}

absl::StatusOr<ImportReport> MergeStores(Store& into, Store& from) {
  HONE_ASSIGN_OR_RETURN(const std::string origin, from.Identity());
  ImportReport sum;
  Texts texts(from);
  for (const bool bests : {false, true}) {
    RecordQuery query{.best_only = bests, .page_size = bests ? kBestsAtOnce : kRecordsAtOnce};
    while (true) {
      HONE_ASSIGN_OR_RETURN(std::vector<record::Record> page, from.Query(query));
      if (page.empty()) break;
      ImportBatch batch{.origin = origin};
      for (record::Record& record : page) {
        query.after_id = record.id;
        HONE_ASSIGN_OR_RETURN(const bool workload, texts.Add(record.workload_digest, batch));
        HONE_ASSIGN_OR_RETURN(const bool space, texts.Add(record.candidate.space_digest, batch));
        if (!workload || !space) continue;
        if (bests) {
          const std::string& artifact = record.result.artifact_digest;
          HONE_ASSIGN_OR_RETURN(batch.artifacts[artifact], from.GetArtifact(artifact));
          batch.bests.push_back(batch.records.size());
        }
        batch.where.push_back(absl::StrCat("record ", record.id, " of the other store"));
        batch.records.push_back(std::move(record));
      }
      ImportReport before = sum;
      HONE_RETURN_IF_ERROR(Send(into, std::move(batch), sum));
      if (bests) sum.known = before.known;  // these records were already counted
      if (static_cast<int>(page.size()) < query.page_size) break;
    }
  }
  return sum;
}

}  // namespace hone::store

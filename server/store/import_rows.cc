#include <optional>
#include <vector>

#include "common/base/status_macros.h"
#include "server/store/import_batch.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

absl::StatusOr<bool> HasText(Connection& connection, const std::string& digest) {
  HONE_ASSIGN_OR_RETURN(Statement find, connection.Prepare("SELECT 1 FROM text WHERE digest = ?"));
  return find.Bind(digest).Step();
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

}  // namespace

absl::StatusOr<ImportReport> ImportRows(Connection& connection, const ImportBatch& batch,
                                        int64_t now_unix_ms) {
  HONE_RETURN_IF_ERROR(
      CheckBatch(batch, [&](const std::string& digest) { return HasText(connection, digest); }));
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

}  // namespace hone::store

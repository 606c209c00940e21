#include "server/store/sqlite/compaction.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/job_columns.h"

namespace hone::store {
namespace {

constexpr size_t kRowsAtOnce = 500;
constexpr int kPagesAtOnce = 2000;  // number of pages that are freed at once

class Compaction {
 public:
  Compaction(const CompactionAccess& access, const CompactOptions& options)
      : access_(access), options_(options) {}

  absl::StatusOr<CompactReport> Run() {
    HONE_ASSIGN_OR_RETURN(report_.bytes_before, Size());
    if (options_.keep_unix_ms > 0) HONE_RETURN_IF_ERROR(Remove());
    if (!options_.dry_run) HONE_RETURN_IF_ERROR(GiveBack());
    HONE_ASSIGN_OR_RETURN(report_.bytes_after, Size());
    return report_;
  }

 private:
  absl::Status Remove() {
    HONE_RETURN_IF_ERROR(access_.read([this](SqliteConnection& c) { return ReadLimits(c); }));
    if (!options_.dry_run) HONE_RETURN_IF_ERROR(RemoveOldBests());
    for (std::string workload; true;) {
      HONE_RETURN_IF_ERROR(access_.read([&](SqliteConnection& c) { return Next(c, workload); }));
      if (workload.empty()) break;
      std::vector<int64_t> victims;
      HONE_RETURN_IF_ERROR(
          access_.read([&](SqliteConnection& c) { return Judge(c, workload, victims); }));
      report_.records_removed += static_cast<int64_t>(victims.size());
      // The conditions are checked again, because a record may have been published or a job resumed
      // meanwhile.
      HONE_RETURN_IF_ERROR(RemoveRows(
          victims, absl::StrCat("DELETE FROM record WHERE id = ? AND NOT EXISTS"
                                " (SELECT 1 FROM best WHERE record = record.id) AND NOT EXISTS"
                                " (SELECT 1 FROM job WHERE id = record.job AND ",
                                kUnfinished, ")")));
    }
    HONE_RETURN_IF_ERROR(RemoveJobs());
    HONE_RETURN_IF_ERROR(RemoveTexts());
    return RemoveArtifacts();
  }

  absl::Status ReadLimits(SqliteConnection& connection) {
    // Unfinished jobs may need rows that were put since the oldest of them began.
    HONE_ASSIGN_OR_RETURN(
        Statement oldest,
        connection.Prepare(
            absl::StrCat("SELECT IFNULL(MIN(created_unix_ms), ?) FROM job WHERE ", kUnfinished)));
    oldest.Bind(options_.keep_unix_ms);
    HONE_RETURN_IF_ERROR(oldest.Run());
    put_before_unix_ms_ = std::min(options_.keep_unix_ms, oldest.Int64());
    return absl::OkStatus();
  }

  // Removes the history of bests before the time limit, except those that are still published.
  absl::Status RemoveOldBests() {
    return access_.write([this](SqliteConnection& connection) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(Statement forget,
                            connection.Prepare("DELETE FROM best WHERE replaced_unix_ms < ?"));
      return forget.Bind(options_.keep_unix_ms).Run();
    });
  }

  static absl::Status Next(SqliteConnection& connection, std::string& workload) {
    HONE_ASSIGN_OR_RETURN(
        Statement next,
        connection.Prepare("SELECT workload FROM record WHERE workload > ? ORDER BY workload"
                           " LIMIT 1"));
    next.Bind(workload);
    HONE_ASSIGN_OR_RETURN(const bool found, next.Step());
    workload = found ? next.Text() : "";
    return absl::OkStatus();
  }

  // Finds the records of a workload to be removed, and collects the digests that the others need.
  absl::Status Judge(SqliteConnection& connection, const std::string& workload,
                     std::vector<int64_t>& victims) {
    if (access_.cancelled()) return absl::CancelledError("the compaction was cancelled");
    HONE_ASSIGN_OR_RETURN(
        Statement rows,
        connection.Prepare(absl::StrCat(
            "SELECT id, job, space, created_unix_ms >= ?1 OR (timed AND rank <= ?3)"
            " OR EXISTS (SELECT 1 FROM best WHERE record = ranked.id AND"
            " (replaced_unix_ms IS NULL OR replaced_unix_ms >= ?1))"
            " OR EXISTS (SELECT 1 FROM job WHERE id = ranked.job AND ",
            kUnfinished,
            ") FROM (SELECT id, job, space, created_unix_ms, timed,"
            " row_number() OVER (PARTITION BY target, timed ORDER BY latency_ns, id) AS rank"
            " FROM (SELECT id, job, space, created_unix_ms, target, latency_ns, outcome = 'ok'"
            " AND quarantined = 0 AND IFNULL(latency_ns, 0) > 0 AS timed"
            " FROM record WHERE workload = ?2)) AS ranked")));
    rows.Bind(options_.keep_unix_ms).Bind(workload).Bind(int64_t{options_.keep_best});
    return Connection::ForEachRow(rows, [&] {
      const int64_t id = rows.Int64();
      std::string job = rows.Text();
      std::string space = rows.Text();
      if (!rows.Bool()) {
        victims.push_back(id);
        return;
      }
      kept_texts_.insert(workload);
      kept_texts_.insert(std::move(space));
      kept_jobs_.insert(std::move(job));
    });
  }

  // Removes old jobs that have ended and have no records any more, with their events. The job with
  // the largest number is kept: when the store is opened, the next number follows from it, and the
  // number of a removed job must not be used again. Ids that are not numbers count as 0.
  absl::Status RemoveJobs() {
    std::vector<std::string> victims;
    HONE_RETURN_IF_ERROR(
        Collect(absl::StrCat("SELECT id FROM job WHERE NOT (", kUnfinished,
                             ") AND updated_unix_ms < ? AND CAST(id AS INTEGER) IS NOT"
                             " (SELECT NULLIF(MAX(CAST(id AS INTEGER)), 0) FROM job)"),
                options_.keep_unix_ms, kept_jobs_, victims));
    report_.jobs_removed = static_cast<int64_t>(victims.size());
    const std::string still_old = absl::StrCat(
        "id = ?1 AND NOT (", kUnfinished, ") AND NOT EXISTS (SELECT 1 FROM record WHERE job = ?1)");
    HONE_RETURN_IF_ERROR(
        RemoveRows(victims, absl::StrCat("DELETE FROM job_event WHERE job = ?1 AND EXISTS"
                                         " (SELECT 1 FROM job WHERE ",
                                         still_old, ")")));
    return RemoveRows(victims, absl::StrCat("DELETE FROM job WHERE ", still_old));
  }

  absl::Status RemoveTexts() {
    std::vector<std::string> victims;
    HONE_RETURN_IF_ERROR(Collect("SELECT digest FROM text WHERE put_unix_ms < ?",
                                 put_before_unix_ms_, kept_texts_, victims));
    report_.texts_removed = static_cast<int64_t>(victims.size());
    return RemoveRows(victims, "DELETE FROM text WHERE digest = ? AND put_unix_ms < ?",
                      put_before_unix_ms_);
  }

  absl::Status RemoveArtifacts() {
    absl::flat_hash_set<std::string> kept;
    HONE_RETURN_IF_ERROR(access_.read([&](SqliteConnection& connection) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(
          Statement used,
          connection.Prepare("SELECT r.artifact FROM best b CROSS JOIN record r ON r.id = b.record"
                             " WHERE b.replaced_unix_ms IS NULL OR b.replaced_unix_ms >= ?"));
      used.Bind(options_.keep_unix_ms);
      return Connection::ForEachRow(used, [&] { kept.insert(used.Text()); });
    }));
    std::vector<std::string> victims;
    HONE_RETURN_IF_ERROR(Collect("SELECT digest FROM artifact WHERE put_unix_ms < ?",
                                 put_before_unix_ms_, kept, victims));
    report_.artifacts_removed = static_cast<int64_t>(victims.size());
    return RemoveRows(victims, "DELETE FROM artifact WHERE digest = ? AND put_unix_ms < ?",
                      put_before_unix_ms_);
  }

  // Returns the texts that the statement finds, except those that must be kept.
  absl::Status Collect(const std::string& sql, int64_t before,
                       const absl::flat_hash_set<std::string>& kept,
                       std::vector<std::string>& victims) {
    return access_.read([&](SqliteConnection& connection) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(Statement old, connection.Prepare(sql));
      old.Bind(before);
      return Connection::ForEachRow(old, [&] {
        std::string key = old.Text();
        if (!kept.contains(key)) victims.push_back(std::move(key));
      });
    });
  }

  // Runs the statement for each key. `more`: its parameters after the key. They must not be written
  // into the text, because the connection keeps every text compiled.
  template <typename Key, typename... More>
  absl::Status RemoveRows(const std::vector<Key>& keys, const std::string& sql, More... more) {
    if (options_.dry_run) return absl::OkStatus();
    for (size_t begin = 0; begin < keys.size(); begin += kRowsAtOnce) {
      if (access_.cancelled()) return absl::CancelledError("the compaction was cancelled");
      const size_t end = std::min(keys.size(), begin + kRowsAtOnce);
      HONE_RETURN_IF_ERROR(access_.write([&](SqliteConnection& connection) -> absl::Status {
        for (size_t i = begin; i < end; ++i) {
          HONE_ASSIGN_OR_RETURN(Statement remove, connection.Prepare(sql));
          remove.Bind(keys[i]);
          (remove.Bind(more), ...);
          HONE_RETURN_IF_ERROR(remove.Run());
        }
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }

  // Moves pages from the end of the file into unused pages, and truncates the file.
  absl::Status GiveBack() {
    int64_t unused = -1;
    while (true) {
      if (access_.cancelled()) return absl::CancelledError("the compaction was cancelled");
      int64_t left = 0;
      HONE_RETURN_IF_ERROR(access_.write([&](SqliteConnection& connection) -> absl::Status {
        HONE_RETURN_IF_ERROR(
            connection.Execute(absl::StrCat("PRAGMA incremental_vacuum(", kPagesAtOnce, ")")));
        HONE_ASSIGN_OR_RETURN(left, connection.QueryInt64("PRAGMA freelist_count"));
        return absl::OkStatus();
      }));
      if (left == 0 || left == unused) return absl::OkStatus();
      unused = left;
    }
  }

  absl::StatusOr<int64_t> Size() {
    int64_t size = 0;
    HONE_RETURN_IF_ERROR(access_.read([&](SqliteConnection& connection) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(size, connection.SizeBytes());
      return absl::OkStatus();
    }));
    return size;
  }

  const CompactionAccess& access_;
  const CompactOptions options_;
  CompactReport report_;
  int64_t put_before_unix_ms_ = 0;
  absl::flat_hash_set<std::string> kept_texts_;
  absl::flat_hash_set<std::string> kept_jobs_;
};

}  // namespace

absl::StatusOr<CompactReport> CompactStore(const CompactionAccess& access,
                                           const CompactOptions& options) {
  if (options.keep_best < 0 || options.keep_unix_ms < 0) {
    return absl::InvalidArgumentError("keep_unix_ms and keep_best must not be negative");
  }
  return Compaction(access, options).Run();
}

}  // namespace hone::store

#include "server/store/retention.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

constexpr size_t kRowsAtOnce = 200;       // removed in one transaction
constexpr int64_t kRowsPerRead = 10'000;  // of records
constexpr int64_t kRecordBytes = 600;     // approximate size of a record without its samples
constexpr int64_t kBestBytes = 150;
// Indexes take about as much space as the rows themselves.
constexpr int64_t kWithIndexes = 2;
constexpr int64_t kDayMs = int64_t{24} * 3600 * 1000;

constexpr size_t kKeptConfirmed = 4;
constexpr size_t kKeptDefaults = 4;

// Mixes the bits of an id. Records with the smallest results are a sample that is even, and in
// which a record stays until one with a smaller result arrives.
uint64_t Mix(uint64_t id) {
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9;
  id = (id ^ (id >> 27)) * 0x94d049bb133111eb;
  return id ^ (id >> 31);
}

// Marks the first `count` of the entries in the order of `key` as kept.
template <typename Key>
void KeepFirst(std::vector<RecordEntry*> entries, size_t count, Key key) {
  const auto before = [&](const RecordEntry* a, const RecordEntry* b) { return key(*a) < key(*b); };
  if (entries.size() > count) {
    std::nth_element(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(count),
                     entries.end(), before);
    entries.resize(count);
  }
  for (RecordEntry* const entry : entries) entry->is_kept = true;
}

struct Victim {
  std::string key;  // of a text, an artifact or a job
  int64_t id = 0;   // of a record or a best
  int64_t bytes = 0;
};

class Retention {
 public:
  Retention(const RetentionAccess& access, const CompactOptions& options)
      : access_(access), options_(options), records_before_(options.before.records) {}

  absl::StatusOr<CompactReport> Run() {
    HONE_ASSIGN_OR_RETURN(report_.bytes_before, Get([](Connection& c) { return c.SizeBytes(); }));
    // Finds out early whether this server may write at all.
    if (!options_.dry_run) {
      HONE_RETURN_IF_ERROR(access_.write([](Connection&) { return absl::OkStatus(); }));
    }
    HONE_RETURN_IF_ERROR(RemoveBests());
    HONE_RETURN_IF_ERROR(access_.read([this](Connection& c) { return ReadNeeded(c); }));
    HONE_RETURN_IF_ERROR(ChooseAgeBySize());
    HONE_RETURN_IF_ERROR(RemoveRecords());
    HONE_RETURN_IF_ERROR(RemoveEvents());
    HONE_RETURN_IF_ERROR(RemoveJobs());
    if (records_before_ > 0) HONE_RETURN_IF_ERROR(RemoveBlobs());
    if (options_.free_space && !options_.dry_run) HONE_RETURN_IF_ERROR(access_.free_space());
    HONE_ASSIGN_OR_RETURN(report_.bytes_after, Get([](Connection& c) { return c.SizeBytes(); }));
    return report_;
  }

 private:
  // Returns the result of a read, which may run again after its connection broke.
  template <typename Select>
  auto Get(Select select) const -> decltype(select(std::declval<Connection&>())) {
    decltype(select(std::declval<Connection&>())) result = absl::UnknownError("no read ran");
    HONE_RETURN_IF_ERROR(access_.read([&](Connection& connection) {
      result = select(connection);
      return result.status();
    }));
    return result;
  }

  absl::Status Continue() const {
    if (access_.cancelled()) return absl::CancelledError("the compaction was cancelled");
    if (options_.pause > absl::ZeroDuration()) absl::SleepFor(options_.pause);
    return absl::OkStatus();
  }

  // Removes a few rows at a time. `remove` runs in a transaction and returns whether the row was
  // still to be removed.
  template <typename Remove>
  absl::Status RemoveEach(const std::vector<Victim>& victims, RemovedRows& removed, Remove remove) {
    if (options_.dry_run) {
      removed.rows += static_cast<int64_t>(victims.size());
      for (const Victim& victim : victims) removed.bytes += victim.bytes;
      return absl::OkStatus();
    }
    for (size_t begin = 0; begin < victims.size(); begin += kRowsAtOnce) {
      HONE_RETURN_IF_ERROR(Continue());
      const size_t end = std::min(victims.size(), begin + kRowsAtOnce);
      RemovedRows step;
      HONE_RETURN_IF_ERROR(access_.write([&](Connection& connection) -> absl::Status {
        step = RemovedRows();
        for (size_t i = begin; i < end; ++i) {
          HONE_ASSIGN_OR_RETURN(const bool was_there, remove(connection, victims[i]));
          if (!was_there) continue;
          ++step.rows;
          step.bytes += victims[i].bytes;
        }
        return absl::OkStatus();
      }));
      removed.rows += step.rows;
      removed.bytes += step.bytes;
    }
    return absl::OkStatus();
  }

  // Removes the replaced bests before their time limit.
  absl::Status RemoveBests() {
    if (options_.before.bests == 0) return absl::OkStatus();
    const auto old = Get([&](Connection& connection) {
      return Connection::ReadAll(
          connection.Prepare("SELECT id FROM best WHERE replaced_unix_ms < ?",
                             options_.before.bests),
          [](Statement& row) { return Victim{.id = row.Int64(), .bytes = kBestBytes}; });
    });
    HONE_RETURN_IF_ERROR(old.status());
    return RemoveEach(*old, report_.bests, [](Connection& connection, const Victim& victim) {
      return connection.Has(
          "DELETE FROM best WHERE id = ? AND replaced_unix_ms IS NOT NULL RETURNING 1", victim.id);
    });
  }

  // Reads what the rest depends on: the records and jobs of bests, and the jobs that may go on.
  absl::Status ReadNeeded(Connection& connection) {
    kept_records_.clear();
    kept_jobs_.clear();
    candidates_.clear();
    going_on_.clear();
    // A dry run has not removed the old bests.
    auto bests = connection.Prepare(
        "SELECT r.id, r.job, r.target, r.space, r.decisions, b.replaced_unix_ms IS NULL"
        " FROM best b CROSS JOIN record r WHERE r.id = b.record AND"
        " (b.replaced_unix_ms IS NULL OR b.replaced_unix_ms >= ?)",
        options_.before.bests);
    HONE_RETURN_IF_ERROR(Connection::ForEachRow(std::move(bests), [&](Statement& row) {
      kept_records_.insert(row.Int64());
      kept_jobs_.insert(row.Text());
      const size_t candidate = ReadCandidate(row);
      if (row.Bool()) candidates_.insert(candidate);
    }));
    // A job that has failed or was cancelled can be resumed as long as its state is kept.
    auto jobs = connection.Prepare(
        absl::StrCat("SELECT id, created_unix_ms, state IN ('pending', 'running', 'confirming')"
                     " FROM job WHERE ",
                     kUnfinished,
                     " OR (state IN ('failed', 'cancelled') AND updated_unix_ms >= ?)"),
        options_.before.jobs);
    began_unix_ms_ = access_.now_unix_ms + 1;
    return Connection::ForEachRow(std::move(jobs), [&](Statement& row) {
      std::string id = row.Text();
      const int64_t created = row.Int64();
      if (row.Bool()) began_unix_ms_ = std::min(began_unix_ms_, created);
      going_on_.insert(std::move(id));
    });
  }

  static size_t ReadCandidate(Statement& row) {
    const std::string target = row.Text();
    const std::string space = row.Text();
    const std::string decisions = row.Blob();
    return absl::HashOf(target, space, decisions);
  }

  // Raises the time limit of records if the store is too large.
  absl::Status ChooseAgeBySize() {
    if (options_.most_bytes == 0 || options_.spare_since_unix_ms <= records_before_) {
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const int64_t used, Get([](Connection& c) { return c.UsedBytes(); }));
    int64_t excess = used - options_.most_bytes;
    if (excess <= 0) return absl::OkStatus();
    std::map<int64_t, int64_t> bytes_of_days;
    HONE_RETURN_IF_ERROR(ForEachWorkload(
        options_.spare_since_unix_ms, [&](const std::string& workload) -> absl::Status {
          std::vector<Victim> victims;
          std::vector<int64_t> created;
          HONE_RETURN_IF_ERROR(Judge(workload, options_.spare_since_unix_ms, victims, &created));
          for (size_t i = 0; i < victims.size(); ++i) {
            bytes_of_days[created[i] / kDayMs] += kWithIndexes * victims[i].bytes;
          }
          return absl::OkStatus();
        }));
    for (const auto& [day, bytes] : bytes_of_days) {
      if (excess <= 0) break;
      excess -= bytes;
      records_before_ =
          std::max(records_before_, std::min((day + 1) * kDayMs, options_.spare_since_unix_ms));
    }
    return absl::OkStatus();
  }

  absl::Status RemoveRecords() {
    if (records_before_ == 0) return absl::OkStatus();
    return ForEachWorkload(records_before_, [this](const std::string& workload) -> absl::Status {
      std::vector<Victim> victims;
      HONE_RETURN_IF_ERROR(Judge(workload, records_before_, victims, nullptr));
      if (options_.dry_run) {
        for (const Victim& victim : victims) removed_.insert(victim.id);
      }
      // The conditions are checked again, because meanwhile a record may have been published,
      // a job resumed, or a job of the task begun.
      return RemoveEach(
          victims, report_.records, [this](Connection& connection, const Victim& victim) {
            return connection.Has(
                absl::StrCat("DELETE FROM record WHERE id = ? AND NOT EXISTS"
                             " (SELECT 1 FROM best b WHERE b.record = record.id) AND NOT EXISTS"
                             " (SELECT 1 FROM text t WHERE t.digest = record.workload"
                             " AND t.put_unix_ms >= ?) AND NOT EXISTS"
                             " (SELECT 1 FROM job j WHERE j.id = record.job AND j.",
                             kUnfinished, ") RETURNING 1"),
                victim.id, began_unix_ms_);
          });
    });
  }

  // Calls visit() for each workload with records before a time.
  template <typename Visit>
  absl::Status ForEachWorkload(int64_t before_unix_ms, Visit visit) {
    std::set<std::string> workloads;
    int64_t last_time = 0, last_id = 0;
    for (int64_t rows = kRowsPerRead; rows == kRowsPerRead;) {
      HONE_RETURN_IF_ERROR(Continue());
      const int64_t after_time = last_time, after_id = last_id;
      HONE_RETURN_IF_ERROR(access_.read([&](Connection& connection) {
        rows = 0;
        auto page = connection.Prepare(
            "SELECT created_unix_ms, id, workload FROM record WHERE (created_unix_ms, id) > (?, ?)"
            " AND created_unix_ms < ? ORDER BY created_unix_ms, id LIMIT ?",
            after_time, after_id, before_unix_ms, kRowsPerRead);
        return Connection::ForEachRow(std::move(page), [&](Statement& row) {
          last_time = row.Int64();
          last_id = row.Int64();
          workloads.insert(row.Text());
          ++rows;
        });
      }));
    }
    for (const std::string& workload : workloads) HONE_RETURN_IF_ERROR(visit(workload));
    return absl::OkStatus();
  }

  // Finds the records of a workload that can be removed. `created`: gets their times, may be null.
  absl::Status Judge(const std::string& workload, int64_t before_unix_ms,
                     std::vector<Victim>& victims, std::vector<int64_t>* created) {
    HONE_RETURN_IF_ERROR(Continue());
    // A job puts the text of its workload when it begins. It may need all records of its task
    // again, to continue after a restart with the same knowledge.
    HONE_ASSIGN_OR_RETURN(const bool is_in_use, Get([&](Connection& connection) {
                            return connection.Has(
                                "SELECT 1 FROM text WHERE digest = ? AND put_unix_ms >= ?",
                                workload, began_unix_ms_);
                          }));
    if (is_in_use) return absl::OkStatus();
    // By target and tolerance.
    std::map<std::pair<std::string, double>, std::vector<RecordEntry>> tasks;
    std::set<std::pair<std::string, double>> in_use;
    int64_t last = 0;
    for (int64_t rows = kRowsPerRead; rows == kRowsPerRead;) {
      const int64_t after = last;
      HONE_RETURN_IF_ERROR(access_.read([&](Connection& connection) {
        // A read may run again after its connection broke.
        for (auto& [task, entries] : tasks) {
          std::erase_if(entries, [&](const RecordEntry& entry) { return entry.id > after; });
        }
        rows = 0;
        return ReadEntries(connection, workload, after, tasks, in_use, last, rows);
      }));
    }
    for (auto& [task, entries] : tasks) {
      if (in_use.contains(task)) continue;
      KeepOfTask(entries, options_);
      for (const RecordEntry& entry : entries) {
        if (entry.is_kept || entry.created_unix_ms >= before_unix_ms ||
            kept_records_.contains(entry.id) ||
            (!entry.is_screened && candidates_.contains(entry.candidate))) {
          continue;
        }
        victims.push_back({.id = entry.id, .bytes = entry.bytes});
        if (created != nullptr) created->push_back(entry.created_unix_ms);
      }
    }
    return absl::OkStatus();
  }

  // Reads a page of records of a workload after an id, the tasks of jobs that may go on, the last
  // id and the number of rows.
  absl::Status ReadEntries(
      Connection& connection, const std::string& workload, int64_t after,
      std::map<std::pair<std::string, double>, std::vector<RecordEntry>>& tasks,
      std::set<std::pair<std::string, double>>& in_use, int64_t& last, int64_t& rows) const {
    auto page = connection.Prepare(
        "SELECT id, created_unix_ms, tolerance, job, latency_ns, outcome = 'ok', quarantined,"
        " policy_name, is_default, length(samples_ns) + length(decisions), target, target, space,"
        " decisions FROM record WHERE workload = ? AND id > ? ORDER BY id LIMIT ?",
        workload, after, kRowsPerRead);
    return Connection::ForEachRow(std::move(page), [&](Statement& row) {
      RecordEntry entry{.id = row.Int64(), .created_unix_ms = row.Int64()};
      const double tolerance = row.Double();
      const std::string job = row.Text();
      entry.latency_ns = row.Double();
      const bool is_ok = row.Bool();
      entry.is_quarantined = row.Bool();
      entry.is_good = is_ok && !entry.is_quarantined && entry.latency_ns > 0;
      const std::string policy = row.Text();
      entry.is_screened = policy == "screen";
      entry.is_confirmed = policy == "confirm";
      entry.is_default = row.Bool();
      entry.bytes = kRecordBytes + row.Int64();
      const std::pair task(row.Text(), tolerance);
      entry.candidate = ReadCandidate(row);
      last = entry.id;
      ++rows;
      if (MayGoOn(job)) in_use.insert(task);
      tasks[task].push_back(entry);
    });
  }

  // Whether a job has not ended or can be resumed, or is a task of a network of which that is true.
  bool MayGoOn(const std::string& job) const {
    return going_on_.contains(job) || going_on_.contains(job.substr(0, job.find('.')));
  }

  // Reads the victims of a table: rows of a text and a size.
  absl::StatusOr<std::vector<Victim>> Find(const std::string& sql, int64_t before_unix_ms) {
    return Get([&](Connection& connection) {
      return Connection::ReadAll(connection.Prepare(sql, before_unix_ms), [](Statement& row) {
        Victim victim{.key = row.Text()};
        victim.bytes = row.Int64();
        return victim;
      });
    });
  }

  // Removes the events of jobs, all of a job in one transaction: a part of them is of no use.
  // Leaves out jobs that do not have the state any more. In a dry run, counts them.
  absl::Status RemoveEventsOf(const std::vector<Victim>& jobs, absl::string_view state,
                              bool with_job) {
    for (const Victim& job : jobs) {
      HONE_RETURN_IF_ERROR(Continue());
      RemovedRows events, rows;
      const auto work = [&](Connection& connection) -> absl::Status {
        events = rows = RemovedRows();
        HONE_ASSIGN_OR_RETURN(
            const bool is_there,
            connection.Has(absl::StrCat("SELECT 1 FROM job WHERE id = ? AND ", state), job.key));
        if (!is_there) return absl::OkStatus();
        if (with_job) rows = {.rows = 1, .bytes = job.bytes};
        HONE_RETURN_IF_ERROR(Connection::ForEachRow(
            connection.Prepare("SELECT COUNT(*), COALESCE(SUM(length(payload)), 0)"
                               " FROM job_event WHERE job = ?",
                               job.key),
            [&](Statement& row) {
              events.rows = row.Int64();
              events.bytes = row.Int64();
            }));
        if (options_.dry_run) return absl::OkStatus();
        HONE_RETURN_IF_ERROR(connection.Run("DELETE FROM job_event WHERE job = ?", job.key));
        return with_job ? connection.Run("DELETE FROM job WHERE id = ?", job.key)
                        : absl::OkStatus();
      };
      HONE_RETURN_IF_ERROR(options_.dry_run ? access_.read(work) : access_.write(work));
      report_.events.rows += events.rows;
      report_.events.bytes += events.bytes;
      report_.jobs.rows += rows.rows;
      report_.jobs.bytes += rows.bytes;
    }
    return absl::OkStatus();
  }

  // Removes the events of jobs that are done, which cannot be resumed, unless their network can.
  absl::Status RemoveEvents() {
    if (options_.before.events == 0) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(
        std::vector<Victim> jobs,
        Find("SELECT id, 0 FROM job WHERE state = 'done' AND updated_unix_ms < ? AND EXISTS"
             " (SELECT 1 FROM job_event WHERE job = job.id AND number = 0)",
             options_.before.events));
    std::erase_if(jobs, [&](const Victim& job) { return MayGoOn(job.key); });
    if (options_.dry_run && options_.before.jobs > 0) {
      // RemoveJobs counts those of jobs that go as a whole.
      HONE_ASSIGN_OR_RETURN(const std::vector<Victim> whole, FindJobs());
      absl::flat_hash_set<std::string> ids;
      for (const Victim& job : whole) ids.insert(job.key);
      std::erase_if(jobs, [&](const Victim& job) { return ids.contains(job.key); });
    }
    return RemoveEventsOf(jobs, "state = 'done'", /*with_job=*/false);
  }

  // Returns the jobs that have ended before their time limit. The job with the largest number is
  // kept: when a file is opened, the next number follows from it, and the number of a removed job
  // must not be used again. Ids that are not numbers count as 0. A database has its own counter.
  absl::StatusOr<std::vector<Victim>> FindJobs() {
    HONE_ASSIGN_OR_RETURN(
        std::vector<Victim> jobs,
        Find(absl::StrCat("SELECT id, length(request) + length(summary) FROM job WHERE NOT (",
                          kUnfinished, ") AND updated_unix_ms < ?"),
             options_.before.jobs));
    HONE_ASSIGN_OR_RETURN(const int64_t last, Get([](Connection& c) -> absl::StatusOr<int64_t> {
                            if (c.dialect() != Dialect::kSqlite) return 0;
                            HONE_ASSIGN_OR_RETURN(Statement largest, c.Prepare(kLastJobSql));
                            HONE_RETURN_IF_ERROR(largest.Run());
                            return largest.Int64();
                          }));
    std::erase_if(jobs, [&](const Victim& job) {
      // The tasks of a network are its children.
      return kept_jobs_.contains(job.key) || MayGoOn(job.key) ||
             (last > 0 && job.key.substr(0, job.key.find('.')) == absl::StrCat(last));
    });
    return jobs;
  }

  absl::Status RemoveJobs() {
    if (options_.before.jobs == 0) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const std::vector<Victim> jobs, FindJobs());
    return RemoveEventsOf(jobs, absl::StrCat("NOT (", kUnfinished, ")"), /*with_job=*/true);
  }

  // Removes texts and artifacts that no record names, except those that were put since the oldest
  // unfinished job began, which may need them.
  absl::Status RemoveBlobs() {
    const int64_t before = std::min(records_before_, began_unix_ms_);
    HONE_ASSIGN_OR_RETURN(
        std::vector<Victim> texts,
        Find("SELECT digest, length(text) FROM text WHERE put_unix_ms < ?", before));
    HONE_ASSIGN_OR_RETURN(
        std::vector<Victim> artifacts,
        Find("SELECT digest, length(bytes) FROM artifact WHERE put_unix_ms < ?", before));
    absl::flat_hash_set<std::string> unnamed_texts, unnamed_artifacts;
    for (const Victim& text : texts) unnamed_texts.insert(text.key);
    for (const Victim& artifact : artifacts) unnamed_artifacts.insert(artifact.key);
    int64_t last = 0;
    for (int64_t rows = kRowsPerRead; rows == kRowsPerRead;) {
      if (unnamed_texts.empty() && unnamed_artifacts.empty()) return absl::OkStatus();
      HONE_RETURN_IF_ERROR(Continue());
      const int64_t after = last;
      HONE_RETURN_IF_ERROR(access_.read([&](Connection& connection) {
        rows = 0;
        // `inputs` may name data to measure on, which is kept like an artifact.
        auto page = connection.Prepare(
            "SELECT id, workload, space, artifact, inputs FROM record WHERE id > ? ORDER BY id"
            " LIMIT ?",
            after, kRowsPerRead);
        return Connection::ForEachRow(std::move(page), [&](Statement& row) {
          last = row.Int64();
          ++rows;
          if (removed_.contains(last)) return;
          unnamed_texts.erase(row.Text());
          unnamed_texts.erase(row.Text());
          unnamed_artifacts.erase(row.Text());
          unnamed_artifacts.erase(row.Text());
        });
      }));
    }
    std::erase_if(texts, [&](const Victim& text) { return !unnamed_texts.contains(text.key); });
    std::erase_if(artifacts, [&](const Victim& artifact) {
      return !unnamed_artifacts.contains(artifact.key);
    });
    HONE_RETURN_IF_ERROR(
        RemovePut("DELETE FROM text WHERE digest = ? AND put_unix_ms < ?"
                  " RETURNING 1",
                  before, texts, report_.texts));
    return RemovePut("DELETE FROM artifact WHERE digest = ? AND put_unix_ms < ? RETURNING 1",
                     before, artifacts, report_.artifacts);
  }

  // Removes rows unless they were put again meanwhile.
  absl::Status RemovePut(const char* sql, int64_t before_unix_ms,
                         const std::vector<Victim>& victims, RemovedRows& removed) {
    return RemoveEach(victims, removed, [=](Connection& connection, const Victim& victim) {
      return connection.Has(sql, victim.key, before_unix_ms);
    });
  }

  const RetentionAccess& access_;
  const CompactOptions options_;
  CompactReport report_;
  int64_t records_before_;  // the time limit of records, which the size of the store may raise
  absl::flat_hash_set<int64_t> kept_records_;   // of bests
  absl::flat_hash_set<std::string> kept_jobs_;  // of their jobs
  absl::flat_hash_set<size_t> candidates_;      // of published bests, as in RecordEntry::candidate
  absl::flat_hash_set<std::string> going_on_;   // jobs that have not ended or can be resumed
  // When the oldest unfinished job was created, at most just after this compaction began: a job may
  // begin meanwhile.
  int64_t began_unix_ms_ = 0;
  absl::flat_hash_set<int64_t> removed_;  // records that a dry run would remove
};

}  // namespace

void KeepOfTask(std::vector<RecordEntry>& entries, const CompactOptions& options) {
  const auto those = [&](auto condition) {
    std::vector<RecordEntry*> found;
    for (RecordEntry& entry : entries) {
      if (condition(entry)) found.push_back(&entry);
    }
    return found;
  };
  const auto latency = [](const RecordEntry& entry) {
    return std::pair(entry.latency_ns, entry.id);
  };
  KeepFirst(those([](const RecordEntry& entry) { return entry.is_good && entry.is_confirmed; }),
            kKeptConfirmed, latency);
  KeepFirst(those([](const RecordEntry& entry) {
              return entry.is_good && entry.is_confirmed && entry.is_default;
            }),
            kKeptDefaults, [](const RecordEntry& entry) { return -entry.id; });
  KeepFirst(those([](const RecordEntry& entry) { return entry.is_good; }),
            static_cast<size_t>(options.keep_best), latency);
  KeepFirst(those([](const RecordEntry& entry) { return !entry.is_quarantined && !entry.is_kept; }),
            static_cast<size_t>(options.keep_sample),
            [](const RecordEntry& entry) { return Mix(static_cast<uint64_t>(entry.id)); });
}

absl::StatusOr<CompactReport> RemoveOldRows(const RetentionAccess& access,
                                            const CompactOptions& options) {
  const CompactOptions::Before& before = options.before;
  if (std::min({before.records, before.bests, before.events, before.jobs, options.most_bytes,
                options.spare_since_unix_ms}) < 0 ||
      std::min(options.keep_best, options.keep_sample) < 0) {
    return absl::InvalidArgumentError("the limits of a compaction must not be negative");
  }
  return Retention(access, options).Run();
}

}  // namespace hone::store

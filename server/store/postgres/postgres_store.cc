#include "server/store/postgres/postgres_store.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/read_limit.h"
#include "server/store/reader_pool.h"
#include "server/store/record_columns.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

// The most frequent writes as one statement each, for the writer's pipeline. The functions of
// tables.h would need a round trip for every step.

// "$from, …, $to"
std::string DollarParameters(int from, int to) {
  std::string text = absl::StrCat("$", from);
  for (int i = from + 1; i <= to; ++i) absl::StrAppend(&text, ", $", i);
  return text;
}

std::string InsertRecordSql() {
  const RecordColumns& columns = Columns();
  const int first = columns.insert_count + 1;  // of the environment's parameters
  const std::string environment = DollarParameters(first, first + columns.environment_count - 1);
  const int step = first + columns.environment_count;  // the job and its event
  const std::string event = absl::StrCat("CAST($", step + 1, " AS bigint)");
  const std::string same = absl::StrCat("SELECT id FROM environment WHERE (", columns.environment,
                                        ") = (", environment, ")");
  // The record needs no event, or one that is stored.
  return absl::StrCat(
      "WITH known AS (", same, "), logged AS (SELECT 1 WHERE ", event,
      " < 0 OR EXISTS (SELECT 1 FROM job_event WHERE job = $", step, " AND number = ", event,
      ")), added AS (INSERT INTO environment (", columns.environment, ") SELECT ", environment,
      " FROM logged WHERE NOT EXISTS (SELECT 1 FROM known) RETURNING id), done AS (INSERT "
      "INTO record (",
      columns.insert, ", environment) SELECT ", DollarParameters(1, columns.insert_count),
      ", COALESCE((SELECT id FROM known), (SELECT id FROM added)) FROM logged RETURNING id)"
      " SELECT COALESCE((SELECT id FROM done), 0)");
}

PostgresCommand RecordCommand(const record::Record& record, const JobStep& step) {
  static const auto* const sql = new std::string(InsertRecordSql());
  PostgresCommand command{.sql = *sql};
  BindRecord(command.params, record);
  BindEnvironment(command.params, record.environment);
  command.params.Bind(absl::string_view(step.job_id)).Bind(step.event);
  return command;
}

// Reads the id of the record. FailedPrecondition: the event is not stored.
absl::StatusOr<int64_t> InsertedRecord(const JobStep& step, PostgresRows& rows) {
  if (!rows.Next()) return absl::InternalError("a record's statement has no row");
  const int64_t id = rows.Int64();
  if (id == 0) return NoEventError(step);
  return id;
}

PostgresCommand EventCommand(const JobEvent& event) {
  PostgresCommand command{
      .sql =
          "WITH known AS (SELECT 1 FROM job WHERE id = $1),"
          " next AS (SELECT COALESCE(MAX(number) + 1, 0) AS number FROM job_event WHERE job = $1),"
          " done AS (INSERT INTO job_event (job, number, kind, payload)"
          " SELECT $1, $2, $3, $4 FROM known, next WHERE next.number = $2 RETURNING 1)"
          " SELECT (SELECT COUNT(*) FROM known), (SELECT number FROM next),"
          " (SELECT COUNT(*) FROM done)"};
  command.params.Bind(absl::string_view(event.job_id)).Bind(event.number);
  command.params.Bind(absl::string_view(event.kind)).BindBlob(event.payload);
  return command;
}

// Reads the status of the write; see Store::AppendEvent.
absl::Status CheckEventInserted(const JobEvent& event, PostgresRows& rows) {
  if (!rows.Next()) return absl::InternalError("an event's statement has no row");
  if (rows.Int64() == 0) {
    return absl::NotFoundError(absl::StrCat("no job has id '", event.job_id, "'"));
  }
  const int64_t next = rows.Int64();
  return rows.Int64() == 0 ? EventNumberError(event, next) : absl::OkStatus();
}

class PostgresStore final : public Store {
 public:
  PostgresStore(const std::string& place, std::string name)
      : Store(/*clock=*/nullptr),
        readers_([place] { return PostgresConnection::Open(place); }),
        name_(std::move(name)),
        committer_(place),
        // All writes that wait when the previous group is committed form the next group.
        writer_(name_, &committer_, {.max_group_writes = 256, .idle_wait = absl::ZeroDuration()}) {}
  // The callbacks of the last writes may still read.
  ~PostgresStore() override { writer_.Stop(); }

  // The most frequent writes are one statement each, and are sent together.
  void PutText(const std::string& digest, const std::string& text, Done done) override {
    PostgresCommand command{.sql = kInsertText};
    command.params.Bind(absl::string_view(digest)).Bind(absl::string_view(text)).Bind(NowUnixMs());
    Enqueue(std::move(command), Ignore, std::move(done), kRowBytes + text.size(),
            CheckDigest(digest));
  }
  void PutArtifact(const std::string& digest, std::string bytes, Done done) override {
    PostgresCommand command{.sql = kInsertArtifact};
    command.params.Bind(absl::string_view(digest)).BindBlob(bytes).Bind(NowUnixMs());
    Enqueue(std::move(command), Ignore, std::move(done), kRowBytes + bytes.size(),
            CheckDigest(digest));
  }
  void Append(record::Record record, const JobStep& step,
              absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) override {
    const size_t bytes = BytesOf(record);
    PostgresCommand command = RecordCommand(record, step);
    absl::Status refused = CheckRecord(record);
    // The second callback runs after the last run of the first.
    auto shared = std::make_shared<record::Record>(std::move(record));
    Enqueue(
        std::move(command),
        [shared, step](PostgresRows& rows) -> absl::Status {
          HONE_ASSIGN_OR_RETURN(shared->id, InsertedRecord(step, rows));
          return absl::OkStatus();
        },
        [shared, done = std::move(done)](absl::Status status) mutable {
          if (status.ok()) {
            std::move(done)(std::move(*shared));
          } else {
            std::move(done)(std::move(status));
          }
        },
        bytes, std::move(refused));
  }
  void PutJob(JobRow job, Done done, WhenFull when_full) override {
    const size_t bytes = kRowBytes + job.request.size() + job.summary.size();
    PostgresCommand command{.sql = UpsertJobSql()};
    BindJob(command.params, job);
    absl::Status refused = CheckJob(job);
    auto shared = std::make_shared<const JobRow>(std::move(job));
    Enqueue(
        std::move(command), Ignore,
        [shared, done = std::move(done)](absl::Status status) mutable {
          std::move(done)(absl::IsAlreadyExists(status) ? SameRequestError(*shared) : status);
        },
        bytes, std::move(refused), when_full);
  }
  void AppendEvent(JobEvent event, Done done) override {
    const size_t bytes = kRowBytes + event.payload.size();
    PostgresCommand command = EventCommand(event);
    event.payload.clear();  // the command has a copy
    Enqueue(
        std::move(command),
        [event = std::move(event)](PostgresRows& rows) { return CheckEventInserted(event, rows); },
        std::move(done), bytes);
  }

  absl::StatusOr<int64_t> NextJobNumber() override {
    return Get([](Connection& connection) -> absl::StatusOr<int64_t> {
      HONE_ASSIGN_OR_RETURN(Statement next, connection.Prepare("SELECT nextval('job_number')"));
      HONE_RETURN_IF_ERROR(next.Run());
      return next.Int64();
    });
  }
  absl::StatusOr<bool> Lead() override { return committer_.Lead(); }
  absl::Status KeepLeading() override {
    const absl::Time now = SteadyNow();
    // A write keeps the session from being idle, and finds out whether the database still answers.
    if (now - kept_ >= kKeepInterval && writer_.Queued() == 0) {
      kept_ = now;
      Write([](Connection&) { return absl::OkStatus(); }, [](const absl::Status&) {}, kRowBytes,
            WhenFull::kWait);
    }
    return committer_.leading();
  }
  absl::Status Leading() override { return committer_.leading(); }
  absl::StatusOr<BackupReport> Backup(const std::string&, const std::function<bool()>&) override {
    return absl::FailedPreconditionError(
        "the store is a PostgreSQL database, which is not copied as a file: back it up with pg_dump"
        " or the database's own means, or export the records");
  }
  StoreHealth Health() override {
    StoreHealth health{.backend = "postgresql"};
    health.queued_writes = static_cast<int64_t>(writer_.Queued());
    health.size_bytes = Get([](Connection& c) { return c.SizeBytes(); }).value_or(0);
    return health;
  }
  absl::Status CheckSpace() override { return writer_.CheckSpace(); }
  absl::Status Flush() override { return writer_.Flush(); }

 private:
  using OnRows = absl::AnyInvocable<absl::Status(PostgresRows&)>;
  static absl::Status Ignore(PostgresRows&) { return absl::OkStatus(); }
  // Queues a write of one statement. If `refused` is not OK, nothing is written and the callback
  // gets this error.
  void Enqueue(PostgresCommand command, OnRows on_rows, Done done, size_t bytes,
               absl::Status refused = absl::OkStatus(), WhenFull when_full = WhenFull::kWait) {
    refused.Update(command.params.status());
    writer_.Enqueue({.command = std::move(command), .on_rows = std::move(on_rows)}, std::move(done),
                    bytes, when_full, std::move(refused));
  }
  absl::Status Read(absl::FunctionRef<absl::Status(Connection&)> read) override {
    bool answered = false;
    const absl::Status status = readers_.With([&](Connection& connection) {
      absl::Status result = read(connection);
      answered = !connection.IsLost();
      return result;
    });
    // What the server shows and starts depends on reads, so it must begin anew once the database is
    // back. A job whose read failed is left to the next leader.
    const bool is_away = absl::IsUnavailable(status) && !answered && ReadLimit::Check().ok();
    if (is_away) committer_.GiveUp(status);
    return status;
  }
  void Write(Apply apply, Done done, size_t bytes, WhenFull when_full) override {
    writer_.Enqueue({.apply = std::move(apply)}, std::move(done), bytes, when_full);
  }
  // Makes the space free for new rows. The database also truncates unused pages at the ends of
  // files.
  absl::Status FreeSpace(const std::function<bool()>&) override {
    return Get([](Connection& c) -> absl::StatusOr<bool> {
             HONE_RETURN_IF_ERROR(static_cast<PostgresConnection&>(c).Execute("VACUUM"));
             return true;
           })
        .status();
  }

  static constexpr absl::Duration kKeepInterval = absl::Seconds(2);

  ReaderPool readers_;
  const std::string name_;
  absl::Time kept_ = absl::InfinitePast();  // the last write of KeepLeading
  PostgresCommitter committer_;
  WriteQueue<PostgresWork> writer_;  // last: its callbacks use the others
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenPostgresStore(const std::string& place) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> connection,
                        PostgresConnection::Open(place));
  HONE_ASSIGN_OR_RETURN(PostgresRows encoding,
                        connection->Query("SELECT current_setting('server_encoding')"));
  encoding.Next();
  if (const std::string found = encoding.Text(); found != "UTF8") {
    return absl::FailedPreconditionError(absl::StrCat(
        "the PostgreSQL ", connection->name(), " keeps texts in ", found,
        ": make the store's database with createdb --encoding=UTF8 --template=template0"));
  }
  HONE_RETURN_IF_ERROR(CheckLeaderSettings(*connection));
  HONE_RETURN_IF_ERROR(MigratePostgres(*connection, PostgresMigrations(), /*is_leader=*/false));
  return std::make_unique<PostgresStore>(place, connection->name());
}

}  // namespace hone::store

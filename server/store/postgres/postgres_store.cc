#include "server/store/postgres/postgres_store.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "server/store/read_limit.h"
#include "server/store/reader_pool.h"
#include "server/store/tables.h"
#include "spdlog/spdlog.h"

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
    PostgresCommand command{.sql = UpsertSql("job", kJobColumns)};
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
    StoreHealth health{.queued_writes = static_cast<int64_t>(writer_.Queued())};
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

// How long a leader tries to continue its epoch after its connection broke.
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr absl::Duration kFirstWait = absl::Milliseconds(20);
constexpr absl::Duration kLongestWait = absl::Milliseconds(500);
constexpr absl::Duration kPatienceInAHurry = absl::Milliseconds(200);

absl::Status Deposed(absl::string_view why) {
  return absl::AbortedError(absl::StrCat("this server does not lead any more: ", why));
}

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

absl::Status CheckLeaderSettings(PostgresConnection& connection) {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection.Query("SELECT current_setting('transaction_read_only') = 'on',"
                                         " current_setting('synchronous_commit') = 'off'"));
  rows.Next();
  if (rows.Bool()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the PostgreSQL ", connection.name(),
        " only accepts reads: name its primary, or all hosts with target_session_attrs=read-write "
        "(postgresql://a,b/hone?target_session_attrs=read-write)"));
  }
  if (rows.Bool()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the PostgreSQL ", connection.name(),
        " has synchronous_commit = off, so it could lose writes that were acknowledged: set it to "
        "on for this database (ALTER DATABASE … SET synchronous_commit = on)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> PostgresCommitter::Lock() {
  if (connection_ != nullptr && connection_->IsLost()) connection_.reset();
  if (connection_ == nullptr) {
    HONE_ASSIGN_OR_RETURN(connection_, PostgresConnection::Open(place_));
    // The database ends the session, and with it the leadership, if this server stops or its
    // machine is lost. A leader writes more often than this (PostgresStore::KeepLeading).
    HONE_RETURN_IF_ERROR(connection_->Execute("SET idle_session_timeout = '8s'"));
  }
  // Stores in other schemas of the database have other locks.
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection_->Query("SELECT pg_try_advisory_lock(1213156934, 'leader'::regclass::oid::int4)"));
  return rows.Next() && rows.Bool();
}

absl::StatusOr<bool> PostgresCommitter::Lead() {
  absl::MutexLock lock(&mutex_);
  const auto begin = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<bool> {
    HONE_ASSIGN_OR_RETURN(const bool locked, Lock());
    if (!locked) return false;
    HONE_RETURN_IF_ERROR(CheckLeaderSettings(*connection_));
    HONE_RETURN_IF_ERROR(MigratePostgres(*connection_, PostgresMigrations()));
    HONE_ASSIGN_OR_RETURN(
        PostgresRows rows,
        connection_->Query("UPDATE leader SET epoch = epoch + 1 RETURNING epoch, last_group"));
    if (!rows.Next()) return absl::DataLossError("the table leader has no row");
    epoch_ = rows.Int64();
    group_ = committed_ = rows.Int64();
    return true;
  };
  absl::StatusOr<bool> leads = begin();
  if (!leads.ok()) connection_.reset();  // releases the lock
  if (leads.ok() && *leads) SetLeading(absl::OkStatus());
  return leads;
}

void PostgresCommitter::SetLeading(const absl::Status& leading) {
  absl::MutexLock lock(&leading_mutex_);
  leading_ = leading;
}

void PostgresCommitter::GiveUp(const absl::Status& why) {
  absl::MutexLock lock(&leading_mutex_);
  if (leading_.ok()) leading_ = Deposed(why.message());
}

absl::Status PostgresCommitter::leading() const {
  absl::MutexLock lock(&leading_mutex_);
  return leading_;
}

absl::StatusOr<int64_t> PostgresCommitter::Continue() {
  connection_.reset();
  HONE_ASSIGN_OR_RETURN(const bool locked, Lock());
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection_->Query("SELECT epoch, last_group FROM leader"));
  if (!rows.Next() || rows.Int64() != epoch_) return Deposed("another server leads");
  // The earlier session may not have ended, or another server has the lock but not an epoch yet.
  if (!locked) return absl::UnavailableError("the lock of the leader is taken");
  HONE_RETURN_IF_ERROR(CheckLeaderSettings(*connection_));
  const int64_t last = rows.Int64();
  if (last != group_ && last != committed_) return Deposed("the database has lost commits");
  return last;
}

absl::Status PostgresCommitter::Commit(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  absl::MutexLock lock(&mutex_);
  HONE_RETURN_IF_ERROR(leading());
  ++group_;
  absl::Status status = TryGroup(writes);
  const absl::Time began = SteadyNow();
  absl::Duration wait = kFirstWait;
  while (absl::IsUnavailable(status)) {
    spdlog::warn("store: tries again: {}", std::string(status.message()));
    const bool is_late = SteadyNow() > began + (hurry_ ? kPatienceInAHurry : kPatience);
    const absl::StatusOr<int64_t> last = Continue();
    if (last.ok() && *last == group_) {
      status = absl::OkStatus();
    } else if (last.ok()) {
      if (is_late) break;  // the database answers, but does not take this group
      status = TryGroup(writes);
    } else if (absl::IsAborted(last.status())) {
      status = last.status();
    } else if (is_late) {
      status = Deposed(last.status().message());
    }
    if (absl::IsUnavailable(status)) absl::SleepFor(wait);
    wait = std::min(kLongestWait, wait * 2);
  }
  if (status.ok()) committed_ = group_;
  if (absl::IsAborted(status)) {
    connection_.reset();
    SetLeading(status);
  }
  return status;
}

absl::Status PostgresCommitter::TryGroup(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  HONE_RETURN_IF_ERROR(connection_->Execute("BEGIN"));
  absl::Status status = RunWrites(writes);
  if (status.ok()) status = connection_->Execute("COMMIT");
  if (!connection_->IsLost() && connection_->InTransaction()) {
    connection_->Execute("ROLLBACK").IgnoreError();
  }
  return status;
}

absl::Status PostgresCommitter::RunWrites(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  // Locks the row until the end of the transaction. A new leader cannot change the epoch until
  // then.
  PostgresCommand mark{.sql = "UPDATE leader SET last_group = $2 WHERE epoch = $1"};
  mark.params.Bind(epoch_.load()).Bind(group_);
  std::vector<PostgresCommand*> commands = {&mark};
  const bool alone = IsAlone(writes.front()->work);
  if (!alone) {
    for (QueuedWrite<PostgresWork>* const write : writes) commands.push_back(&write->work.command);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<PostgresRows> rows, connection_->Pipeline(commands));
  if (rows.size() != commands.size()) return absl::InternalError("a statement has no result");
  if (rows[0].changed() != 1) return Deposed("another server leads");
  if (alone) return writes.front()->work.apply(*connection_);
  for (size_t i = 0; i < writes.size(); ++i)
    writes[i]->result = writes[i]->work.on_rows(rows[i + 1]);
  return absl::OkStatus();
}

}  // namespace hone::store

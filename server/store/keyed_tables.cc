#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

absl::StatusOr<std::string> SelectBytes(Connection& connection, absl::string_view sql,
                                        const std::string& digest, absl::string_view what) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(sql, digest));
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::NotFoundError(absl::StrCat("the store has no ", what, " ", digest));
  return statement.Blob();
}

absl::Status CheckSize(absl::string_view what, size_t size, size_t least, size_t most) {
  if (size >= least && size <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", what, " of a cached value has ", size,
                                                 " bytes; it needs ", least, " to ", most));
}

constexpr char kWorkerColumns[] = "name, identity, host, target, can_build, can_run, seen_unix_ms";

constexpr char kStandingColumns[] = "worker, identity, drained, refused, removed, since_unix_ms";

WorkerStanding ReadStanding(Statement& row) {
  WorkerStanding standing;
  standing.worker_id = row.Text();
  standing.identity = row.Text();
  standing.drained = row.Bool();
  standing.refused = row.Raw();
  standing.removed = row.Bool();
  standing.since_unix_ms = row.Int64();
  return standing;
}

absl::Status UpsertStanding(Connection& connection, const WorkerStanding& standing) {
  if (standing.worker_id.empty()) {
    return absl::InvalidArgumentError("a standing needs a worker's name");
  }
  if (!standing.drained && standing.refused.empty()) {
    return connection.Run("DELETE FROM standing WHERE worker = ?", standing.worker_id);
  }
  HONE_ASSIGN_OR_RETURN(Statement put, connection.Prepare(UpsertSql("standing", kStandingColumns)));
  put.Bind(standing.worker_id).Bind(standing.identity).BindBool(standing.drained);
  put.BindRaw(standing.refused).BindBool(standing.removed).Bind(standing.since_unix_ms);
  return put.Run();
}

absl::Status UpsertWorker(Connection& connection, const KnownWorker& worker) {
  if (worker.worker_id.empty()) return absl::InvalidArgumentError("a worker needs a name");
  HONE_ASSIGN_OR_RETURN(Statement put, connection.Prepare(UpsertSql("worker", kWorkerColumns)));
  put.Bind(worker.worker_id).Bind(worker.identity).Bind(worker.host).Bind(worker.target);
  put.BindBool(worker.can_build).BindBool(worker.can_run).Bind(worker.seen_unix_ms);
  HONE_RETURN_IF_ERROR(put.Run());
  return connection.Run("DELETE FROM worker WHERE seen_unix_ms <= ?",
                        worker.seen_unix_ms - Store::kWorkerMemoryMs);
}

}  // namespace

absl::Status CheckDigest(const std::string& digest) {
  return digest.empty() ? absl::InvalidArgumentError("the digest is empty") : absl::OkStatus();
}

absl::Status InsertText(Connection& connection, const std::string& digest, absl::string_view text,
                        int64_t now_unix_ms) {
  HONE_RETURN_IF_ERROR(CheckDigest(digest));
  return connection.Run(kInsertText, digest, text, now_unix_ms);
}

absl::Status InsertArtifact(Connection& connection, const std::string& digest,
                            absl::string_view bytes, int64_t now_unix_ms) {
  HONE_RETURN_IF_ERROR(CheckDigest(digest));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(kInsertArtifact));
  return statement.Bind(digest).BindBlob(bytes).Bind(now_unix_ms).Run();
}

absl::StatusOr<bool> HasText(Connection& connection, const std::string& digest) {
  return connection.Has("SELECT 1 FROM text WHERE digest = ?", digest);
}

absl::StatusOr<std::string> SelectIdentity(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare("SELECT id FROM identity"));
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::DataLossError(absl::StrCat("store ", connection.name(), " has no name"));
  return statement.Text();
}

void Store::PutText(const std::string& digest, const std::string& text, Done done) {
  Write([this, digest, text](Connection& c) { return InsertText(c, digest, text, NowUnixMs()); },
        std::move(done), kRowBytes + text.size(), WhenFull::kWait);
}

absl::StatusOr<std::string> Store::GetText(const std::string& digest) {
  return Get([&](Connection& c) {
    return SelectBytes(c, "SELECT text FROM text WHERE digest = ?", digest, "text");
  });
}

void Store::PutArtifact(const std::string& digest, std::string bytes, Done done) {
  const size_t size = kRowBytes + bytes.size();
  Write([this, digest, bytes = std::move(bytes)](
            Connection& c) { return InsertArtifact(c, digest, bytes, NowUnixMs()); },
        std::move(done), size, WhenFull::kWait);
}

absl::StatusOr<std::string> Store::GetArtifact(const std::string& digest) {
  return Get([&](Connection& c) {
    return SelectBytes(c, "SELECT bytes FROM artifact WHERE digest = ?", digest, "artifact");
  });
}

absl::StatusOr<std::string> Store::Identity() {
  return Get([](Connection& c) { return SelectIdentity(c); });
}

absl::Status InsertCached(Connection& connection, const CachedRow& row, int64_t most) {
  HONE_RETURN_IF_ERROR(CheckSize("name", row.name.size(), 1, Store::kMaxCachedName));
  HONE_RETURN_IF_ERROR(
      CheckSize("environment", row.environment.size(), 0, Store::kMaxCachedEnvironment));
  HONE_RETURN_IF_ERROR(CheckSize("value", row.value.size(), 1, Store::kMaxCachedValue));
  HONE_RETURN_IF_ERROR(connection.Run("DELETE FROM cached WHERE name = ? AND environment = ?",
                                      row.name, row.environment));
  HONE_ASSIGN_OR_RETURN(Statement insert,
                        connection.Prepare("INSERT INTO cached (name, environment, put_unix_ms,"
                                           " value) VALUES (?, ?, ?, ?) RETURNING id"));
  insert.Bind(row.name).Bind(row.environment).Bind(row.put_unix_ms).BindBlob(row.value);
  HONE_RETURN_IF_ERROR(insert.Run());
  if (insert.Int64() % kCachedSteps != 0) return absl::OkStatus();
  return connection.Run(
      "DELETE FROM cached WHERE id IN (SELECT id FROM (SELECT id,"
      " SUM(length(value)) OVER (ORDER BY id DESC) AS later FROM cached) AS sums WHERE later > ?)",
      most);
}

absl::StatusOr<CachedRow> SelectCached(Connection& connection, const std::string& name,
                                       const std::string& environment) {
  HONE_ASSIGN_OR_RETURN(Statement select,
                        connection.Prepare("SELECT put_unix_ms, value FROM cached"
                                           " WHERE name = ? AND environment = ?"));
  HONE_ASSIGN_OR_RETURN(const bool found, select.Bind(name).Bind(environment).Step());
  if (!found) {
    return absl::NotFoundError(
        absl::StrCat("no value of '", name, "' is cached for this environment"));
  }
  CachedRow row{.name = name, .environment = environment};
  row.put_unix_ms = select.Int64();
  row.value = select.Blob();
  return row;
}

void Store::PutCached(CachedRow row, Done done) {
  const size_t bytes = kRowBytes + row.name.size() + row.environment.size() + row.value.size();
  Write(
      [this, row = std::move(row)](Connection& c) mutable {
        row.put_unix_ms = NowUnixMs();
        return InsertCached(c, row, kMostCached);
      },
      std::move(done), bytes, WhenFull::kFail);
}

absl::StatusOr<CachedRow> Store::GetCached(const std::string& name,
                                           const std::string& environment) {
  return Get([&](Connection& c) { return SelectCached(c, name, environment); });
}

void Store::PutStanding(WorkerStanding standing, Done done) {
  const size_t bytes = kRowBytes + standing.refused.size();
  Write([standing = std::move(standing)](Connection& c) { return UpsertStanding(c, standing); },
        std::move(done), bytes, WhenFull::kFail);
}

absl::StatusOr<std::vector<WorkerStanding>> Store::Standings() {
  return Get([](Connection& c) {
    return Connection::ReadAll(
        c.Prepare(absl::StrCat("SELECT ", kStandingColumns, " FROM standing ORDER BY 1")),
        ReadStanding);
  });
}

void Store::PutWorker(KnownWorker worker, Done done) {
  Write([worker = std::move(worker)](Connection& c) { return UpsertWorker(c, worker); },
        std::move(done), kRowBytes, WhenFull::kFail);
}

absl::StatusOr<std::vector<KnownWorker>> Store::Workers() {
  return Get([](Connection& c) {
    auto all = c.Prepare(absl::StrCat("SELECT ", kWorkerColumns, " FROM worker ORDER BY 1"));
    return Connection::ReadAll(std::move(all), [](Statement& row) {
      KnownWorker worker;
      worker.worker_id = row.Text();
      worker.identity = row.Text();
      worker.host = row.Text();
      worker.target = row.Text();
      worker.can_build = row.Bool();
      worker.can_run = row.Bool();
      worker.seen_unix_ms = row.Int64();
      return worker;
    });
  });
}

}  // namespace hone::store

#include "server/store/postgres/connection.h"

#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "server/store/read_limit.h"

namespace hone::store {
namespace {

// Object ids in pg_type, which never change.
constexpr unsigned kBool = 16;
constexpr unsigned kBytea = 17;
constexpr unsigned kInt8 = 20;
constexpr unsigned kText = 25;
constexpr unsigned kFloat8 = 701;

std::string BigEndian(uint64_t bits) {
  bits = htobe64(bits);
  return std::string(reinterpret_cast<const char*>(&bits), sizeof(bits));
}

template <typename Bits>
Bits FromBigEndian(const char* bytes) {
  Bits bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return sizeof(bits) == 4 ? be32toh(bits) : be64toh(bits);
}

// Returns the code for an SQLSTATE, whose first two characters are its class.
absl::StatusCode CodeOf(absl::string_view state) {
  const absl::string_view kind = state.substr(0, 2);
  if (state == "23505") return absl::StatusCode::kAlreadyExists;
  if (state == "XX001" || state == "XX002") return absl::StatusCode::kDataLoss;
  if (state == "42501" || kind == "28") return absl::StatusCode::kPermissionDenied;
  if (kind == "23") return absl::StatusCode::kFailedPrecondition;
  if (kind == "22") return absl::StatusCode::kInvalidArgument;
  if (kind == "53") return absl::StatusCode::kResourceExhausted;
  // 25006: the server became read-only, because another one is the primary now.
  if (kind == "08" || kind == "57" || kind == "40" || state == "55P03" || state == "25006") {
    return absl::StatusCode::kUnavailable;
  }
  if (state == "3D000") return absl::StatusCode::kFailedPrecondition;  // no such database
  return absl::StatusCode::kInternal;
}

// How often a query that runs asks the ReadLimit, and how long the database may take to end a query
// that it was told to cancel. After that the connection is given up.
constexpr int kLookMs = 50;
constexpr absl::Duration kCancelPatience = absl::Seconds(5);

std::string OneLine(const char* message) {
  std::string text(absl::StripAsciiWhitespace(message == nullptr ? "" : message));
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

// Replaces the parameters ? and ?1 by $1. Our statements contain no other question marks.
std::string WithDollars(absl::string_view sql) {
  std::string text;
  int count = 0;
  for (size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] != '?') {
      text.push_back(sql[i]);
      continue;
    }
    text.push_back('$');
    const bool numbered = i + 1 < sql.size() && absl::ascii_isdigit(sql[i + 1]);
    if (!numbered) absl::StrAppend(&text, ++count);
  }
  return text;
}

class PostgresStatement final : public StatementRun {
 public:
  PostgresStatement(PostgresConnection& connection, absl::string_view sql)
      : connection_(connection), sql_(sql) {}

  void BindInt64(int64_t value) override { params_.Bind(value); }
  void BindDouble(double value) override { params_.Bind(value); }
  void BindText(absl::string_view text) override { params_.Bind(text); }
  void BindBlob(absl::string_view bytes) override { params_.BindBlob(bytes); }
  void BindBool(bool value) override { params_.BindBool(value); }
  void BindRaw(absl::string_view text) override { params_.BindRaw(text); }
  absl::StatusOr<bool> Step() override {
    if (!rows_.has_value()) {
      HONE_ASSIGN_OR_RETURN(rows_, connection_.Query(sql_, params_));
    }
    return rows_->Next();
  }
  int64_t Int64() override { return rows_->Int64(); }
  bool Bool() override { return rows_->Bool(); }
  double Double() override { return rows_->Double(); }
  std::string Text() override { return rows_->Text(); }

 private:
  PostgresConnection& connection_;
  const std::string sql_;
  PostgresParams params_;
  std::optional<PostgresRows> rows_;
};

}  // namespace

PostgresParams& PostgresParams::Add(unsigned type, std::string bytes) {
  types_.push_back(type);
  bytes_.push_back(std::move(bytes));
  return *this;
}

PostgresParams& PostgresParams::Bind(int64_t value) {
  return Add(kInt8, BigEndian(static_cast<uint64_t>(value)));
}

PostgresParams& PostgresParams::Bind(double value) {
  return Add(kFloat8, BigEndian(std::bit_cast<uint64_t>(value)));
}

PostgresParams& PostgresParams::Bind(absl::string_view text) {
  if (text.find('\0') != absl::string_view::npos && status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "a text of ", text.size(), " bytes holds a NUL byte, which PostgreSQL cannot keep: '",
        text.substr(0, text.find('\0')).substr(0, 60), "…'"));
  }
  return Add(kText, std::string(text));
}

PostgresParams& PostgresParams::BindBlob(absl::string_view bytes) {
  return Add(kBytea, std::string(bytes));
}

PostgresParams& PostgresParams::BindBool(bool value) {
  return Add(kBool, std::string(1, value ? '\1' : '\0'));
}

std::vector<const char*> PostgresParams::values() const {
  std::vector<const char*> values;
  for (const std::string& bytes : bytes_) values.push_back(bytes.data());
  return values;
}

std::vector<int> PostgresParams::lengths() const {
  std::vector<int> lengths;
  for (const std::string& bytes : bytes_) lengths.push_back(static_cast<int>(bytes.size()));
  return lengths;
}

void PostgresRows::Free::operator()(pg_result* result) const { PQclear(result); }

PostgresRows::PostgresRows(pg_result* result) : result_(result) {}

bool PostgresRows::Next() {
  column_ = 0;
  return ++row_ < PQntuples(result_.get());
}

int64_t PostgresRows::changed() const { return std::atoll(PQcmdTuples(result_.get())); }

int64_t PostgresRows::Int64() {
  const int column = column_++;
  const char* const bytes = PQgetvalue(result_.get(), row_, column);
  // Some functions return integers of 4 bytes.
  if (PQgetlength(result_.get(), row_, column) == 4) {
    return static_cast<int32_t>(FromBigEndian<uint32_t>(bytes));
  }
  return static_cast<int64_t>(FromBigEndian<uint64_t>(bytes));
}

double PostgresRows::Double() {
  return std::bit_cast<double>(FromBigEndian<uint64_t>(PQgetvalue(result_.get(), row_, column_++)));
}

bool PostgresRows::Bool() { return *PQgetvalue(result_.get(), row_, column_++) != 0; }

std::string PostgresRows::Text() {
  const int column = column_++;
  return std::string(PQgetvalue(result_.get(), row_, column),
                     PQgetlength(result_.get(), row_, column));
}

PostgresConnection::PostgresConnection(pg_conn* connection) : connection_(connection) {
  const char* const database = PQdb(connection);
  const char* const host = PQhost(connection);
  name_ = absl::StrCat("database ", database == nullptr ? "?" : database, " on ",
                       host == nullptr || *host == '\0' ? "this machine" : host);
}

PostgresConnection::~PostgresConnection() { PQfinish(connection_); }

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const std::string& place) {
  // The URI comes last, so its settings take precedence.
  const char* const names[] = {"connect_timeout",
                               "keepalives_idle",
                               "tcp_user_timeout",
                               "application_name",
                               "client_encoding",
                               "dbname",
                               nullptr};
  const char* const values[] = {"5", "5", "8000", "hone-server", "UTF8", place.c_str(), nullptr};
  pg_conn* const raw = PQconnectdbParams(names, values, /*expand_dbname=*/1);
  if (raw == nullptr) return absl::ResourceExhaustedError("out of memory for a connection");
  auto connection = absl::WrapUnique(new PostgresConnection(raw));
  if (PQstatus(raw) != CONNECTION_OK) {
    const std::string message = OneLine(PQerrorMessage(raw));
    // libpq's message is not used, because it quotes the URI with the password.
    if (absl::StrContains(message, "URI") || absl::StrContains(message, "invalid conn")) {
      return absl::InvalidArgumentError(
          "the store's URI is malformed: see PostgreSQL's "
          "documentation of libpq, Connection Strings");
    }
    // A failed connection has no SQLSTATE.
    const bool refused = absl::StrContains(message, "password") ||
                         absl::StrContains(message, "authentication") ||
                         absl::StrContains(message, "no pg_hba.conf entry");
    const bool missing = absl::StrContains(message, "does not exist");
    const std::string what =
        absl::StrCat("store in the PostgreSQL ", connection->name(), ": ", message);
    if (refused) return absl::PermissionDeniedError(what);
    if (missing && absl::StrContains(message, "database \"")) {
      return absl::FailedPreconditionError(
          absl::StrCat(what, "; make it with: createdb --encoding=UTF8 NAME"));
    }
    return absl::UnavailableError(what);
  }
  PQsetNoticeProcessor(raw, [](void*, const char*) {}, nullptr);
  HONE_RETURN_IF_ERROR(connection->Execute("SET default_transaction_isolation = 'read committed'"));
  // A server that stops in the middle of a transaction, or whose machine is lost, would keep its
  // locks. The database ends its session after this time.
  HONE_RETURN_IF_ERROR(connection->Execute("SET idle_in_transaction_session_timeout = '8s'"));
  return connection;
}

bool PostgresConnection::IsLost() const {
  return is_given_up_ || PQstatus(connection_) != CONNECTION_OK;
}

bool PostgresConnection::InTransaction() const {
  return PQtransactionStatus(connection_) != PQTRANS_IDLE;
}

absl::Status PostgresConnection::ErrorOf(pg_result* result, absl::string_view what) const {
  const char* const state =
      result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const primary =
      result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string why =
      primary != nullptr ? OneLine(primary) : OneLine(PQerrorMessage(connection_));
  const absl::StatusCode code =
      IsLost() || state == nullptr ? absl::StatusCode::kUnavailable : CodeOf(state);
  return absl::Status(
      code, absl::StrCat("store in the PostgreSQL ", name_, ": ", what.substr(0, 60), ": ", why));
}

absl::Status PostgresConnection::Execute(const std::string& sql) {
  pg_result* const result = PQexec(connection_, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  absl::Status error;
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY) {
    error = ErrorOf(result, sql);
  }
  PQclear(result);
  return error;
}

absl::StatusOr<std::string> PostgresConnection::Compile(const std::string& sql,
                                                        const PostgresParams& params) {
  if (const auto known = statements_.find(sql); known != statements_.end()) return known->second;
  const std::string name = absl::StrCat("hone_", statements_.size());
  pg_result* const result = PQprepare(connection_, name.c_str(), WithDollars(sql).c_str(),
                                      params.count(), params.types().data());
  absl::Status error;
  if (PQresultStatus(result) != PGRES_COMMAND_OK) error = ErrorOf(result, sql);
  PQclear(result);
  HONE_RETURN_IF_ERROR(error);
  statements_.emplace(sql, name);
  return name;
}

absl::StatusOr<Statement> PostgresConnection::Prepare(absl::string_view sql) {
  return Statement(std::make_unique<PostgresStatement>(*this, sql));
}

absl::StatusOr<int64_t> PostgresConnection::SizeBytes() {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows, Query("SELECT pg_database_size(current_database())"));
  return rows.Next() ? rows.Int64() : 0;
}

absl::StatusOr<int64_t> PostgresConnection::UsedBytes() {
  // The files of the table of records keep the space of removed rows, so it is counted row by row,
  // with as much again for the indexes. The rows of the other tables are mostly kept.
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      Query("SELECT (SELECT COUNT(*) * 2 FROM record) * COALESCE((SELECT AVG(pg_column_size(r))"
            " FROM (SELECT * FROM record ORDER BY id DESC LIMIT 1000) r), 0)::bigint"
            " + (SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
            " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"
            " AND c.relname <> 'record')"));
  return rows.Next() ? rows.Int64() : 0;
}

absl::StatusOr<PostgresRows> PostgresConnection::Query(const std::string& sql,
                                                       const PostgresParams& params) {
  HONE_RETURN_IF_ERROR(params.status());
  HONE_RETURN_IF_ERROR(ReadLimit::Check());
  HONE_ASSIGN_OR_RETURN(const std::string name, Compile(sql, params));
  if (PQsendQueryPrepared(connection_, name.c_str(), params.count(), params.values().data(),
                          params.lengths().data(), params.formats().data(),
                          /*resultFormat=*/1) != 1) {
    return ErrorOf(nullptr, sql);
  }
  const absl::Status stopped = AwaitResult();
  if (is_given_up_) return stopped;
  pg_result* const result = PQgetResult(connection_);
  while (pg_result* const more = PQgetResult(connection_)) PQclear(more);
  if (!stopped.ok()) {
    PQclear(result);
    return IsLost() ? ErrorOf(nullptr, sql) : stopped;
  }
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return PostgresRows(result);
  const absl::Status error = ErrorOf(result, sql);
  PQclear(result);
  return error;
}

absl::Status PostgresConnection::AwaitResult() {
  absl::Status stopped;
  absl::Time give_up = absl::InfiniteFuture();
  while (PQisBusy(connection_) == 1) {
    pollfd readable{.fd = PQsocket(connection_), .events = POLLIN};
    poll(&readable, 1, ReadLimit::IsSet() ? kLookMs : -1);
    if (readable.revents != 0 && PQconsumeInput(connection_) != 1) break;  // it is lost
    if (!stopped.ok()) {
      if (SteadyNow() < give_up) continue;
      is_given_up_ = true;
      break;
    }
    stopped = ReadLimit::Check();
    if (stopped.ok()) continue;
    give_up = SteadyNow() + kCancelPatience;
    char error[256];
    PGcancel* const cancel = PQgetCancel(connection_);
    // If this fails, the connection is given up soon.
    if (cancel != nullptr) PQcancel(cancel, error, sizeof error);
    PQfreeCancel(cancel);
  }
  return stopped;
}

absl::StatusOr<std::vector<PostgresRows>> PostgresConnection::Pipeline(
    const std::vector<PostgresCommand*>& commands) {
  std::vector<std::string> names;
  for (const PostgresCommand* const command : commands) {
    HONE_ASSIGN_OR_RETURN(names.emplace_back(), Compile(command->sql, command->params));
  }
  if (PQenterPipelineMode(connection_) != 1) return ErrorOf(nullptr, "send writes");
  absl::Status error;
  for (size_t i = 0; i < commands.size() && error.ok(); ++i) {
    const PostgresParams& params = commands[i]->params;
    if (PQsendQueryPrepared(connection_, names[i].c_str(), params.count(), params.values().data(),
                            params.lengths().data(), params.formats().data(), 1) != 1) {
      error = ErrorOf(nullptr, "send writes");
    }
  }
  if (error.ok() && PQpipelineSync(connection_) != 1) error = ErrorOf(nullptr, "send writes");
  std::vector<PostgresRows> rows;
  bool synced = !error.ok();
  while (!synced && !IsLost()) {
    pg_result* const result = PQgetResult(connection_);
    if (result == nullptr) continue;  // a separator between the results of two commands
    switch (PQresultStatus(result)) {
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
        rows.emplace_back(result);
        continue;
      case PGRES_PIPELINE_SYNC:
        synced = true;
        break;
      case PGRES_PIPELINE_ABORTED:
        break;
      default:
        error.Update(ErrorOf(result, "write"));
    }
    PQclear(result);
  }
  if (IsLost()) return ErrorOf(nullptr, "write");
  PQexitPipelineMode(connection_);
  HONE_RETURN_IF_ERROR(error);
  return rows;
}

}  // namespace hone::store

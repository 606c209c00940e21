#include "server/store/sqlite/integrity_check.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/thread_priority.h"
#include "server/store/sqlite/connection.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

constexpr absl::Duration kEndPatience = absl::Seconds(1);
// No caller waits for the check of a large store, which takes minutes.
constexpr int kNice = 19;
constexpr absl::Duration kSlice = absl::Milliseconds(5);   // of CheckRows
constexpr absl::Duration kBreak = absl::Milliseconds(20);  // after each slice
constexpr absl::Duration kAwaitLimit = absl::Seconds(5);
constexpr absl::Duration kPoll = absl::Milliseconds(1);

absl::StatusOr<std::vector<std::string>> ReadTexts(SqliteConnection& connection,
                                                   absl::string_view sql) {
  HONE_ASSIGN_OR_RETURN(Statement rows, connection.Prepare(sql));
  return Connection::ReadAll(rows, [](Statement& row) { return row.Text(); });
}

// The columns by which the rows of a table are stored.
absl::StatusOr<std::vector<std::string>> KeyColumns(SqliteConnection& connection,
                                                    const std::string& table) {
  HONE_ASSIGN_OR_RETURN(const int64_t without_row_id,
                        connection.QueryInt64(absl::StrCat(
                            "SELECT wr FROM pragma_table_list WHERE name = '", table, "'")));
  if (without_row_id == 0) return std::vector<std::string>{"rowid"};
  return ReadTexts(connection, absl::StrCat("SELECT name FROM pragma_table_info('", table,
                                            "') WHERE pk > 0 ORDER BY pk"));
}

// Reads the rows of a table for the time of a slice, in the order of `columns` and after the values
// `last` of these columns, and moves `last` to the last of these rows. `last` is empty at the
// beginning of the table. Returns whether the table ends there.
absl::StatusOr<bool> ReadSlice(SqliteConnection& connection, const std::string& table,
                               const std::vector<std::string>& columns,
                               std::vector<std::string>& last) {
  const std::string key = absl::StrJoin(columns, ", ");
  const std::string after =
      last.empty()
          ? ""
          : absl::StrCat(" WHERE (", key, ") > (",
                         absl::StrJoin(std::vector<std::string>(columns.size(), "?"), ", "), ")");
  HONE_ASSIGN_OR_RETURN(Statement rows,
                        connection.Prepare(absl::StrCat("SELECT ", key, ", * FROM \"", table, "\"",
                                                        after, " ORDER BY ", key)));
  for (const std::string& value : last) rows.Bind(value);
  last.resize(columns.size());
  const absl::Time end = SteadyNow() + kSlice;
  do {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return true;
    for (std::string& value : last) value = rows.Text();
  } while (SteadyNow() < end);
  return false;
}

}  // namespace

absl::Status Soundness::status() {
  absl::MutexLock lock(&mutex_);
  return damage_;
}

StoreHealth::Check Soundness::check() {
  absl::MutexLock lock(&mutex_);
  return damage_.ok() ? check_ : StoreHealth::Check::kDamaged;
}

void Soundness::Note(const absl::Status& result) {
  if (result.ok() || !IsDamaged(result)) return;
  absl::MutexLock lock(&mutex_);
  SetDamage(result);
}

void Soundness::CheckBegins(bool is_awaited) {
  absl::MutexLock lock(&mutex_);
  is_awaited_ = is_awaited;
  check_ = StoreHealth::Check::kUnderWay;
}

void Soundness::CheckEnds(const absl::Status& result) {
  absl::MutexLock lock(&mutex_);
  check_ = result.ok() ? StoreHealth::Check::kSound : StoreHealth::Check::kNotChecked;
  if (IsDamaged(result)) SetDamage(result);
}

void Soundness::SetDamage(const absl::Status& damage) {
  if (!damage_.ok()) return;
  damage_ = damage;
  spdlog::error("from now on the store is only read, and no job can start: {}",
                std::string(damage.message()));
}

absl::Status Soundness::AwaitCheck() {
  // A timed wait for the mutex would follow the wall clock.
  const absl::Time deadline = SteadyNow() + kAwaitLimit;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const bool under_way = check_ == StoreHealth::Check::kUnderWay && damage_.ok();
      if (!under_way || !is_awaited_ || SteadyNow() > deadline) return damage_;
    }
    absl::SleepFor(kPoll);
  }
}

void Soundness::StopWaiting() {
  absl::MutexLock lock(&mutex_);
  is_awaited_ = false;
}

absl::Status QuickCheck(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement check, connection.Prepare("PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, check.Step());
  const std::string answer = absl::StrReplaceAll(row ? check.Text() : "no answer", {{"\n", " "}});
  if (answer == "ok") return absl::OkStatus();
  return DamagedError(connection.path(),
                      absl::StrCat("store ", connection.path(), " is damaged: ", answer));
}

absl::Status CheckRows(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(
      const std::vector<std::string> tables,
      ReadTexts(connection, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"));
  for (const std::string& table : tables) {
    HONE_ASSIGN_OR_RETURN(const std::vector<std::string> columns, KeyColumns(connection, table));
    std::vector<std::string> last;
    while (true) {
      HONE_ASSIGN_OR_RETURN(const bool at_end, ReadSlice(connection, table, columns, last));
      if (at_end) break;
      absl::SleepFor(kBreak);
    }
  }
  return absl::OkStatus();
}

IntegrityCheck::IntegrityCheck(std::unique_ptr<SqliteConnection> connection, bool is_large,
                               absl::AnyInvocable<void(const absl::Status&)> on_end)
    : state_(std::make_shared<State>()) {
  state_->connection = std::move(connection);
  {
    absl::MutexLock lock(&state_->mutex);
    state_->on_end = std::move(on_end);
  }
  thread_ = std::thread([state = state_, is_large] {
    if (is_large) LowerThreadPriority(kNice);
    const absl::Status status =
        is_large ? CheckRows(*state->connection) : QuickCheck(*state->connection);
    {
      absl::MutexLock lock(&state->mutex);
      if (state->on_end != nullptr) state->on_end(status);
    }
    state->ended.Notify();
  });
}

IntegrityCheck::~IntegrityCheck() {
  state_->connection->StopEarly();
  if (state_->ended.WaitForNotificationWithTimeout(kEndPatience)) {
    thread_.join();
    return;
  }
  spdlog::warn(
      "store: the check of the file does not stop; it only reads, and ends with the program");
  {
    absl::MutexLock lock(&state_->mutex);
    state_->on_end = nullptr;
  }
  thread_.detach();
}

}  // namespace hone::store

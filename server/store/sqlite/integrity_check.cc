#include "server/store/sqlite/integrity_check.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/thread_priority.h"
#include "server/store/sqlite/status.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr int kNice = 19;  // the check takes minutes, and no caller waits for it

}  // namespace

absl::Status QuickCheck(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement check, connection.Prepare("PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, check.Step());
  const std::string answer = absl::StrReplaceAll(row ? check.Text() : "no answer", {{"\n", " "}});
  if (answer == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("store ", connection.path(), " is damaged: ", answer,
                                          "; ", DamagedAdvice(connection.path())));
}

IntegrityCheck::IntegrityCheck(std::unique_ptr<SqliteConnection> connection,
                               absl::AnyInvocable<void(const absl::Status&)> on_end)
    : state_(std::make_shared<State>()) {
  state_->connection = std::move(connection);
  {
    absl::MutexLock lock(&state_->mutex);
    state_->on_end = std::move(on_end);
  }
  thread_ = std::thread([state = state_] {
    LowerThreadPriority(kNice);
    const absl::Status status = QuickCheck(*state->connection);
    {
      absl::MutexLock lock(&state->mutex);
      if (state->on_end != nullptr) state->on_end(status);
    }
    state->ended.Notify();
  });
}

IntegrityCheck::~IntegrityCheck() {
  state_->connection->StopEarly();
  if (state_->ended.WaitForNotificationWithTimeout(kPatience)) {
    thread_.join();
    return;
  }
  spdlog::warn(
      "store: the check of the whole file does not stop; it only reads, and ends with the program");
  {
    absl::MutexLock lock(&state_->mutex);
    state_->on_end = nullptr;
  }
  thread_.detach();
}

}  // namespace hone::store

#include "server/store/sqlite/integrity_check.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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
constexpr int64_t kLargeBytes = int64_t{256} << 20;
constexpr absl::Duration kAwaitLimit = absl::Seconds(5);
constexpr absl::Duration kPoll = absl::Milliseconds(1);

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

void Soundness::CheckBegins() {
  absl::MutexLock lock(&mutex_);
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
      if (!under_way || is_stopped_ || SteadyNow() > deadline) return damage_;
    }
    absl::SleepFor(kPoll);
  }
}

void Soundness::StopWaiting() {
  absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
}

absl::Status QuickCheck(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement check, connection.Prepare("PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, check.Step());
  const std::string answer = absl::StrReplaceAll(row ? check.Text() : "no answer", {{"\n", " "}});
  if (answer == "ok") return absl::OkStatus();
  return DamagedError(connection.path(),
                      absl::StrCat("store ", connection.path(), " is damaged: ", answer));
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
    if (state->connection->SizeBytes().value_or(0) > kLargeBytes) LowerThreadPriority(kNice);
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
  if (state_->ended.WaitForNotificationWithTimeout(kEndPatience)) {
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

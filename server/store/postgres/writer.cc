#include "server/store/postgres/writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

constexpr absl::Duration kFirstWait = absl::Milliseconds(20);
constexpr absl::Duration kLongestWait = absl::Seconds(1);
constexpr absl::Duration kLongestWaitWhenStopping = absl::Milliseconds(200);

}  // namespace

PostgresWriter::PostgresWriter(std::string place, std::unique_ptr<PostgresConnection> connection,
                               const PostgresWriterOptions& options)
    : place_(std::move(place)),
      options_(options),
      connection_(std::move(connection)),
      thread_([this] { Run(); }) {}

PostgresWriter::~PostgresWriter() { Stop(); }

void PostgresWriter::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void PostgresWriter::Enqueue(PostgresCommand command, OnRows on_rows, Done done, size_t bytes,
                             absl::Status refused) {
  Write write{.command = std::move(command),
              .on_rows = std::move(on_rows),
              .done = std::move(done),
              .bytes = bytes,
              .refused = std::move(refused)};
  write.refused.Update(write.command.params.status());
  Put(std::move(write));
}

void PostgresWriter::EnqueueApply(Apply apply, Done done, size_t bytes) {
  Put({.apply = std::move(apply), .done = std::move(done), .bytes = bytes});
}

void PostgresWriter::Put(Write write) {
  absl::MutexLock lock(&mutex_);
  if (write.refused.ok() &&
      (queue_.size() >= options_.max_queued_writes ||
       (queued_bytes_ > 0 && queued_bytes_ + write.bytes > options_.max_queued_bytes))) {
    write.refused = absl::ResourceExhaustedError(
        absl::StrCat("store: ", queue_.size(), " writes of ", queued_bytes_ >> 20,
                     " MiB wait for the database; try again later"));
  }
  // Refused writes wait for their callback only, which may not run inside the caller.
  if (!write.refused.ok()) write.bytes = 0;
  queued_bytes_ += write.bytes;
  ++enqueued_;
  queue_.push_back(std::move(write));
}

absl::Status PostgresWriter::Flush() {
  if (std::this_thread::get_id() == thread_.get_id()) {
    return absl::FailedPreconditionError("Flush was called from a done callback of the store");
  }
  absl::MutexLock lock(&mutex_);
  const size_t target = enqueued_;
  const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finished_ >= target; };
  mutex_.Await(absl::Condition(&reached));
  return std::exchange(first_error_, absl::OkStatus());
}

size_t PostgresWriter::Queued() {
  absl::MutexLock lock(&mutex_);
  return enqueued_ - finished_;
}

void PostgresWriter::Run() {
  while (true) {
    std::vector<Write> group = TakeGroup();
    if (group.empty()) return;
    Commit(group);
    Finish(std::move(group));
  }
}

std::vector<PostgresWriter::Write> PostgresWriter::TakeGroup() {
  absl::MutexLock lock(&mutex_);
  const auto any = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !queue_.empty() || stopping_;
  };
  mutex_.Await(absl::Condition(&any));
  // What came while the last group was under way is the next one: no waiting for more.
  std::vector<Write> group;
  while (!queue_.empty() && group.size() < options_.max_group_writes) {
    const bool alone = queue_.front().apply != nullptr;
    if (alone && !group.empty()) break;
    queued_bytes_ -= queue_.front().bytes;
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (alone) break;
  }
  return group;
}

void PostgresWriter::Commit(std::vector<Write>& group) {
  std::vector<Write*> writes;
  for (Write& write : group) {
    write.result = write.refused;
    if (write.refused.ok()) writes.push_back(&write);
  }
  if (writes.empty()) return;
  const absl::Status status = CommitWithPatience(writes);
  if (status.ok()) return;
  if (writes.size() == 1 || absl::IsUnavailable(status)) {
    for (Write* const write : writes) write->result = status;
    return;
  }
  // One of them cannot be done, and took the others with it.
  for (Write* const write : writes) {
    if (const absl::Status one = CommitWithPatience({write}); !one.ok()) write->result = one;
  }
}

absl::Status PostgresWriter::CommitWithPatience(const std::vector<Write*>& writes) {
  const absl::Time deadline = absl::Now() + options_.patience;
  absl::Duration wait = kFirstWait;
  while (true) {
    absl::Status status = TryGroup(writes);
    if (!absl::IsUnavailable(status)) return status;
    bool give_up = absl::Now() + wait > deadline;
    {
      absl::MutexLock lock(&mutex_);
      // What is there is tried again when the store closes, without long waits.
      give_up = give_up || (stopping_ && wait > kLongestWaitWhenStopping);
    }
    if (give_up) {
      pending_transaction_.clear();  // of these writes alone
      return status;
    }
    spdlog::warn("store: tries again: {}", std::string(status.message()));
    absl::SleepFor(wait);
    wait = std::min(kLongestWait, wait * 2);
  }
}

absl::Status PostgresWriter::Connect() {
  if (connection_ != nullptr && !connection_->IsLost()) return absl::OkStatus();
  connection_.reset();
  HONE_ASSIGN_OR_RETURN(connection_, PostgresConnection::Open(place_));
  return absl::OkStatus();
}

absl::Status PostgresWriter::AskAboutCommit() {
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection_->Query("SELECT pg_xact_status($1::text::xid8)",
                         PostgresParams().Bind(absl::string_view(pending_transaction_))));
  rows.Next();
  const std::string status = rows.Text();
  if (status == "in progress") return absl::UnavailableError("a commit is still under way");
  pending_transaction_.clear();
  if (status == "committed") return absl::OkStatus();
  return absl::AbortedError("the transaction was rolled back");
}

absl::Status PostgresWriter::TryGroup(const std::vector<Write*>& writes) {
  HONE_RETURN_IF_ERROR(Connect());
  if (!pending_transaction_.empty()) {
    const absl::Status asked = AskAboutCommit();
    if (!absl::IsAborted(asked)) return asked;
  }
  HONE_RETURN_IF_ERROR(connection_->Execute("BEGIN"));
  absl::Status status = RunWrites(writes);
  if (status.ok()) {
    status = connection_->Execute("COMMIT");
    // Else the connection broke before the server was asked, or after; the next try finds out.
    if (status.ok() || !connection_->IsLost()) pending_transaction_.clear();
  } else {
    pending_transaction_.clear();
  }
  if (!connection_->IsLost() && connection_->InTransaction()) {
    connection_->Execute("ROLLBACK").IgnoreError();
  }
  return status;
}

absl::Status PostgresWriter::RunWrites(const std::vector<Write*>& writes) {
  PostgresCommand lock{.sql = kTakeWriteLock};
  PostgresCommand name{.sql = "SELECT pg_current_xact_id()::text"};
  std::vector<PostgresCommand*> commands = {&lock, &name};
  const bool alone = writes.front()->apply != nullptr;
  if (!alone) {
    for (Write* const write : writes) commands.push_back(&write->command);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<PostgresRows> rows, connection_->Pipeline(commands));
  if (rows.size() != commands.size()) return absl::InternalError("a statement has no result");
  rows[1].Next();
  pending_transaction_ = rows[1].Text();
  if (alone) return writes.front()->apply(*connection_);
  for (size_t i = 0; i < writes.size(); ++i) writes[i]->result = writes[i]->on_rows(rows[i + 2]);
  return absl::OkStatus();
}

void PostgresWriter::Finish(std::vector<Write> group) {
  absl::Status first_error;
  for (Write& write : group) {
    first_error.Update(write.result);
    std::move(write.done)(std::move(write.result));
  }
  const size_t count = group.size();
  group.clear();  // what the callbacks hold goes before a Flush returns
  absl::MutexLock lock(&mutex_);
  first_error_.Update(first_error);
  finished_ += count;
}

}  // namespace hone::store

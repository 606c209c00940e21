// Group commit, back-pressure and retries, checked against the database.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/sqlite_store.h"
#include "server/store/write_queue.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::store {
namespace {

class WriterTest : public testing::Test {
 protected:
  void SetUp() override {
    auto connection = SqliteConnection::OpenForWriting(path_).value();
    ASSERT_THAT(connection->SetUpForWriting(), IsOk());
    ASSERT_THAT(connection->Execute("CREATE TABLE t (x INTEGER UNIQUE, bytes BLOB) STRICT"),
                IsOk());
    connection_ = connection.get();
    writing_ = std::move(connection);
  }
  void Start(const WriteQueueOptions& options, int checkpoint_pages = 4000) {
    committer_ =
        std::make_unique<SqliteCommitter>(std::move(writing_), &soundness_, checkpoint_pages);
    writer_ = std::make_unique<WriteQueue<SqliteApply>>(path_, committer_.get(), options);
  }
  static SqliteApply Insert(int64_t x, size_t bytes = 0) {
    return [x, bytes](SqliteConnection& connection) -> absl::Status {
      absl::StatusOr<Statement> insert = connection.Prepare("INSERT INTO t VALUES (?, ?)");
      if (!insert.ok()) return insert.status();
      return insert->Bind(x).BindBlob(std::string(bytes, 'b')).Run();
    };
  }
  // Occupies the writer thread until `release` is notified.
  void Block(absl::Notification& release) {
    absl::Notification blocked;
    writer_->Enqueue(
        [&](SqliteConnection&) {
          blocked.Notify();
          release.WaitForNotification();
          return absl::OkStatus();
        },
        [](absl::Status) {}, 0);
    blocked.WaitForNotification();
  }
  int64_t Count() {
    return SqliteConnection::OpenForReading(path_)
        .value()
        ->QueryInt64("SELECT COUNT(*) FROM t")
        .value();
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "t.db";
  Soundness soundness_;
  std::unique_ptr<SqliteConnection> writing_;
  SqliteConnection* connection_ = nullptr;  // owned by the committer
  std::unique_ptr<SqliteCommitter> committer_;
  std::unique_ptr<WriteQueue<SqliteApply>> writer_;
};

TEST_F(WriterTest, QueuedWritesAreCommittedInGroups) {
  Start({.max_group_writes = 256});
  absl::Notification release;
  Block(release);
  // Every callback records the number of committed rows: first the whole group of 256, then all
  // 300, and no other number.
  std::vector<int64_t> committed;
  for (int i = 0; i < 300; ++i) {
    writer_->Enqueue(
        Insert(i),
        [&](absl::Status status) {
          EXPECT_THAT(status, IsOk());
          committed.push_back(Count());
        },
        1);
  }
  release.Notify();
  ASSERT_THAT(writer_->Flush(), IsOk());
  ASSERT_EQ(committed.size(), 300u);
  for (int i = 0; i < 300; ++i) {
    // The rest may be committed while the first callbacks run.
    EXPECT_TRUE(committed[i] == 300 || (i < 256 && committed[i] == 256))
        << i << ": " << committed[i];
  }
}

TEST_F(WriterTest, FullQueueReportsThroughTheCallback) {
  Start({.max_queued_writes = 3});
  absl::Notification release;
  Block(release);
  std::vector<absl::StatusCode> results;
  const std::thread::id caller = std::this_thread::get_id();
  for (int i = 0; i < 5; ++i) {
    writer_->Enqueue(
        Insert(i),
        [&](absl::Status status) {
          EXPECT_NE(std::this_thread::get_id(), caller);
          results.push_back(status.code());
        },
        1);
  }
  release.Notify();
  EXPECT_THAT(writer_->Flush(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(results,
              testing::ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kOk,
                                   absl::StatusCode::kOk, absl::StatusCode::kResourceExhausted,
                                   absl::StatusCode::kResourceExhausted));
  writer_->Enqueue(Insert(9), [](absl::Status) {}, 1);
  EXPECT_THAT(writer_->Flush(), IsOk()) << "the queue has space again";
  EXPECT_EQ(Count(), 4);
}

TEST_F(WriterTest, BytesInTheQueueAreBoundedButOneLargeWritePasses) {
  Start({.max_queued_bytes = 1000});
  absl::Notification release;
  Block(release);
  std::vector<bool> ok;
  for (const size_t bytes : {5000, 1, 900}) {
    writer_->Enqueue(
        Insert(static_cast<int64_t>(bytes)),
        [&](absl::Status status) { ok.push_back(status.ok()); }, bytes);
  }
  release.Notify();
  EXPECT_THAT(writer_->Flush(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(ok, testing::ElementsAre(true, false, false));
}

TEST_F(WriterTest, FailedWriteRollsBackOnlyItself) {
  Start({});
  absl::Notification release;
  Block(release);
  std::vector<absl::StatusCode> results;
  const auto keep = [&](absl::Status status) { results.push_back(status.code()); };
  writer_->Enqueue(Insert(1), keep, 1);
  writer_->Enqueue(
      [](SqliteConnection& connection) -> absl::Status {
        EXPECT_THAT(Insert(2)(connection), IsOk());
        return Insert(1)(connection);  // already exists: row 2 is rolled back as well
      },
      keep, 1);
  writer_->Enqueue(Insert(3), keep, 1);
  release.Notify();
  EXPECT_THAT(writer_->Flush(), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(results, testing::ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kAlreadyExists,
                                            absl::StatusCode::kOk));
  EXPECT_EQ(Count(), 2);
}

// SQLite rolls back the whole transaction when the database is full. The small writes of the group
// must survive.
TEST_F(WriterTest, FullDatabaseFailsOnlyWritesThatDoNotFit) {
  ASSERT_THAT(connection_->Execute("PRAGMA max_page_count = 40"), IsOk());
  Start({});
  absl::Notification release;
  Block(release);
  std::vector<absl::Status> results;
  const auto keep = [&](absl::Status status) { results.push_back(std::move(status)); };
  writer_->Enqueue(Insert(1), keep, 1);
  writer_->Enqueue(Insert(2, 1 << 20), keep, 1);
  writer_->Enqueue(Insert(3), keep, 1);
  release.Notify();
  EXPECT_THAT(writer_->Flush(), StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_THAT(results[0], IsOk());
  EXPECT_THAT(results[1], StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(absl::StrContains(results[1].message(), path_)) << results[1];
  EXPECT_THAT(results[2], IsOk());
  EXPECT_EQ(Count(), 2);
}

TEST_F(WriterTest, WritesWaitInOrderWhileTheDiskIsFull) {
  Start({.full_wait = absl::Milliseconds(5)});
  std::atomic<bool> is_full = true;
  std::atomic<int> attempts = 0;
  absl::Mutex mutex;
  std::vector<std::string> results;
  const auto put = [&](int x, WhenFull when_full = WhenFull::kWait) {
    writer_->Enqueue(
        [&, x](SqliteConnection& connection) -> absl::Status {
          ++attempts;
          if (is_full) return absl::ResourceExhaustedError("the disk is full");
          return Insert(x)(connection);
        },
        [&, x](const absl::Status& status) {
          absl::MutexLock lock(&mutex);
          results.push_back(absl::StrCat(x, status.ok() ? "" : " failed"));
        },
        1, when_full);
  };
  const auto count = [&] {
    absl::MutexLock lock(&mutex);
    return results.size();
  };
  const auto eventually = [](const std::function<bool()>& condition) {
    for (int i = 0; i < 10000 && !condition(); ++i) absl::SleepFor(absl::Milliseconds(1));
    return condition();
  };
  put(0, WhenFull::kFail);
  ASSERT_TRUE(eventually([&] { return count() == 1; })) << "it does not wait";
  EXPECT_THAT(writer_->CheckSpace(), IsOk()) << "no write waits";
  for (int x = 1; x <= 3; ++x) put(x);
  ASSERT_TRUE(eventually([&] { return !writer_->CheckSpace().ok(); }));
  EXPECT_THAT(writer_->CheckSpace(), StatusIs(absl::StatusCode::kResourceExhausted));
  put(4, WhenFull::kFail);
  ASSERT_TRUE(eventually([&] { return count() == 2; })) << "it does not wait behind the others";
  const int before = attempts;
  ASSERT_TRUE(eventually([&] { return attempts > before + 3; })) << "it is tried again";
  put(5);
  EXPECT_EQ(Count(), 0);
  is_full = false;
  ASSERT_TRUE(eventually([&] { return count() == 6; }));
  EXPECT_THAT(writer_->CheckSpace(), IsOk());
  EXPECT_THAT(results, testing::ElementsAre("0 failed", "4 failed", "1", "2", "3", "5"));
  EXPECT_EQ(Count(), 4);
  writer_->Flush().IgnoreError();
}

TEST_F(WriterTest, TheEndDoesNotWaitForSpace) {
  Start({.full_wait = absl::Seconds(100)});
  absl::Status result;
  writer_->Enqueue(
      [](SqliteConnection&) { return absl::ResourceExhaustedError("the disk is full"); },
      [&](absl::Status status) { result = std::move(status); }, 1);
  EXPECT_THAT(writer_->Flush(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(writer_->CheckSpace(), IsOk());
  writer_->Enqueue(
      [](SqliteConnection&) { return absl::ResourceExhaustedError("the disk is full"); },
      [&](absl::Status status) { result = std::move(status); }, 1);
  writer_->Stop();
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(WriterTest, FlushFromACallbackIsRejected) {
  Start({});
  absl::Status inner;
  writer_->Enqueue(Insert(1), [&](absl::Status) { inner = writer_->Flush(); }, 1);
  EXPECT_THAT(writer_->Flush(), IsOk());
  EXPECT_THAT(inner, StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(WriterTest, DamageStopsAllWrites) {
  Start({});
  soundness_.Note(absl::DataLossError("one record cannot be read"));
  EXPECT_THAT(soundness_.status(), IsOk());
  soundness_.Note(DamagedError(path_, "damaged"));
  writer_->Enqueue(
      Insert(1),
      [](absl::Status status) { EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss)); }, 1);
  EXPECT_THAT(writer_->Flush(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Count(), 0);
}

TEST_F(WriterTest, ChangesWaitForTheCheckOfTheFile) {
  Start({});
  soundness_.CheckBegins(/*is_awaited=*/true);
  absl::Notification unchanged;
  writer_->Enqueue([](SqliteConnection&) { return absl::OkStatus(); },
                   [&](absl::Status status) {
                     EXPECT_THAT(status, IsOk());
                     unchanged.Notify();
                   },
                   1);
  unchanged.WaitForNotification();
  absl::Notification changed;
  writer_->Enqueue(
      Insert(1),
      [&](absl::Status status) {
        EXPECT_THAT(status, IsOk());
        changed.Notify();
      },
      1);
  EXPECT_FALSE(changed.WaitForNotificationWithTimeout(absl::Milliseconds(100)));
  EXPECT_EQ(Count(), 0);
  soundness_.CheckEnds(absl::OkStatus());
  changed.WaitForNotification();
  EXPECT_EQ(Count(), 1);

  soundness_.CheckBegins(/*is_awaited=*/true);
  writer_->Enqueue(
      Insert(2),
      [](absl::Status status) { EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss)); }, 1);
  soundness_.CheckEnds(DamagedError(path_, "damaged"));
  EXPECT_THAT(writer_->Flush(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Count(), 1);
}

TEST_F(WriterTest, CheckpointsKeepTheLogSmall) {
  Start({}, /*checkpoint_pages=*/50);
  for (int i = 0; i < 200; ++i) {
    writer_->Enqueue(Insert(i, 8192), [](absl::Status) {}, 1);
    ASSERT_THAT(writer_->Flush(), IsOk());
  }
  EXPECT_LT(std::filesystem::file_size(path_ + "-wal"), 100u * 4096);
  EXPECT_GT(std::filesystem::file_size(path_), 200u * 8192 / 2);
}

// Another program that holds the write lock for a short time only delays a write.
TEST_F(WriterTest, WaitsForAShortForeignLock) {
  Start({});
  auto other = SqliteConnection::OpenForWriting(path_).value();
  ASSERT_THAT(other->Execute("BEGIN IMMEDIATE"), IsOk());
  std::atomic<bool> unlocked = false;
  writer_->Enqueue(
      Insert(1),
      [&](absl::Status status) {
        EXPECT_THAT(status, IsOk());
        EXPECT_TRUE(unlocked);
      },
      1);
  unlocked = true;
  ASSERT_THAT(other->Execute("COMMIT"), IsOk());
  EXPECT_THAT(writer_->Flush(), IsOk());
}

}  // namespace
}  // namespace hone::store

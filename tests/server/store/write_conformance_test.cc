// The contract of Store for writes: their order, their callbacks, and that a failed write does not
// affect others.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

class WriteConformanceTest : public StoreConformanceTest {};
INSTANTIATE_TEST_SUITE_P(Stores, WriteConformanceTest, testing::ValuesIn(StoreFactories()),
                         FactoryName);

TEST_P(WriteConformanceTest, CallbackSeesTheWrite) {
  absl::Notification ready;
  std::string text;
  store_->PutText("t", "text", [&](absl::Status status) {
    EXPECT_THAT(status, IsOk());
    text = store_->GetText("t").value_or("not there");
    ready.Notify();
  });
  ready.WaitForNotification();
  EXPECT_EQ(text, "text");
}

TEST_P(WriteConformanceTest, CallbackMayWrite) {
  absl::Notification ready;
  store_->PutText("t", "text", [&](absl::Status) {
    store_->PutText("u", "more", [&](absl::Status status) {
      EXPECT_THAT(status, IsOk());
      ready.Notify();
    });
  });
  ready.WaitForNotification();
  EXPECT_EQ(store_->GetText("u").value(), "more");
}

TEST_P(WriteConformanceTest, InvalidWriteDoesNotAffectOthers) {
  ASSERT_THAT(PutJob(*store_, PendingJob("a")), IsOk());
  std::vector<bool> ok(300);
  for (int i = 0; i < 300; ++i) {
    record::Record record = ScreenedRecord(100 + i);
    if (i % 7 == 3) record.target.clear();
    store_->Append(record, [&ok, i](absl::StatusOr<record::Record> r) { ok[i] = r.ok(); });
  }
  EXPECT_THAT(store_->Flush(), StatusIs(absl::StatusCode::kInvalidArgument));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(ok[i], i % 7 != 3) << i;
  EXPECT_EQ(store_->Query({.page_size = 1000}).value().size(), 257u);
}

TEST_P(WriteConformanceTest, FlushReportsTheFirstErrorOnce) {
  EXPECT_THAT(store_->Flush(), IsOk());
  store_->PutText("", "x", [](absl::Status) {});
  store_->AppendEvent({"nobody", 0, "tell", ""}, [](absl::Status) {});
  EXPECT_THAT(store_->Flush(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->Flush(), IsOk());
}

TEST_P(WriteConformanceTest, FlushReturnsAfterTheCallbacks) {
  for (int round = 0; round < 20; ++round) {
    int done = 0;  // only the writer thread writes this until Flush returns
    for (int i = 0; i < 10; ++i) store_->PutText("t", "x", [&](absl::Status) { ++done; });
    ASSERT_THAT(store_->Flush(), IsOk());
    EXPECT_EQ(done, 10);
  }
}

TEST_P(WriteConformanceTest, WritesOfOneThreadKeepTheirOrder) {
  ASSERT_THAT(PutJob(*store_, PendingJob("a")), IsOk());
  for (int i = 0; i < 1000; ++i) {
    store_->AppendEvent({"a", i, i % 2 == 0 ? "propose" : "tell", absl::StrCat(i)},
                        [](absl::Status status) { EXPECT_THAT(status, IsOk()); });
  }
  ASSERT_THAT(store_->Flush(), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<JobEvent> events, store_->Events("a"));
  ASSERT_EQ(events.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(events[i].payload, absl::StrCat(i));
}

TEST_P(WriteConformanceTest, DestructionCommitsQueuedWrites) {
  std::atomic<int> done = 0;
  for (int i = 0; i < 1000; ++i) {
    store_->Append(ScreenedRecord(), [&](absl::StatusOr<record::Record> r) { done += r.ok(); });
  }
  Reopen();
  EXPECT_EQ(done, 1000);
  EXPECT_EQ(store_->Query({.page_size = 1000}).value().size(), 1000u);
}

TEST_P(WriteConformanceTest, ACallbackDuringDestructionMayReadAndWrite) {
  std::string read;
  Store* const store = store_.get();
  store->PutText("t", "text", [&, store](absl::Status) {
    read = store->GetText("t").value_or("not there");
    store->PutText("u", "more", [](absl::Status) {});
  });
  Reopen();
  EXPECT_EQ(read, "text");
  EXPECT_EQ(store_->GetText("u").value_or("lost"), "more");
}

TEST_P(WriteConformanceTest, ManyThreadsWriteAndReadTheirOwn) {
  constexpr int kThreads = 8;
  constexpr int kWrites = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      absl::BlockingCounter left(kWrites);
      for (int i = 0; i < kWrites; ++i) {
        const std::string digest = absl::StrCat(t, "/", i);
        store_->PutText(digest, digest, [&left](absl::Status status) {
          EXPECT_THAT(status, IsOk());
          left.DecrementCount();
        });
        if (i % 10 == 0) {
          EXPECT_THAT(store_->Query({}), IsOk());
        }
      }
      left.Wait();
      for (int i = 0; i < kWrites; ++i) {
        const std::string digest = absl::StrCat(t, "/", i);
        EXPECT_EQ(store_->GetText(digest).value_or("lost"), digest);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hone::store

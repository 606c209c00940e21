// Reads of the store that take long delay nothing but themselves, and end with their callers.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "common/rpc/token_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/search/draft_work.h"
#include "server/store/sqlite/connection.h"
#include "tests/fakes/manual_store.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Stub = v1::TuningService::Stub;

// The end of the time span of a list that takes for ever.
constexpr int64_t kSlow = 1;

class SlowStore final : public store::ManualStore {
 public:
  explicit SlowStore(std::atomic<int>* running) : running_(*running) {}

  absl::StatusOr<std::vector<record::Record>> Query(const store::RecordQuery& query) override {
    if (query.until_unix_ms != kSlow) return ManualStore::Query(query);
    const auto connection = store::SqliteConnection::OpenInMemory().value();
    ++running_;
    const absl::Status ended =
        connection
            ->QueryInt64(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e15)"
                " SELECT COUNT(*) FROM n")
            .status();
    --running_;
    return ended;
  }

 private:
  std::atomic<int>& running_;
};

class SlowReadsTest : public ::testing::Test, protected ServiceHarness {
 protected:
  ~SlowReadsTest() override { Stop(); }  // the store uses running_

  void Serve(ServerOptions options = {}) {
    options.tokens = std::make_shared<const rpc::TokenTable>(
        *rpc::TokenTable::Parse(rpc::TokenLine({"ann", rpc::Role::kClient}, TokenOf("ann")) +
                                rpc::TokenLine({"bob", rpc::Role::kClient}, TokenOf("bob"))));
    ASSERT_THAT(StartWith(std::make_unique<SlowStore>(&running_), std::move(options)), IsOk());
  }
  static std::string TokenOf(const std::string& name) { return absl::StrCat("token-of-", name); }

  // A list of records in a thread.
  struct List {
    grpc::ClientContext context;
    absl::Status status;
    absl::Notification ended;
    std::thread thread;
    ~List() {
      context.TryCancel();
      thread.join();
    }
  };
  std::unique_ptr<List> StartList(const std::string& caller, int64_t until = kSlow) {
    auto list = std::make_unique<List>();
    list->context.AddMetadata(rpc::kTokenHeader, absl::StrCat(rpc::kTokenPrefix, TokenOf(caller)));
    rpc::SetDeadline(list->context, absl::Minutes(1));
    list->thread = std::thread([this, until, raw = list.get()] {
      v1::ListRecordsRequest request;
      request.set_until_unix_ms(until);
      v1::ListRecordsResponse response;
      raw->status = rpc::FromGrpc(tuning->ListRecords(&raw->context, request, &response));
      raw->ended.Notify();
    });
    return list;
  }
  bool Runs(int slow) {
    return Eventually([&] { return running_ == slow; });
  }

  std::atomic<int> running_ = 0;
};

TEST_F(SlowReadsTest, TheyDelayNothingElseAndEndWithTheirCallers) {
  Serve();
  std::vector<std::unique_ptr<List>> slow;
  for (int i = 0; i < 6; ++i) slow.push_back(StartList("ann"));
  const int most = ReaderOptions().long_reads.threads - 1;
  ASSERT_TRUE(Runs(most)) << "one caller does not get all threads";

  RemoteWorker worker(channel, "w");  // leases, results and heartbeats
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, Request(40), &job), IsOk());
  job = WaitForEnd(job.id());
  EXPECT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  v1::Best best;
  EXPECT_THAT(Call(*tuning, &Stub::LookupBest, BestOf(), &best), IsOk());
  const auto other = StartList("bob", /*until=*/0);
  other->ended.WaitForNotification();
  EXPECT_THAT(other->status, IsOk());
  EXPECT_EQ(running_, most);

  for (const auto& list : slow) list->context.TryCancel();
  EXPECT_TRUE(Runs(0));
  const auto own = StartList("ann", /*until=*/0);
  own->ended.WaitForNotification();
  EXPECT_THAT(own->status, IsOk());
}

TEST_F(SlowReadsTest, ACallerWithTooManyIsTold) {
  ServerOptions options;
  options.readers.long_reads.max_of_caller = 2;
  Serve(std::move(options));
  const auto first = StartList("ann"), second = StartList("ann");
  ASSERT_TRUE(Runs(2));
  const auto third = StartList("ann");
  third->ended.WaitForNotification();
  EXPECT_THAT(third->status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("ann at unix has 2 reads"), HasSubstr("limit"))));
  EXPECT_TRUE(rpc::RetryAfter(third->status).has_value());
  const auto other = StartList("bob", /*until=*/0);
  other->ended.WaitForNotification();
  EXPECT_THAT(other->status, IsOk());
}

TEST_F(SlowReadsTest, ACallThatWaitsTooLongIsTold) {
  ServerOptions options;
  options.readers.long_reads.threads = 1;
  options.readers.long_reads.max_wait = absl::Milliseconds(200);
  Serve(std::move(options));
  const auto slow = StartList("ann");
  ASSERT_TRUE(Runs(1));
  const auto second = StartList("bob", /*until=*/0);
  second->ended.WaitForNotification();
  EXPECT_THAT(second->status,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the call waited 0.2 s")));
}

TEST_F(SlowReadsTest, ACallThatReadsTooLongIsEnded) {
  ServerOptions options;
  options.readers.long_reads.max_time = absl::Milliseconds(100);
  Serve(std::move(options));
  const auto slow = StartList("ann");
  slow->ended.WaitForNotification();
  EXPECT_THAT(slow->status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("ask for less")));
  EXPECT_EQ(running_, 0);
}

TEST_F(SlowReadsTest, AServerThatEndsDoesNotWait) {
  // A shutdown that waited for the read would take a part of this, which is minutes.
  Serve({.shutdown_limit = absl::Minutes(10)});
  const auto slow = StartList("ann");
  ASSERT_TRUE(Runs(1));
  const absl::Time begin = absl::Now();
  Stop();
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
  slow->ended.WaitForNotification();
  EXPECT_THAT(slow->status, StatusIs(absl::StatusCode::kUnavailable));
}

// The design spaces of a workload of a client are made in the server.
TEST_F(SlowReadsTest, TheNearestOfAHostileWorkloadIsNotSearched) {
  Serve();
  RemoteWorker worker(channel, "w");
  v1::LookupBestRequest request =
      BestOf(absl::StrCat("fake ", std::string(job::DraftWork::kMostNearestBytes, 'o'), " 12"));
  v1::Best best;
  EXPECT_EQ(Call(*tuning, &Stub::LookupBest, request, &best).error_code(),
            grpc::StatusCode::NOT_FOUND);
  request.set_nearest(true);
  grpc::Status refused;
  EXPECT_TRUE(Eventually([&] {  // once the worker has called
    refused = Call(*tuning, &Stub::LookupBest, request, &best);
    return refused.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
  }));
  EXPECT_THAT(refused.error_message(), HasSubstr("at most 65536"));
}

}  // namespace
}  // namespace hone::service

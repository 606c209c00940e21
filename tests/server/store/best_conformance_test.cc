// The contract of Store for published bests.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

class BestConformanceTest : public StoreConformanceTest {
 protected:
  void SetUp() override {
    StoreConformanceTest::SetUp();
    PutTextsAndArtifact(*store_);
  }
  int64_t AppendId(const record::Record& record) {
    const absl::StatusOr<record::Record> appended = Append(*store_, record);
    EXPECT_THAT(appended, IsOk());
    return appended.ok() ? appended->id : -1;
  }
  int64_t Publish(const record::Record& record) {
    const int64_t id = AppendId(record);
    EXPECT_THAT(PublishBest(*store_, id), IsOk());
    return id;
  }
  // The ids of the pinned bests.
  std::vector<int64_t> Pinned() {
    std::vector<int64_t> ids;
    const absl::StatusOr<std::vector<BestRow>> pinned = store_->PinnedBests();
    EXPECT_THAT(pinned, IsOk());
    for (const BestRow& best : *pinned) ids.push_back(best.record.id);
    return ids;
  }
  const BestQuery query_ = {.workload_digest = kWorkload, .target = kTarget, .tolerance = 1e-5};
  const TaskKey task_ = {.workload_digest = kWorkload, .target = kTarget, .tolerance = 1e-5};
};
INSTANTIATE_TEST_SUITE_P(Stores, BestConformanceTest, testing::ValuesIn(StoreFactories()),
                         FactoryName);

TEST_P(BestConformanceTest, UnpublishedRecordIsNotBest) {
  AppendId(ConfirmedRecord());
  EXPECT_THAT(store_->LookupBest(query_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->Query({.best_only = true}).value(), testing::IsEmpty());
}

TEST_P(BestConformanceTest, PublishedRecordIncludesItsTexts) {
  record::Record record = ConfirmedRecord();
  record.id = Publish(record);
  Reopen();
  HONE_ASSERT_OK_AND_ASSIGN(const BestRow best, store_->LookupBest(query_));
  ExpectEqual(best.record, record);
  EXPECT_EQ(best.workload, "the workload");
  EXPECT_EQ(best.space, "the space");
}

TEST_P(BestConformanceTest, TheKeyIsWorkloadTargetToleranceAndPolicy) {
  Publish(ConfirmedRecord());
  for (const auto& [change, found] : std::vector<std::pair<BestQuery, bool>>{
           {{kWorkload, kTarget, 1e-5, ""}, true},
           {{kWorkload, kTarget, 1e-5, "confirm/flushed/2"}, true},
           {{kWorkload, kTarget, 1e-5, "confirm/warm/2"}, false},
           {{kWorkload, kTarget, 0, ""}, false},
           {{kWorkload, "another", 1e-5, ""}, false},
           {{"another", kTarget, 1e-5, ""}, false}}) {
    const absl::Status status = store_->LookupBest(change).status();
    EXPECT_EQ(status.ok(), found) << status;
    EXPECT_TRUE(found || absl::IsNotFound(status)) << status;
  }
}

TEST_P(BestConformanceTest, QuarantineWithdrawsTheBest) {
  const record::Record record = ConfirmedRecord();
  const int64_t id = Publish(record);
  const auto quarantine = [&](int64_t last_record) {
    return Wait([&](Store::Done done) {
      store_->Quarantine(record.workload_digest, record.target, record.candidate, last_record,
                         "a reason", std::move(done));
    });
  };
  ASSERT_THAT(quarantine(id - 1), IsOk());
  EXPECT_THAT(store_->LookupBest(query_), IsOk());
  ASSERT_THAT(quarantine(id), IsOk());
  EXPECT_THAT(store_->LookupBest(query_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(PublishBest(*store_, id), StatusIs(absl::StatusCode::kFailedPrecondition));
  const int64_t next = Publish(record);
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, next);
}

// Two jobs compared their winners with the same incumbent. The second job must compare again.
TEST_P(BestConformanceTest, SecondPublisherWithAStaleIncumbentIsRejected) {
  const int64_t incumbent = Publish(ConfirmedRecord(100));
  const int64_t faster = AppendId(ConfirmedRecord(60));
  const int64_t slower = AppendId(ConfirmedRecord(80));
  EXPECT_THAT(PublishBest(*store_, faster, incumbent), IsOk());
  EXPECT_THAT(PublishBest(*store_, slower, incumbent), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, faster);
  EXPECT_THAT(PublishBest(*store_, faster, incumbent), IsOk()) << "already published";
  EXPECT_THAT(PublishBest(*store_, slower, faster), IsOk());
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, slower);
}

TEST_P(BestConformanceTest, FirstBestNeedsThatNoneExists) {
  const int64_t first = AppendId(ConfirmedRecord(100));
  const int64_t second = AppendId(ConfirmedRecord(50));
  EXPECT_THAT(PublishBest(*store_, first, 1 << 20), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(PublishBest(*store_, first, 0), IsOk());
  EXPECT_THAT(PublishBest(*store_, second, 0), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, first);
}

// The incumbent is the record that a look-up without a policy returns.
TEST_P(BestConformanceTest, IncumbentMayHaveAnotherPolicy) {
  record::Record warm = ConfirmedRecord(50);
  warm.policy.cache = "warm";
  const int64_t incumbent = Publish(warm);
  const int64_t id = AppendId(ConfirmedRecord(40));
  EXPECT_THAT(PublishBest(*store_, id, 0), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(PublishBest(*store_, id, incumbent), IsOk());
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, id);
}

TEST_P(BestConformanceTest, LaterPublicationReplacesTheBest) {
  Publish(ConfirmedRecord(100));
  const int64_t slower = Publish(ConfirmedRecord(200));
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, slower);
  HONE_ASSERT_OK_AND_ASSIGN(const auto best,
                            store_->Query({.workload_digest = kWorkload, .best_only = true}));
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best.front().id, slower);
}

TEST_P(BestConformanceTest, FormerBestCanBeRepublishedIdempotently) {
  const int64_t first = Publish(ConfirmedRecord(100));
  Publish(ConfirmedRecord(200));
  ASSERT_THAT(PublishBest(*store_, first), IsOk());
  ASSERT_THAT(PublishBest(*store_, first), IsOk());
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, first);
  EXPECT_EQ(store_->Query({.best_only = true}).value().size(), 1u);
}

TEST_P(BestConformanceTest, LookupWithoutPolicyReturnsTheFastest) {
  record::Record warm = ConfirmedRecord(50);
  warm.policy.cache = "warm";
  const int64_t warm_id = Publish(warm);
  const int64_t flushed_id = Publish(ConfirmedRecord(100));
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, warm_id);
  BestQuery flushed = query_;
  flushed.policy = "confirm/flushed/2";
  EXPECT_EQ(store_->LookupBest(flushed).value().record.id, flushed_id);
  EXPECT_EQ(store_->Query({.best_only = true}).value().size(), 2u);
}

TEST_P(BestConformanceTest, RejectsUnconfirmedRecords) {
  const int64_t best = Publish(ConfirmedRecord(100));
  record::Record screened = ConfirmedRecord(10);
  screened.policy.name = "screen";
  record::Record wrong = ConfirmedRecord(10);
  wrong.result.outcome = record::Outcome::kWrongOutput;
  record::Record quarantined = ConfirmedRecord(10);
  quarantined.quarantined = true;
  record::Record no_space = ConfirmedRecord(10);
  no_space.candidate.space_digest = "nowhere";
  record::Record no_artifact = ConfirmedRecord(10);
  no_artifact.result.artifact_digest = "nowhere";
  record::Record no_workload = ConfirmedRecord(10);
  no_workload.workload_digest = "nowhere";
  for (const auto& record : {screened, wrong, quarantined, no_space, no_artifact, no_workload}) {
    EXPECT_THAT(PublishBest(*store_, AppendId(record)),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(PublishBest(*store_, AppendId(screened)).message(),
              ::testing::HasSubstr("comes from a search, and was not confirmed"));
  EXPECT_THAT(PublishBest(*store_, 1 << 20), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, best);
}

TEST_P(BestConformanceTest, TheUnpublishedBestOfATaskIsTheFastestResultOfAConfirmation) {
  const auto combined = [](double latency_ns) {
    record::Record record = ConfirmedRecord(latency_ns);
    record.result.processes = 3;
    return record;
  };
  record::Record wrong = combined(10);
  wrong.result.outcome = record::Outcome::kWrongOutput;
  record::Record quarantined = combined(20);
  quarantined.quarantined = true;
  record::Record process = combined(30);
  process.result.processes = 0;  // one of a confirmation, which publishes their median
  record::Record strict = combined(300);
  strict.tolerance = 0;
  record::Record elsewhere = combined(400);
  elsewhere.target = "another";
  record::Record other = combined(500);
  other.workload_digest = "0000000000000000000000000000000e";
  other.op = "conv2d";
  for (const record::Record& record : {wrong, quarantined, process, ScreenedRecord(30)}) {
    AppendId(record);
  }
  AppendId(combined(200));
  record::Record one = combined(100);
  one.result.processes = 1;  // the other processes were disturbed
  const int64_t fastest = AppendId(one);
  AppendId(combined(150));
  const int64_t strict_id = AppendId(strict), elsewhere_id = AppendId(elsewhere),
                other_id = AppendId(other);
  const auto ids = [&](RecordQuery query) {
    query.unpublished_best = true;
    std::vector<int64_t> found;
    const absl::StatusOr<std::vector<record::Record>> records = store_->Query(query);
    EXPECT_THAT(records, IsOk());
    for (const record::Record& record : *records) found.push_back(record.id);
    return found;
  };
  using testing::ElementsAre;
  EXPECT_THAT(ids({}), ElementsAre(fastest, strict_id, elsewhere_id, other_id));
  EXPECT_THAT(ids({.page_size = 2, .after_id = fastest}), ElementsAre(strict_id, elsewhere_id));
  EXPECT_THAT(ids({.target = kTarget}), ElementsAre(fastest, strict_id, other_id));
  EXPECT_THAT(ids({.workload_digest = kWorkload}), ElementsAre(fastest, strict_id, elsewhere_id));
  EXPECT_THAT(ids({.workload_digest = kWorkload, .target = kTarget}),
              ElementsAre(fastest, strict_id));
  EXPECT_THAT(ids({.target = kTarget, .op = "conv2d"}), ElementsAre(other_id));
  EXPECT_THAT(ids({.best_only = true}), testing::IsEmpty());
  ASSERT_THAT(PublishBest(*store_, fastest), IsOk());
  EXPECT_THAT(ids({.target = kTarget}), ElementsAre(strict_id, other_id));
}

TEST_P(BestConformanceTest, APinnedBestIsNotReplacedUntilThePinIsRemoved) {
  const int64_t pinned = Publish(ConfirmedRecord(100));
  const int64_t faster = AppendId(ConfirmedRecord(50));
  record::Record warm = ConfirmedRecord(40);
  warm.policy.cache = "warm";
  const int64_t warm_id = AppendId(warm);
  EXPECT_EQ(store_->LookupBest(query_).value().pin, Pin());
  ASSERT_THAT(PinBest(*store_, task_), IsOk());
  Reopen();
  const BestRow best = store_->LookupBest(query_).value();
  EXPECT_EQ(best.pin.by, "somebody");
  EXPECT_GT(best.pin.unix_ms, 0);
  EXPECT_THAT(Pinned(), testing::ElementsAre(pinned));
  EXPECT_EQ(store_->PinnedBests()->front().pin, best.pin);

  EXPECT_THAT(PublishBest(*store_, faster, pinned), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(PublishBest(*store_, warm_id), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(PublishBest(*store_, pinned), IsOk()) << "it is published already";
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, pinned);

  ASSERT_THAT(UnpinBest(*store_, task_), IsOk());
  EXPECT_THAT(UnpinBest(*store_, task_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Pinned(), testing::IsEmpty());
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, pinned) << "it stays published";
  EXPECT_THAT(PublishBest(*store_, faster, pinned), IsOk());
  EXPECT_EQ(store_->LookupBest(query_).value().pin, Pin());
}

TEST_P(BestConformanceTest, AFormerBestIsPublishedAgainByAPin) {
  const int64_t former = Publish(ConfirmedRecord(100));
  record::Record warm = ConfirmedRecord(40);
  warm.policy.cache = "warm";
  Publish(warm);
  Publish(ConfirmedRecord(50));
  ASSERT_THAT(PinBest(*store_, task_, former), IsOk());
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, former) << "the slowest of the three";
  EXPECT_EQ(store_->Query({.best_only = true}).value().size(), 1u);
  EXPECT_THAT(Pinned(), testing::ElementsAre(former));

  // A pin replaces another one.
  const int64_t next = AppendId(ConfirmedRecord(70));
  ASSERT_THAT(PinBest(*store_, task_, next, "another"), IsOk());
  EXPECT_THAT(Pinned(), testing::ElementsAre(next));
  EXPECT_EQ(store_->LookupBest(query_).value().pin.by, "another");
}

TEST_P(BestConformanceTest, WhatCannotBePublishedIsNotPinned) {
  EXPECT_THAT(PinBest(*store_, task_), StatusIs(absl::StatusCode::kNotFound))
      << "nothing is published";
  const int64_t best = Publish(ConfirmedRecord(100));
  record::Record no_artifact = ConfirmedRecord(10);
  no_artifact.result.artifact_digest = "nowhere";
  record::Record elsewhere = ConfirmedRecord(10);
  elsewhere.target = "another";
  for (const auto& record : {no_artifact, ScreenedRecord(10)}) {
    EXPECT_THAT(PinBest(*store_, task_, AppendId(record)),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(PinBest(*store_, task_, AppendId(elsewhere)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PinBest(*store_, task_, 1 << 20), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Pinned(), testing::IsEmpty());
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, best);
}

TEST_P(BestConformanceTest, AQuarantinedBestLosesItsPin) {
  const record::Record record = ConfirmedRecord();
  const int64_t pinned = Publish(record);
  ASSERT_THAT(PinBest(*store_, task_), IsOk());
  ASSERT_THAT(Quarantine(*store_, record, pinned), IsOk());
  EXPECT_THAT(store_->LookupBest(query_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Pinned(), testing::IsEmpty());
  Publish(record);
  EXPECT_EQ(store_->LookupBest(query_).value().pin, Pin());
}

TEST_P(BestConformanceTest, AForgottenTaskHasNoBestAndKeepsItsRows) {
  const int64_t screened = AppendId(ScreenedRecord(10));
  const int64_t best = Publish(ConfirmedRecord(100));
  ASSERT_THAT(PinBest(*store_, task_), IsOk());
  record::Record disturbed = ConfirmedRecord(20);
  disturbed.quarantined = true;
  disturbed.quarantine_reason = "disturbed";
  const int64_t quarantined = AppendId(disturbed);
  record::Record strict = ConfirmedRecord(300);
  strict.tolerance = 0;
  record::Record elsewhere = ConfirmedRecord(400);
  elsewhere.target = "another";
  const int64_t strict_id = Publish(strict), elsewhere_id = Publish(elsewhere);

  HONE_ASSERT_OK_AND_ASSIGN(const Forgotten forgotten,
                            Forget(*store_, task_, "forgotten by somebody"));
  EXPECT_EQ(forgotten.records, 2);
  ASSERT_EQ(forgotten.bests.size(), 1u);
  EXPECT_EQ(forgotten.bests[0].id, best);
  EXPECT_THAT(store_->LookupBest(query_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Pinned(), testing::IsEmpty());
  std::map<int64_t, std::string> reasons;
  const auto records = store_->Query({}).value();
  for (const record::Record& record : records) {
    EXPECT_EQ(record.quarantined, !record.quarantine_reason.empty()) << record.id;
    reasons[record.id] = record.quarantine_reason;
  }
  EXPECT_THAT(reasons,
              testing::ElementsAre(testing::Pair(screened, "forgotten by somebody"),
                                   testing::Pair(best, "forgotten by somebody"),
                                   testing::Pair(quarantined, "disturbed"),
                                   testing::Pair(strict_id, ""), testing::Pair(elsewhere_id, "")));
  const auto others = store_->Query({.best_only = true}).value();
  EXPECT_EQ(others.size(), 2u);
  EXPECT_THAT(store_->Query({.target = kTarget, .unpublished_best = true}).value(),
              testing::IsEmpty());

  EXPECT_THAT(Forget(*store_, task_, "again"), StatusIs(absl::StatusCode::kNotFound));
  const int64_t fresh = Publish(ConfirmedRecord(500));
  EXPECT_EQ(store_->LookupBest(query_).value().record.id, fresh);
}

// Readers see a best at every moment while it is being replaced.
TEST_P(BestConformanceTest, ReadersAlwaysSeeOneBest) {
  const int64_t a = Publish(ConfirmedRecord(100));
  const int64_t b = AppendId(ConfirmedRecord(200));
  std::atomic<bool> stop = false;
  std::atomic<int> reads = 0;
  std::thread reader([&] {
    while (!stop) {
      const absl::StatusOr<BestRow> best = store_->LookupBest(query_);
      EXPECT_THAT(best, IsOk());
      if (best.ok()) {
        EXPECT_THAT(best->record.id, testing::AnyOf(a, b));
      }
      ++reads;
    }
  });
  for (int i = 0; i < 50 || reads < 50; ++i) {
    ASSERT_THAT(PublishBest(*store_, i % 2 == 0 ? b : a), IsOk());
  }
  stop = true;
  reader.join();
}

}  // namespace
}  // namespace hone::store

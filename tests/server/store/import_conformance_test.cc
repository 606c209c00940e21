// The contract of Store for imports.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "gmock/gmock.h"
#include "server/store/exchange/exchange.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ImportConformanceTest : public StoreConformanceTest {
 protected:
  void SetUp() override {
    StoreConformanceTest::SetUp();
    other_ = OpenSqliteStore(other_folder_ / "other.db").value();
  }
  static ImportBatch Batch() {
    ImportBatch batch{.origin = "elsewhere"};
    batch.texts = {{kWorkload, "the workload"}, {kSpace, "the space"}};
    batch.artifacts = {{kArtifact, "the artifact"}};
    batch.records = {ConfirmedRecord(100), ScreenedRecord(50), ScreenedRecord(70)};
    batch.bests = {0};
    return batch;
  }
  std::vector<record::Record> All() { return store_->Query({.page_size = 1000}).value(); }
  double BestLatency() {
    const auto best = store_->LookupBest(query_);
    return best.ok() ? best->record.result.latency_ns : 0;
  }

  const BestQuery query_ = {.workload_digest = kWorkload, .target = kTarget, .tolerance = 1e-5};
  TemporaryFolder other_folder_;
  std::unique_ptr<Store> other_;
};
INSTANTIATE_TEST_SUITE_P(Stores, ImportConformanceTest, testing::ValuesIn(StoreFactories()),
                         FactoryName);

TEST_P(ImportConformanceTest, AddsNewRecordsOnce) {
  const ImportBatch batch = Batch();
  HONE_ASSERT_OK_AND_ASSIGN(const auto first, Import(*store_, batch));
  EXPECT_EQ(first.added, 3);
  EXPECT_EQ(first.known, 0);
  EXPECT_EQ(first.bests, 1);
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, Import(*store_, batch));
  EXPECT_EQ(again.added, 0);
  EXPECT_EQ(again.known, 3);
  EXPECT_EQ(again.bests, 0);
  Reopen();
  const std::vector<record::Record> records = All();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].job_id, "elsewhere/job-1");
  record::Record expected = batch.records[0];
  expected.id = records[0].id;
  expected.job_id = records[0].job_id;
  ExpectEqual(records[0], expected);
  EXPECT_EQ(BestLatency(), 100);
}

TEST_P(ImportConformanceTest, RecognizesOwnRecordsUnderAnyJobId) {
  ASSERT_THAT(PutText(*store_, kWorkload, "the workload"), IsOk());
  ASSERT_THAT(PutText(*store_, kSpace, "the space"), IsOk());
  ASSERT_THAT(Append(*store_, ScreenedRecord(50)), IsOk());
  ImportBatch batch{.origin = store_->Identity().value()};
  batch.records = {ScreenedRecord(50), ScreenedRecord(51)};
  EXPECT_EQ(Import(*store_, batch)->known, 1);
  EXPECT_EQ(All()[1].job_id, "job-1") << "the record of this store is kept";
}

TEST_P(ImportConformanceTest, PublishesAFasterBest) {
  PutTextsAndArtifact(*store_);
  ASSERT_THAT(PublishBest(*store_, Append(*store_, ConfirmedRecord(90))->id), IsOk());
  EXPECT_EQ(Import(*store_, Batch())->bests, 0);
  EXPECT_EQ(BestLatency(), 90);
  ImportBatch faster = Batch();
  faster.records[0] = ConfirmedRecord(80);
  EXPECT_EQ(Import(*store_, faster)->bests, 1);
  EXPECT_EQ(BestLatency(), 80);
  EXPECT_EQ(store_->Query({.best_only = true})->size(), 1u);
}

TEST_P(ImportConformanceTest, PinnedBestsAndForgottenRecordsAreKept) {
  const TaskKey task{.workload_digest = kWorkload, .target = kTarget, .tolerance = 1e-5};
  PutTextsAndArtifact(*store_);
  ASSERT_THAT(PublishBest(*store_, Append(*store_, ConfirmedRecord(110))->id), IsOk());
  ASSERT_THAT(PinBest(*store_, task), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto imported, Import(*store_, Batch()));
  EXPECT_EQ(imported.added, 3);
  EXPECT_EQ(imported.bests, 0);
  EXPECT_EQ(BestLatency(), 110);
  ASSERT_THAT(Forget(*store_, task, "forgotten"), IsOk());
  EXPECT_EQ(Import(*store_, Batch())->known, 3);
  EXPECT_EQ(BestLatency(), 0);
}

TEST_P(ImportConformanceTest, BadRecordIsNamedAndNothingIsAdded) {
  ImportBatch batch = Batch();
  batch.where = {"line 3", "line 4", "line 5"};
  batch.records[1].result.latency_ns = -1;
  absl::Status status = Import(*store_, batch).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 4")));
  batch = Batch();
  batch.records[2].candidate.space_digest = "00000000000000000000000000000009";
  status = Import(*store_, batch).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("record 3")));
  EXPECT_THAT(All(), IsEmpty());
  EXPECT_THAT(store_->GetText(kSpace), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(ImportConformanceTest, MergeAddsRecordsOfTheOtherStore) {
  PutTextsAndArtifact(*other_);
  PutTextsAndArtifact(*store_);
  ASSERT_THAT(PublishBest(*other_, Append(*other_, ConfirmedRecord(40))->id), IsOk());
  for (int i = 0; i < 30; ++i) ASSERT_THAT(Append(*other_, ScreenedRecord(100 + i)), IsOk());
  ASSERT_THAT(PublishBest(*store_, Append(*store_, ConfirmedRecord(60))->id), IsOk());
  ASSERT_THAT(Append(*store_, ScreenedRecord(105)), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto merged, MergeStores(*store_, *other_));
  EXPECT_EQ(merged.added, 30);
  EXPECT_EQ(merged.known, 1);
  EXPECT_EQ(merged.bests, 1);
  EXPECT_EQ(BestLatency(), 40);
  EXPECT_EQ(MergeStores(*store_, *other_)->added, 0);
  EXPECT_EQ(All().size(), 32u);
}

TEST_P(ImportConformanceTest, NanAndInfinityAreCopiedBetweenStores) {
  record::Record none = ScreenedRecord();
  none.result.outcome = record::Outcome::kWrongOutput;
  none.result.latency_ns = none.result.max_error = none.result.dispersion = std::nan("");
  none.result.samples_ns = {std::nan("")};
  record::Record infinite = none;
  ++infinite.trial;
  infinite.result.latency_ns = infinite.result.max_error = INFINITY;
  PutTextsAndArtifact(*other_);
  for (const record::Record& record : {none, infinite})
    ASSERT_THAT(Append(*other_, record), IsOk());
  EXPECT_EQ(MergeStores(*store_, *other_)->added, 2);
  EXPECT_EQ(MergeStores(*store_, *other_)->known, 2)
      << "NaN and infinity compare equal to themselves";
  const auto back = OpenSqliteStore(other_folder_ / "back.db").value();
  EXPECT_EQ(MergeStores(*back, *store_)->added, 2);
  EXPECT_EQ(MergeStores(*back, *store_)->known, 2);
  for (Store* const store : {store_.get(), back.get()}) {
    const std::vector<record::Record> records = store->Query({.page_size = 1000}).value();
    ASSERT_EQ(records.size(), 2u);
    for (record::Record expected : {none, infinite}) {
      const record::Record& is = records[expected.trial == none.trial ? 0 : 1];
      expected.id = is.id;
      expected.job_id = is.job_id;
      ExpectEqual(is, expected);
    }
  }
}

TEST_P(ImportConformanceTest, ExportRoundTripsThroughAnotherStore) {
  const std::string workload = "the workload";
  const std::string space = "the space";
  const std::string digest = DigestOf(space).ToHex();
  ASSERT_THAT(PutText(*store_, kWorkload, workload), IsOk());
  ASSERT_THAT(PutText(*store_, digest, space), IsOk());
  std::vector<record::Record> kept;
  for (int i = 0; i < 250; ++i) {  // more than one page of the export
    record::Record record = i % 2 == 0 ? ScreenedRecord(100 + i) : ConfirmedRecord(100 + i);
    record.candidate.space_digest = digest;
    if (i == 7) record.result.samples_ns = {std::nan(""), INFINITY};
    kept.push_back(Append(*store_, record).value());
  }
  ASSERT_THAT(Append(*store_, ScreenedRecord()), IsOk());  // its space is not in the store
  RecordExport out(store_.get(), {});
  std::string text;
  for (std::string lines = out.Next().value(); !lines.empty(); lines = out.Next().value()) {
    text += lines;
  }
  EXPECT_THAT(text, HasSubstr("{\"end\":{\"texts\":2,\"records\":250,\"left_out\":1}}\n"));
  RecordImport in([](const std::string&, const std::string&) { return absl::OkStatus(); });
  for (size_t i = 0; i < text.size(); i += 997) {
    ASSERT_THAT(in.Feed(absl::string_view(text).substr(i, 997)), IsOk());
  }
  HONE_ASSERT_OK_AND_ASSIGN(ImportBatch batch, std::move(in).Finish());
  ASSERT_EQ(Import(*other_, batch)->added, 250);
  const auto back = other_->Query({.page_size = 1000}).value();
  ASSERT_EQ(back.size(), kept.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    record::Record expected = kept[i];
    expected.id = back[i].id;
    expected.job_id = absl::StrCat(store_->Identity().value(), "/job-1");
    ExpectEqual(back[i], expected);
  }
  EXPECT_EQ(Import(*store_, batch)->known, 250) << "an import into the original store adds nothing";
}

}  // namespace
}  // namespace hone::store

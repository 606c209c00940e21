// The contract of Store for records, texts and artifacts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/store/read_limit.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

class RecordConformanceTest : public StoreConformanceTest {
 protected:
  std::vector<int64_t> Ids(const RecordQuery& query) {
    std::vector<int64_t> ids;
    const absl::StatusOr<std::vector<record::Record>> records = store_->Query(query);
    EXPECT_THAT(records, IsOk());
    if (!records.ok()) return ids;
    for (const record::Record& record : *records) ids.push_back(record.id);
    return ids;
  }
  int64_t AppendId(const record::Record& record) {
    const absl::StatusOr<record::Record> appended = Append(*store_, record);
    EXPECT_THAT(appended, IsOk());
    return appended.ok() ? appended->id : -1;
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, RecordConformanceTest, testing::ValuesIn(StoreFactories()),
                         FactoryName);

TEST_P(RecordConformanceTest, EveryFieldSurvivesReopening) {
  record::Record record = ConfirmedRecord();
  HONE_ASSERT_OK_AND_ASSIGN(const record::Record appended, Append(*store_, record));
  EXPECT_GT(appended.id, 0);
  record.id = appended.id;
  ExpectEqual(appended, record);
  Reopen();
  HONE_ASSERT_OK_AND_ASSIGN(const auto records, store_->Query({}));
  ASSERT_EQ(records.size(), 1u);
  ExpectEqual(records.front(), record);
}

TEST_P(RecordConformanceTest, AReadEndsWithTheLimitOfItsThread) {
  AppendId(ScreenedRecord());
  absl::Status wanted;
  const auto check = [&] { return wanted; };
  {
    const ReadLimit limit(check);
    EXPECT_EQ(Ids({}).size(), 1u);
    wanted = absl::CancelledError("nobody waits for it");
    EXPECT_THAT(store_->Query({}), StatusIs(absl::StatusCode::kCancelled));
    EXPECT_GT(AppendId(ScreenedRecord()), 0) << "writes have no limit";
  }
  EXPECT_EQ(Ids({}).size(), 2u);
}

TEST_P(RecordConformanceTest, AReadOnAThreadThatMustNotReadIsCounted) {
  const int64_t before = NoReads::count();
  {
    const NoReads no_reads("the thread of a test");
    AppendId(ScreenedRecord());
    EXPECT_EQ(NoReads::count(), before) << "writes are queued";
    EXPECT_EQ(Ids({}).size(), 1u) << "it works nevertheless";
    EXPECT_EQ(NoReads::count(), before + 1);
  }
  EXPECT_EQ(Ids({}).size(), 1u);
  EXPECT_EQ(NoReads::count(), before + 1);
}

TEST_P(RecordConformanceTest, FailuresAndSpecialNumbersRoundTrip) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const record::Outcome outcome : record::AllOutcomes()) {
    record::Record record = ScreenedRecord();
    record.result.outcome = outcome;
    if (outcome != record::Outcome::kOk) record.result.latency_ns = 0;
    record.result.samples_ns = {nan, std::numeric_limits<double>::infinity()};
    record.result.max_error = nan;
    record.result.dispersion = std::numeric_limits<double>::infinity();
    record.result.facts.loads_per_fma = nan;
    record.result.detail = std::string("bytes \0 \xff\xfe and 'quotes'", 24);
    record.candidate.decisions.clear();
    record.quarantined = true;
    record.quarantine_reason = "an odd machine";
    record.id = AppendId(record);
    HONE_ASSERT_OK_AND_ASSIGN(const auto records, store_->Query({.after_id = record.id - 1}));
    ASSERT_EQ(records.size(), 1u);
    ExpectEqual(records.front(), record);
  }
}

TEST_P(RecordConformanceTest, MalformedRecordsAreRefusedAndLeaveNothing) {
  record::Record no_workload = ConfirmedRecord();
  no_workload.workload_digest.clear();
  record::Record no_target = ConfirmedRecord();
  no_target.target.clear();
  record::Record no_tolerance = ConfirmedRecord();
  no_tolerance.tolerance = std::numeric_limits<double>::quiet_NaN();
  record::Record negative_tolerance = ConfirmedRecord();
  negative_tolerance.tolerance = -1;
  record::Record no_latency = ConfirmedRecord();
  no_latency.result.latency_ns = 0;
  for (const auto& record :
       {no_workload, no_target, no_tolerance, negative_tolerance, no_latency}) {
    EXPECT_THAT(Append(*store_, record), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(Ids({}), testing::IsEmpty());
}

TEST_P(RecordConformanceTest, EachFilterAndTheirCombination) {
  record::Record a = ScreenedRecord();
  record::Record b = a;
  b.workload_digest = "another workload";
  record::Record c = a;
  c.target = "another target";
  record::Record d = a;
  d.op = "conv2d";
  record::Record e = a;
  e.created_unix_ms += 1000;
  const int64_t ia = AppendId(a), ib = AppendId(b), ic = AppendId(c), id = AppendId(d),
                ie = AppendId(e);
  EXPECT_THAT(Ids({}), testing::ElementsAre(ia, ib, ic, id, ie));
  EXPECT_THAT(Ids({.workload_digest = kWorkload}), testing::ElementsAre(ia, ic, id, ie));
  EXPECT_THAT(Ids({.target = kTarget}), testing::ElementsAre(ia, ib, id, ie));
  EXPECT_THAT(Ids({.op = "matmul"}), testing::ElementsAre(ia, ib, ic, ie));
  EXPECT_THAT(Ids({.since_unix_ms = e.created_unix_ms}), testing::ElementsAre(ie));
  EXPECT_THAT(Ids({.workload_digest = kWorkload, .target = kTarget, .op = "matmul"}),
              testing::ElementsAre(ia, ie));
  EXPECT_THAT(Ids({.workload_digest = kWorkload,
                   .target = kTarget,
                   .op = "conv2d",
                   .since_unix_ms = e.created_unix_ms}),
              testing::IsEmpty());
  EXPECT_THAT(Ids({.op = "softmax"}), testing::IsEmpty());
}

TEST_P(RecordConformanceTest, FiltersByJobOutcomeQuarantineAndTime) {
  record::Record a = ScreenedRecord();
  record::Record b = a;
  b.job_id = "job-2";
  b.created_unix_ms += 10;
  record::Record c = a;
  c.result.outcome = record::Outcome::kCrash;
  c.result.latency_ns = 0;
  c.created_unix_ms += 20;
  record::Record d = a;
  d.quarantined = true;
  d.created_unix_ms += 30;
  record::Record imported = a;  // measured first, stored last
  imported.created_unix_ms -= 1000;
  const int64_t ia = AppendId(a), ib = AppendId(b), ic = AppendId(c), id = AppendId(d),
                ii = AppendId(imported);
  EXPECT_THAT(Ids({.job_id = "job-2"}), testing::ElementsAre(ib));
  EXPECT_THAT(Ids({.outcome = "crash"}), testing::ElementsAre(ic));
  EXPECT_THAT(Ids({.outcome = "ok"}), testing::ElementsAre(ia, ib, id, ii));
  EXPECT_THAT(Ids({.job_id = "job-1", .outcome = "crash"}), testing::ElementsAre(ic));
  EXPECT_THAT(Ids({.quarantine = QuarantineFilter::kOnly}), testing::ElementsAre(id));
  EXPECT_THAT(Ids({.quarantine = QuarantineFilter::kNone}), testing::ElementsAre(ia, ib, ic, ii));
  EXPECT_THAT(Ids({.op = "matmul", .outcome = "ok", .quarantine = QuarantineFilter::kOnly}),
              testing::ElementsAre(id));
  EXPECT_THAT(Ids({.until_unix_ms = a.created_unix_ms + 10}), testing::ElementsAre(ia, ii));
  EXPECT_THAT(Ids({.since_unix_ms = a.created_unix_ms + 10}), testing::ElementsAre(ib, ic, id));
  EXPECT_THAT(Ids({.since_unix_ms = a.created_unix_ms + 10, .page_size = 1, .after_id = ib}),
              testing::ElementsAre(ic));
  EXPECT_THAT(
      Ids({.since_unix_ms = a.created_unix_ms + 10, .until_unix_ms = a.created_unix_ms + 30}),
      testing::ElementsAre(ib, ic));
  EXPECT_THAT(Ids({.since_unix_ms = a.created_unix_ms + 31}), testing::IsEmpty());
  EXPECT_THAT(store_->Query({.outcome = "splendid"}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(RecordConformanceTest, FiltersByProposer) {
  record::Record own = ScreenedRecord();
  record::Record first = own;
  first.proposer = "notebook";
  record::Record second = own;
  second.proposer = "model/2";
  second.job_id = "job-2";
  const int64_t a = AppendId(own), b = AppendId(first), c = AppendId(second);
  EXPECT_THAT(Ids({.proposed = true}), testing::ElementsAre(b, c));
  EXPECT_THAT(Ids({.proposer = "notebook"}), testing::ElementsAre(b));
  EXPECT_THAT(Ids({.job_id = "job-2", .proposed = true, .proposer = "model/2"}),
              testing::ElementsAre(c));
  EXPECT_THAT(Ids({.job_id = "job-2", .proposer = "notebook"}), testing::IsEmpty());
  EXPECT_THAT(Ids({.since_unix_ms = own.created_unix_ms, .proposer = "notebook"}),
              testing::ElementsAre(b));
  EXPECT_THAT(Ids({}), testing::ElementsAre(a, b, c));
  EXPECT_EQ((*store_->Query({.proposer = "model/2"}))[0].proposer, "model/2");
}

TEST_P(RecordConformanceTest, ListsNewestFirstBeforeAnId) {
  std::vector<int64_t> ids;
  for (int i = 0; i < 5; ++i) {
    record::Record record = ScreenedRecord(100 + i);
    if (i == 2) record.op = "conv2d";
    ids.push_back(AppendId(record));
  }
  EXPECT_THAT(Ids({.page_size = 2, .newest_first = true}), testing::ElementsAre(ids[4], ids[3]));
  EXPECT_THAT(Ids({.page_size = 2, .before_id = ids[3], .newest_first = true}),
              testing::ElementsAre(ids[2], ids[1]));
  EXPECT_THAT(Ids({.op = "matmul", .before_id = ids[3], .newest_first = true}),
              testing::ElementsAre(ids[1], ids[0]));
  EXPECT_THAT(Ids({.after_id = ids[0], .before_id = ids[4]}),
              testing::ElementsAre(ids[1], ids[2], ids[3]));
}

constexpr RecordOrder kAllOrders[] = {
    RecordOrder::kId,     RecordOrder::kTime, RecordOrder::kOperator, RecordOrder::kWorkload,
    RecordOrder::kTarget, RecordOrder::kJob,  RecordOrder::kLatency};

TEST_P(RecordConformanceTest, PagesOfEveryOrderCoverEverythingOnce) {
  // Names whose order depends on the language, unless they are sorted by their bytes.
  const char* const names[] = {"b", "B", "a_b", "ab", "\xc3\xa9", "b"};
  std::vector<record::Record> all;
  const auto append = [&](int i) {
    record::Record record = ScreenedRecord(100 + i * 7 % 5);
    record.op = names[i % 6];
    record.workload_digest = names[i % 5];
    record.target = names[i % 4];
    record.job_id = names[i % 3];
    record.created_unix_ms = 1000 + i * 3 % 7;
    if (i % 8 == 7) record.quarantined = true;
    if (i % 8 == 6) record.result.outcome = record::Outcome::kCrash;
    record.id = AppendId(record);
    all.push_back(record);
  };
  for (int i = 0; i < 24; ++i) append(i);
  for (const RecordOrder order : kAllOrders) {
    if (order == RecordOrder::kId) continue;
    for (const bool newest_first : {false, true}) {
      std::vector<record::Record> expected = all;
      if (order == RecordOrder::kLatency) {
        std::erase_if(expected, [](const record::Record& record) {
          return record.quarantined || record.result.outcome != record::Outcome::kOk;
        });
      }
      std::ranges::sort(expected, [&](const record::Record& a, const record::Record& b) {
        const RecordPlace x = PlaceOf(a, order), y = PlaceOf(b, order);
        const bool less = std::tie(x.text, x.number, x.id) < std::tie(y.text, y.number, y.id);
        return newest_first ? !less && a.id != b.id : less;
      });
      std::vector<int64_t> ids, seen;
      for (const record::Record& record : expected) ids.push_back(record.id);
      RecordQuery query{.page_size = 5, .newest_first = newest_first, .order = order};
      while (true) {
        HONE_ASSERT_OK_AND_ASSIGN(const auto page, store_->Query(query));
        for (const record::Record& record : page) seen.push_back(record.id);
        if (page.size() < 5) break;
        query.after = PlaceOf(page.back(), order);
      }
      EXPECT_EQ(seen, ids) << static_cast<int>(order) << ", " << newest_first;
    }
  }
}

TEST_P(RecordConformanceTest, PagesStayCompleteWhileRecordsArriveAndAreRemoved) {
  std::vector<int64_t> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(AppendId(ScreenedRecord(100 + i)));
  RecordQuery query{.page_size = 2, .order = RecordOrder::kLatency};
  HONE_ASSERT_OK_AND_ASSIGN(auto page, store_->Query(query));
  query.after = PlaceOf(page.back(), query.order);
  AppendId(ScreenedRecord(50));  // on the page that was read
  const int64_t equal = AppendId(ScreenedRecord(101));
  // The last record of that page leaves the order.
  store_->Quarantine(kWorkload, kTarget, page.back().candidate, ids[1], "a reason",
                     [](absl::Status status) { EXPECT_THAT(status, IsOk()); });
  ASSERT_THAT(store_->Flush(), IsOk());
  EXPECT_THAT(Ids(query), testing::ElementsAre(equal, ids[2]));
}

TEST_P(RecordConformanceTest, LatenciesOfATaskAreSorted) {
  record::Record other = ScreenedRecord(50);
  other.target = "another target";
  AppendId(other);
  const int64_t slow = AppendId(ScreenedRecord(200)), fast = AppendId(ScreenedRecord(100));
  RecordQuery query{.workload_digest = kWorkload,
                    .target = kTarget,
                    .page_size = 1,
                    .outcome = "ok",
                    .order = RecordOrder::kLatency};
  EXPECT_THAT(Ids(query), testing::ElementsAre(fast));
  query.after = RecordPlace{.number = 100, .id = fast};
  EXPECT_THAT(Ids(query), testing::ElementsAre(slow));
  query.after = std::nullopt;
  query.newest_first = true;
  EXPECT_THAT(Ids(query), testing::ElementsAre(slow));
}

TEST_P(RecordConformanceTest, TimesOfASpanAreSorted) {
  std::vector<int64_t> ids;
  for (int i = 0; i < 5; ++i) {
    record::Record record = ScreenedRecord();
    record.created_unix_ms = 1000 - i;
    ids.push_back(AppendId(record));
  }
  RecordQuery query{
      .since_unix_ms = 997, .page_size = 2, .until_unix_ms = 1000, .order = RecordOrder::kTime};
  EXPECT_THAT(Ids(query), testing::ElementsAre(ids[3], ids[2]));
  query.after = RecordPlace{.number = 998, .id = ids[2]};
  EXPECT_THAT(Ids(query), testing::ElementsAre(ids[1]));
  query.newest_first = true;
  EXPECT_THAT(Ids(query), testing::ElementsAre(ids[3]));
}

TEST_P(RecordConformanceTest, OrdersWithoutAnIndexAreRefused) {
  for (const RecordQuery& query :
       {RecordQuery{.op = "matmul", .order = RecordOrder::kLatency},
        RecordQuery{.workload_digest = "w", .order = RecordOrder::kLatency},
        RecordQuery{.outcome = "crash", .order = RecordOrder::kLatency},
        RecordQuery{.job_id = "1", .order = RecordOrder::kTime},
        RecordQuery{.since_unix_ms = 1, .order = RecordOrder::kOperator},
        RecordQuery{.best_only = true, .order = RecordOrder::kTarget}}) {
    EXPECT_THAT(store_->Query(query), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_P(RecordConformanceTest, QuarantineMarksACandidateUpToARecord) {
  record::Record one = ScreenedRecord();
  record::Record other = one;
  other.candidate.decisions.push_back(7);
  record::Record elsewhere = one;
  elsewhere.target = "another target";
  const int64_t a = AppendId(one), b = AppendId(other), c = AppendId(elsewhere), d = AppendId(one);
  store_->Quarantine(one.workload_digest, one.target, one.candidate, c, "a reason",
                     [](absl::Status status) { EXPECT_THAT(status, IsOk()); });
  ASSERT_THAT(store_->Flush(), IsOk());
  std::map<int64_t, bool> marked;
  const auto records = store_->Query({}).value();
  for (const record::Record& record : records) {
    marked[record.id] = record.quarantined;
    EXPECT_EQ(record.quarantine_reason, record.quarantined ? "a reason" : "");
  }
  EXPECT_EQ(marked, (std::map<int64_t, bool>{{a, true}, {b, false}, {c, false}, {d, false}}));
}

TEST_P(RecordConformanceTest, PagesCoverEverythingOnce) {
  std::vector<int64_t> all;
  for (int i = 0; i < 25; ++i) all.push_back(AppendId(ScreenedRecord(100 + i)));
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  std::vector<int64_t> seen;
  for (int64_t after = 0;;) {
    const std::vector<int64_t> page = Ids({.target = kTarget, .page_size = 10, .after_id = after});
    if (page.empty()) break;
    EXPECT_LE(page.size(), 10u);
    seen.insert(seen.end(), page.begin(), page.end());
    after = page.back();
  }
  EXPECT_EQ(seen, all);
  EXPECT_THAT(store_->Query({.page_size = 0}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->Query({.page_size = 1001}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(RecordConformanceTest, TextsAndArtifactsByDigest) {
  const std::string bytes("\0\xff binary \0", 11);
  EXPECT_THAT(PutText(*store_, "t", "first\nline"), IsOk());
  EXPECT_THAT(PutText(*store_, "t", "another spelling"), IsOk());
  EXPECT_THAT(PutText(*store_, "empty", ""), IsOk());
  EXPECT_THAT(PutArtifact(*store_, "a", bytes), IsOk());
  EXPECT_THAT(PutArtifact(*store_, "a", bytes), IsOk());
  Reopen();
  EXPECT_EQ(store_->GetText("t").value(), "first\nline");
  EXPECT_EQ(store_->GetText("empty").value(), "");
  EXPECT_EQ(store_->GetArtifact("a").value(), bytes);
  EXPECT_THAT(store_->GetText("a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->GetArtifact("t"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(PutText(*store_, "", "x"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PutArtifact(*store_, "", "x"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(RecordConformanceTest, LargeArtifactRoundTrips) {
  std::string bytes(20 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); i += 4096) bytes[i] = static_cast<char>(i >> 12);
  ASSERT_THAT(PutArtifact(*store_, "large", bytes), IsOk());
  Reopen();
  EXPECT_TRUE(store_->GetArtifact("large").value() == bytes);
}

}  // namespace
}  // namespace hone::store

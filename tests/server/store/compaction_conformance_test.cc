// The contract of Store for compactions.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::SizeIs;

class CompactionConformanceTest : public StoreConformanceTest {
 protected:
  static constexpr int64_t kOld = 1000;
  static constexpr int64_t kNew = 5000;

  int64_t AppendAt(int64_t time, double latency, const std::string& job = "gone") {
    record::Record record = ScreenedRecord(latency);
    record.created_unix_ms = time;
    record.job_id = job;
    return Append(*store_, record).value().id;
  }
  // Appends an old confirmed record of an artifact.
  int64_t AppendConfirmed(double latency, const std::string& artifact,
                          const std::string& job = "gone") {
    record::Record record = ConfirmedRecord(latency);
    record.created_unix_ms = kOld;
    record.is_default = false;
    record.job_id = job;
    record.result.artifact_digest = artifact;
    record.candidate.decisions = {static_cast<int64_t>(latency)};
    return Append(*store_, record).value().id;
  }
  void PutEnded(const std::string& id, const std::string& state, int64_t time = kOld) {
    JobRow job = PendingJob(id, time);
    job.state = state;
    ASSERT_THAT(PutJob(*store_, job), IsOk());
    for (int64_t i = 0; i < 3; ++i) {
      ASSERT_THAT(AppendEvent(*store_, {id, i, "propose", "payload"}), IsOk());
    }
  }
  std::set<int64_t> Ids() {
    std::set<int64_t> ids;
    const auto records = store_->Query({.page_size = 1000}).value();
    for (const record::Record& record : records) ids.insert(record.id);
    return ids;
  }
  // Compacts and returns the report, which a dry run must have foretold.
  CompactReport CompactAsForetold(CompactOptions options) {
    const size_t records = Ids().size();
    options.dry_run = true;
    const absl::StatusOr<CompactReport> foretold = Compact(*store_, options);
    EXPECT_THAT(foretold, IsOk());
    EXPECT_EQ(Ids().size(), records) << "a dry run changes nothing";
    options.dry_run = false;
    const absl::StatusOr<CompactReport> report = Compact(*store_, options);
    EXPECT_THAT(report, IsOk());
    if (!foretold.ok() || !report.ok()) return {};
    for (const auto& [kind, member] : kRemovedKinds) {
      const RemovedRows& rows = (*report).*member;
      EXPECT_EQ(((*foretold).*member).rows, rows.rows) << kind;
      EXPECT_EQ(((*foretold).*member).bytes, rows.bytes) << kind;
      EXPECT_EQ(rows.bytes > 0, rows.rows > 0) << kind;
    }
    return *report;
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, CompactionConformanceTest, testing::ValuesIn(StoreFactories()),
                         FactoryName);

TEST_P(CompactionConformanceTest, KeepsNewBestAndUnfinishedRecords) {
  PutTextsAndArtifact(*store_);
  const int64_t best = AppendConfirmed(500, kArtifact);  // slow, but confirmed and published
  ASSERT_THAT(PublishBest(*store_, best), IsOk());
  const int64_t fast = AppendAt(kOld, 10), second = AppendAt(kOld, 11);
  AppendAt(kOld, 12);
  record::Record failed = ScreenedRecord();
  failed.created_unix_ms = kOld;
  failed.result.outcome = record::Outcome::kCrash;
  failed.result.latency_ns = 0;
  ASSERT_THAT(Append(*store_, failed), IsOk());
  // A running job keeps everything of its task.
  const int64_t later = absl::ToUnixMillis(absl::Now() + absl::Hours(1));
  ASSERT_THAT(PutJob(*store_, PendingJob("running", later)), IsOk());
  record::Record other = ScreenedRecord(900);
  other.workload_digest = "other";
  other.created_unix_ms = kOld;
  std::set<int64_t> of_running;
  for (const char* const job : {"running", "earlier", "earlier"}) {
    other.job_id = job;
    of_running.insert(Append(*store_, other)->id);
  }
  const int64_t fresh = AppendAt(kNew, 800);

  const CompactOptions options{
      .before = CompactOptions::All(kNew), .keep_best = 2, .keep_sample = 0};
  EXPECT_EQ(CompactAsForetold(options).records.rows, 2);
  std::set<int64_t> kept = of_running;
  kept.insert({best, fast, second, fresh});
  EXPECT_EQ(Ids(), kept);
  EXPECT_THAT(store_->LookupBest({kWorkload, kTarget, 1e-5, ""}), IsOk());
  EXPECT_EQ(store_->GetArtifact(kArtifact).value(), "the artifact");
  EXPECT_EQ(CompactAsForetold(options).records.rows, 0);
}

// A job that runs reads the records of its task again after a restart, also those of other jobs.
TEST_P(CompactionConformanceTest, ATaskThatAJobHasJustBegunIsLeftAlone) {
  ASSERT_THAT(PutJob(*store_, PendingJob("running", kOld)), IsOk());
  ASSERT_THAT(PutText(*store_, kWorkload, "the workload"), IsOk());
  for (int i = 0; i < 5; ++i) AppendAt(kOld, 10 + i);
  const CompactOptions options{
      .before = CompactOptions::All(kNew), .keep_best = 1, .keep_sample = 0};
  EXPECT_EQ(CompactAsForetold(options).records.rows, 0);
  JobRow done = PendingJob("running", kOld);
  done.state = "done";
  ASSERT_THAT(PutJob(*store_, done), IsOk());
  EXPECT_EQ(CompactAsForetold(options).records.rows, 4);
}

TEST_P(CompactionConformanceTest, RemovesUnreferencedJobsTextsAndArtifacts) {
  PutTextsAndArtifact(*store_);
  PutEnded("ended", "done");
  PutEnded("named", "done");
  ASSERT_THAT(PublishBest(*store_, AppendConfirmed(10, kArtifact, "named")), IsOk());
  ASSERT_THAT(PutText(*store_, "nobody's", "text"), IsOk());
  ASSERT_THAT(PutArtifact(*store_, "nobody's", "bytes"), IsOk());
  // The store has just stamped the texts and artifacts with its own clock, which is later than
  // kNew.
  CompactReport report = CompactAsForetold({.before = CompactOptions::All(kNew)});
  EXPECT_EQ(report.jobs.rows, 1);
  EXPECT_EQ(report.events.rows, 6);
  EXPECT_EQ(report.texts.rows, 0);
  EXPECT_THAT(store_->GetJob("ended"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->Events("ended").value(), IsEmpty());
  EXPECT_THAT(store_->GetJob("named"), IsOk()) << "the job of a published best";
  report = CompactAsForetold({.before = CompactOptions::All(INT64_MAX)});
  EXPECT_EQ(report.texts.rows, 1);
  EXPECT_EQ(report.artifacts.rows, 1);
  EXPECT_THAT(store_->GetText(kSpace), IsOk()) << "records are kept with their texts";
  EXPECT_THAT(store_->GetArtifact(kArtifact), IsOk());
}

TEST_P(CompactionConformanceTest, DataToMeasureOnIsKeptWithItsRecords) {
  record::Record record = ScreenedRecord();
  record.created_unix_ms = kOld;
  record.result.inputs = "some data";
  ASSERT_THAT(Append(*store_, record), IsOk());
  ASSERT_THAT(PutArtifact(*store_, "some data", "bytes"), IsOk());
  ASSERT_THAT(PutArtifact(*store_, "other data", "bytes"), IsOk());
  EXPECT_EQ(CompactAsForetold({.before = CompactOptions::All(INT64_MAX)}).artifacts.rows, 1);
  EXPECT_THAT(store_->GetArtifact("some data"), IsOk());
}

TEST_P(CompactionConformanceTest, ReplacedBestsGoAfterTheirTime) {
  PutTextsAndArtifact(*store_);
  ASSERT_THAT(PutArtifact(*store_, "replaced", "slow"), IsOk());
  const int64_t replaced = AppendConfirmed(500, "replaced");
  ASSERT_THAT(PublishBest(*store_, replaced), IsOk());
  int64_t best = 0;
  for (int i = 0; i < 6; ++i) best = AppendConfirmed(100 - i, kArtifact);
  ASSERT_THAT(PublishBest(*store_, best), IsOk());
  CompactOptions options{
      .before = CompactOptions::All(INT64_MAX), .keep_best = 1, .keep_sample = 0};
  options.before.bests = 0;
  CompactReport report = CompactAsForetold(options);
  EXPECT_EQ(report.bests.rows, 0);
  EXPECT_EQ(report.records.rows, 2) << "the four fastest confirmed ones and both bests are kept";
  EXPECT_TRUE(Ids().contains(replaced));
  options.before.bests = INT64_MAX;
  report = CompactAsForetold(options);
  EXPECT_EQ(report.bests.rows, 1);
  EXPECT_EQ(report.records.rows, 1);
  EXPECT_EQ(report.artifacts.rows, 1);
  EXPECT_FALSE(Ids().contains(replaced));
  EXPECT_THAT(store_->GetArtifact("replaced"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(store_->LookupBest({kWorkload, kTarget, 1e-5, ""})->record.id, best);
}

TEST_P(CompactionConformanceTest, KeepsTheRecordsThatJustifyABest) {
  PutTextsAndArtifact(*store_);
  record::Record confirmed = ConfirmedRecord(400);
  confirmed.created_unix_ms = kOld;
  confirmed.is_default = false;
  const int64_t best = Append(*store_, confirmed)->id;
  ASSERT_THAT(PublishBest(*store_, best), IsOk());
  std::set<int64_t> kept = {best};
  for (int i = 1; i <= 3; ++i) {  // other processes and workers that measured it
    confirmed.result.latency_ns = 400 + i;
    kept.insert(Append(*store_, confirmed)->id);
  }
  for (int i = 0; i < 6; ++i) AppendConfirmed(300 + i, kArtifact);  // disturbed, not published
  CompactAsForetold({.before = CompactOptions::All(kNew), .keep_best = 0, .keep_sample = 0});
  EXPECT_THAT(Ids(), IsSupersetOf(kept));
  EXPECT_THAT(Ids(), SizeIs(kept.size() + 4));
}

TEST_P(CompactionConformanceTest, KeepsTheFastestAndAnEvenSampleOfEachTask) {
  std::set<int64_t> fastest;
  for (int i = 0; i < 100; ++i) {
    const int64_t id = AppendAt(kOld, 10 + i);
    if (i < 3) fastest.insert(id);
  }
  record::Record other = ScreenedRecord(5000);
  other.created_unix_ms = kOld;
  other.tolerance = 1e-3;
  const int64_t of_other = Append(*store_, other)->id;
  const CompactOptions options{
      .before = CompactOptions::All(kNew), .keep_best = 3, .keep_sample = 20};
  EXPECT_EQ(CompactAsForetold(options).records.rows, 77);
  const std::set<int64_t> kept = Ids();
  EXPECT_THAT(kept, IsSupersetOf(fastest));
  EXPECT_TRUE(kept.contains(of_other)) << "another tolerance is another task";
  // Of 20 in 97, both halves have some.
  const int64_t middle = *kept.begin() + 50;
  const auto later =
      std::count_if(kept.begin(), kept.end(), [&](int64_t id) { return id > middle; });
  EXPECT_GT(later, 3);
  EXPECT_LT(later, 21);
  EXPECT_EQ(CompactAsForetold(options).records.rows, 0);
  EXPECT_EQ(Ids(), kept) << "the sample stays the same";
}

TEST_P(CompactionConformanceTest, JobsThatCanBeResumedKeepWhatTheyNeed) {
  PutEnded("cancelled", "cancelled", kNew);
  PutEnded("failed", "failed", kOld);
  PutEnded("done", "done", kOld);
  for (int i = 0; i < 4; ++i) AppendAt(kOld, 10 + i, i == 0 ? "cancelled" : "done");
  CompactOptions options{.before = CompactOptions::All(kNew), .keep_best = 1, .keep_sample = 0};
  options.before.jobs = kOld;
  CompactReport report = CompactAsForetold(options);
  EXPECT_EQ(report.events.rows, 3) << "of the job that is done";
  EXPECT_EQ(report.jobs.rows, 0);
  EXPECT_EQ(report.records.rows, 0) << "the resumed job goes on with the same knowledge";
  EXPECT_THAT(store_->Events("cancelled").value(), SizeIs(3));
  EXPECT_THAT(store_->Events("failed").value(), SizeIs(3));
  options.before.jobs = kNew + 2;
  report = CompactAsForetold(options);
  EXPECT_EQ(report.jobs.rows, 3);
  EXPECT_EQ(report.events.rows, 6);
  EXPECT_EQ(report.records.rows, 3);
}

TEST_P(CompactionConformanceTest, TheTasksOfANetworkStayWithIt) {
  ASSERT_THAT(PutJob(*store_, PendingJob("7", kOld)), IsOk());
  PutEnded("7.0", "done");
  EXPECT_EQ(CompactAsForetold({.before = {.jobs = kNew}}).jobs.rows, 0);
  JobRow done = PendingJob("7", kOld);
  done.state = "done";
  ASSERT_THAT(PutJob(*store_, done), IsOk());
  PutEnded("8", "done");
  EXPECT_EQ(CompactAsForetold({.before = {.jobs = kNew}}).jobs.rows,
            GetParam().name == "sqlite" ? 2 : 3)
      << "a file keeps the last number";
}

// Its tasks that are done may be opened again.
TEST_P(CompactionConformanceTest, TheTasksOfANetworkThatCanBeResumedStay) {
  PutEnded("9", "cancelled", kNew);
  PutEnded("9.0", "done", kOld);
  for (int i = 0; i < 3; ++i) AppendAt(kOld, 10 + i, "9.0");
  CompactOptions options{.before = CompactOptions::All(kNew), .keep_best = 1, .keep_sample = 0};
  CompactReport report = CompactAsForetold(options);
  EXPECT_EQ(report.events.rows, 0);
  EXPECT_EQ(report.jobs.rows, 0);
  EXPECT_EQ(report.records.rows, 0);
  options.before.jobs = kNew + 2;
  report = CompactAsForetold(options);
  EXPECT_EQ(report.events.rows, GetParam().name == "sqlite" ? 3 : 6)
      << "a file keeps the last number";
  EXPECT_EQ(report.records.rows, 2);
}

TEST_P(CompactionConformanceTest, AStoreThatIsTooLargeLosesItsOldestRecords) {
  for (int i = 0; i < 20; ++i) AppendAt(kOld + i, 10 + i);
  const int64_t spared = AppendAt(kNew, 1000);
  CompactOptions options{.keep_best = 1,
                         .keep_sample = 0,
                         .most_bytes = int64_t{1} << 40,
                         .spare_since_unix_ms = kNew};
  EXPECT_EQ(CompactAsForetold(options).records.rows, 0) << "it is not too large";
  options.most_bytes = 1;
  EXPECT_EQ(CompactAsForetold(options).records.rows, 19);
  EXPECT_TRUE(Ids().contains(spared));
  EXPECT_THAT(Ids(), SizeIs(2));
}

TEST_P(CompactionConformanceTest, NumbersOfRemovedJobsAreNotUsedAgain) {
  int64_t last = 0;
  for (int i = 0; i < 2; ++i) {
    last = store_->NextJobNumber().value();
    PutEnded(absl::StrCat(last), "done");
  }
  EXPECT_GE(CompactAsForetold({.before = CompactOptions::All(kNew)}).jobs.rows, 1);
  EXPECT_THAT(store_->GetJob(absl::StrCat(last - 1)), StatusIs(absl::StatusCode::kNotFound));
  Reopen();
  EXPECT_GT(store_->NextJobNumber().value(), last);
}

TEST_P(CompactionConformanceTest, WithoutATimeNothingIsRemoved) {
  for (int i = 0; i < 50; ++i) AppendAt(kOld, 10 + i);
  EXPECT_EQ(CompactAsForetold({.keep_best = 1, .keep_sample = 0}).records.rows, 0);
  EXPECT_THAT(Ids(), SizeIs(50));
  EXPECT_THAT(Compact(*store_, {.keep_best = -1}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Compact(*store_, {.before = {.jobs = -1}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      store_->Compact({.before = CompactOptions::All(kNew), .keep_best = 1}, [] { return true; }),
      StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(CompactionConformanceTest, HealthHasTheSizeOfTheStore) {
  const StoreHealth health = store_->Health();
  EXPECT_GT(health.size_bytes, 0);
  EXPECT_NE(health.check, StoreHealth::Check::kDamaged) << store_->CheckWritable();
  EXPECT_THAT(store_->CheckSpace(), IsOk());
  EXPECT_THAT(store_->Leading(), IsOk());
}

}  // namespace
}  // namespace hone::store

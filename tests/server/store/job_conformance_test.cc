// The contract of Store for jobs and their events.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

class JobConformanceTest : public StoreConformanceTest {};
INSTANTIATE_TEST_SUITE_P(Stores, JobConformanceTest, testing::ValuesIn(StoreFactories()),
                         FactoryName);

void ExpectEqualJobs(const JobRow& a, const JobRow& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.request_id, b.request_id);
  EXPECT_EQ(a.request, b.request);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.error, b.error);
  EXPECT_EQ(a.summary, b.summary);
  EXPECT_EQ(a.created_unix_ms, b.created_unix_ms);
  EXPECT_EQ(a.updated_unix_ms, b.updated_unix_ms);
  EXPECT_EQ(a.owner, b.owner);
  EXPECT_EQ(a.priority, b.priority);
}

TEST_P(JobConformanceTest, AJobIsReplacedByIdAndKeepsItsEvents) {
  JobRow job = PendingJob("a");
  ASSERT_THAT(PutJob(*store_, job), IsOk());
  ASSERT_THAT(AppendEvent(*store_, {"a", 0, "propose", "payload"}), IsOk());
  job.state = "failed";
  job.error = "the worker caught fire";
  job.summary = "";
  job.updated_unix_ms = 99;
  ASSERT_THAT(PutJob(*store_, job), IsOk());
  Reopen();
  ExpectEqualJobs(store_->GetJob("a").value(), job);
  ExpectEqualJobs(store_->GetJobByRequest("request of a").value(), job);
  EXPECT_EQ(store_->Events("a").value().size(), 1u);
}

TEST_P(JobConformanceTest, UnknownJobsAreNotFound) {
  EXPECT_THAT(store_->GetJob("a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->GetJobByRequest("a"), StatusIs(absl::StatusCode::kNotFound));
  JobRow anonymous = PendingJob("a");
  anonymous.request_id = "";
  ASSERT_THAT(PutJob(*store_, anonymous), IsOk());
  EXPECT_THAT(store_->GetJobByRequest(""), StatusIs(absl::StatusCode::kNotFound));
  anonymous.id = "b";
  EXPECT_THAT(PutJob(*store_, anonymous), IsOk()) << "two jobs without a request id";
}

TEST_P(JobConformanceTest, MalformedJobsAreRefused) {
  ASSERT_THAT(PutJob(*store_, PendingJob("a")), IsOk());
  JobRow same_request = PendingJob("b");
  same_request.request_id = "request of a";
  EXPECT_THAT(PutJob(*store_, same_request), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(PutJob(*store_, PendingJob("")), StatusIs(absl::StatusCode::kInvalidArgument));
  JobRow strange = PendingJob("c");
  strange.state = "asleep";
  EXPECT_THAT(PutJob(*store_, strange), StatusIs(absl::StatusCode::kInvalidArgument));
  JobRow urgent = PendingJob("c");
  urgent.priority = "urgent";
  EXPECT_THAT(PutJob(*store_, urgent), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(store_->ListJobs(10, "").value().size(), 1u);
}

TEST_P(JobConformanceTest, EveryStateRoundTrips) {
  for (const char* const state :
       {"pending", "running", "confirming", "done", "cancelled", "failed"}) {
    JobRow job = PendingJob("a");
    job.state = state;
    ASSERT_THAT(PutJob(*store_, job), IsOk());
    EXPECT_EQ(store_->GetJob("a").value().state, state);
  }
}

TEST_P(JobConformanceTest, JobsAreListedNewestFirstInPages) {
  // Every two jobs have the same age: a page can end between two jobs of equal age.
  std::vector<std::string> expected;
  for (int i = 0; i < 10; ++i) {
    const std::string id = absl::StrCat("job ", i);
    ASSERT_THAT(PutJob(*store_, PendingJob(id, 100 + i / 2)), IsOk());
    expected.insert(expected.begin(), id);
  }
  std::vector<std::string> seen;
  for (std::string after;;) {
    HONE_ASSERT_OK_AND_ASSIGN(const std::vector<JobRow> page, store_->ListJobs(3, after));
    if (page.empty()) break;
    EXPECT_LE(page.size(), 3u);
    for (const JobRow& job : page) seen.push_back(job.id);
    after = seen.back();
  }
  EXPECT_EQ(seen, expected);
  EXPECT_THAT(store_->ListJobs(0, ""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->ListJobs(1001, ""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->ListJobs(3, "nobody"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(JobConformanceTest, JobNumbersAreUnique) {
  const int64_t first = store_->NextJobNumber().value();
  EXPECT_GT(first, 0);
  EXPECT_GT(store_->NextJobNumber().value(), first);
  const int64_t last = store_->NextJobNumber().value();
  ASSERT_THAT(PutJob(*store_, PendingJob(absl::StrCat(last))), IsOk());
  Reopen();
  EXPECT_GT(store_->NextJobNumber().value(), last);
}

TEST_P(JobConformanceTest, UnfinishedJobsAreListedById) {
  for (const char* const id : {"b", "ended", "a"}) {
    JobRow job = PendingJob(id);
    if (id == std::string("ended")) job.state = "done";
    ASSERT_THAT(PutJob(*store_, job), IsOk());
  }
  EXPECT_THAT(
      store_->UnfinishedJobs().value(),
      testing::ElementsAre(testing::Field(&JobRow::id, "a"), testing::Field(&JobRow::id, "b")));
}

// A disk that is briefly full may reject the proposal of a job and then accept its results.
TEST_P(JobConformanceTest, RejectsResultsOfAnUnstoredEvent) {
  ASSERT_THAT(PutJob(*store_, PendingJob("a")), IsOk());
  ASSERT_THAT(AppendEvent(*store_, {"a", 0, "propose", "x"}), IsOk());
  EXPECT_THAT(
      Append(*store_, ScreenedRecord(), {"a", 1}),
      StatusIs(absl::StatusCode::kFailedPrecondition, testing::HasSubstr("event 1 is not stored")));
  EXPECT_EQ(store_->Query({})->size(), 0u);
  EXPECT_THAT(Append(*store_, ScreenedRecord(), {"a", 0}), IsOk());
  ASSERT_THAT(AppendEvent(*store_, {"a", 1, "tell", "y"}), IsOk());
  EXPECT_THAT(Append(*store_, ScreenedRecord(), {"a", 1}), IsOk());
}

TEST_P(JobConformanceTest, WorkerStatesAreKeptUntilCleared) {
  const WorkerStanding drained{.worker_id = "b", .drained = true, .since_unix_ms = 7};
  const WorkerStanding removed{
      .worker_id = "a", .refused = "an administrator", .removed = true, .since_unix_ms = 8};
  const WorkerStanding flagged{.worker_id = "c",
                               .drained = true,
                               .refused = std::string("it said \0 and \xff", 15),
                               .since_unix_ms = 9};
  EXPECT_THAT(store_->Standings().value(), testing::IsEmpty());
  for (const WorkerStanding& standing : {drained, removed, flagged}) {
    ASSERT_THAT(PutStanding(*store_, standing), IsOk());
  }
  Reopen();
  EXPECT_THAT(store_->Standings().value(), testing::ElementsAre(removed, drained, flagged));
  WorkerStanding resumed = flagged;
  resumed.refused.clear();
  ASSERT_THAT(PutStanding(*store_, resumed), IsOk());
  ASSERT_THAT(PutStanding(*store_, {.worker_id = "a"}), IsOk());
  ASSERT_THAT(PutStanding(*store_, {.worker_id = "never heard of"}), IsOk());
  EXPECT_THAT(store_->Standings().value(), testing::ElementsAre(drained, resumed));
  EXPECT_THAT(PutStanding(*store_, {.drained = true}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(JobConformanceTest, RemembersWorkersForSomeDays) {
  const auto put = [&](const KnownWorker& worker) {
    absl::Status result = absl::UnknownError("not done");
    store_->PutWorker(worker, [&](const absl::Status& status) { result = status; });
    (void)store_->Flush();  // it gives the same error
    return result;
  };
  const int64_t begin = int64_t{1'700'000'000'000};
  const KnownWorker board{"pi", "boards-* on board", "board", "arm64-x", false, true, begin};
  KnownWorker builder{"b", "", "desk", "x86-y", true, false, begin + 1};
  EXPECT_THAT(store_->Workers().value(), testing::IsEmpty());
  ASSERT_THAT(put(board), IsOk());
  ASSERT_THAT(put(builder), IsOk());
  Reopen();
  EXPECT_THAT(store_->Workers().value(), testing::ElementsAre(builder, board));
  builder.host = "another";
  builder.seen_unix_ms = begin + Store::kWorkerMemoryMs;
  ASSERT_THAT(put(builder), IsOk());
  EXPECT_THAT(store_->Workers().value(), testing::ElementsAre(builder));
  EXPECT_THAT(put({}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(JobConformanceTest, AStandingReplacesTheOneBefore) {
  ASSERT_THAT(PutStanding(*store_, {.worker_id = "w", .drained = true, .since_unix_ms = 1}),
              IsOk());
  WorkerStanding standing{.worker_id = "w",
                          .identity = "w-*",
                          .drained = true,
                          .refused = "it lies",
                          .since_unix_ms = 2};
  ASSERT_THAT(PutStanding(*store_, standing), IsOk());
  EXPECT_THAT(store_->Standings().value(), testing::ElementsAre(standing));
  standing.drained = false;
  standing.refused = "go";
  standing.removed = true;
  standing.since_unix_ms = 3;
  ASSERT_THAT(PutStanding(*store_, standing), IsOk());
  EXPECT_THAT(store_->Standings().value(), testing::ElementsAre(standing));
  EXPECT_THAT(PutStanding(*store_, {.drained = true}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(PutStanding(*store_, {.worker_id = "w"}), IsOk());
  EXPECT_THAT(store_->Standings().value(), testing::IsEmpty());
}

// Names are bound parameters: SQL in a name is stored as text, and the name can be looked up.
TEST_P(JobConformanceTest, SqlInNamesIsText) {
  const std::string name = "x'); DROP TABLE record; DROP TABLE job; --\" OR 1=1";
  JobRow job = PendingJob(name);
  job.request_id = name;
  job.owner = name;
  ASSERT_THAT(PutJob(*store_, job), IsOk());
  EXPECT_EQ(store_->GetJobByRequest(name).value().id, name);
  ASSERT_THAT(AppendEvent(*store_, {name, 0, name, name}), IsOk());
  EXPECT_EQ(store_->Events(name)->size(), 1u);
  EXPECT_EQ(store_->UnfinishedJobs()->size(), 1u);
  ASSERT_THAT(PutText(*store_, name, name), IsOk());
  EXPECT_EQ(store_->GetText(name).value(), name);
  record::Record record = ScreenedRecord();
  record.target = record.op = record.job_id = record.workload_digest = name;
  record.environment.cpu = name;
  ASSERT_THAT(Append(*store_, record, {name, 0}), IsOk());
  ASSERT_THAT(Append(*store_, ScreenedRecord()), IsOk());
  EXPECT_EQ(
      store_->Query({.workload_digest = name, .target = name, .op = name, .job_id = name})->size(),
      1u)
      << "the filter matches the name exactly";
  ASSERT_THAT(PutModel(*store_, {.key = {name, name, name, name}, .bytes = name}), IsOk());
  EXPECT_EQ(store_->GetModel({name, name, name, name})->bytes, name);
  ASSERT_THAT(PutStanding(*store_, {.worker_id = name, .refused = name}), IsOk());
  EXPECT_EQ(store_->Standings()->size(), 1u);
  EXPECT_THAT(store_->LookupBest({.workload_digest = name, .target = name, .policy = name}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(store_->Query({})->size(), 2u);
}

TEST_P(JobConformanceTest, EventsAreNumberedWithoutGaps) {
  ASSERT_THAT(PutJob(*store_, PendingJob("a")), IsOk());
  ASSERT_THAT(PutJob(*store_, PendingJob("b")), IsOk());
  EXPECT_THAT(AppendEvent(*store_, {"a", 1, "tell", "x"}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(AppendEvent(*store_, {"a", 0, "propose", std::string("\0x", 2)}), IsOk());
  EXPECT_THAT(AppendEvent(*store_, {"b", 0, "propose", "of b"}), IsOk());
  EXPECT_THAT(AppendEvent(*store_, {"a", 1, "tell", "y"}), IsOk());
  EXPECT_THAT(AppendEvent(*store_, {"a", 1, "tell", "z"}),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(AppendEvent(*store_, {"a", 3, "tell", "z"}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(AppendEvent(*store_, {"nobody", 0, "tell", "z"}),
              StatusIs(absl::StatusCode::kNotFound));
  Reopen();
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<JobEvent> events, store_->Events("a"));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].job_id, "a");
  EXPECT_EQ(events[0].number, 0);
  EXPECT_EQ(events[0].kind, "propose");
  EXPECT_EQ(events[0].payload, std::string("\0x", 2));
  EXPECT_EQ(events[1].number, 1);
  EXPECT_EQ(events[1].kind, "tell");
  EXPECT_THAT(store_->Events("nobody").value(), testing::IsEmpty());
}

}  // namespace
}  // namespace hone::store

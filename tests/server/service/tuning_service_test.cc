// The client API over a Unix socket.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/connection/connection.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/job_convert.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Stub = v1::TuningService::Stub;

class TuningServiceTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override { ASSERT_THAT(Start(), IsOk()); }
  v1::Job Tune(int64_t trials, const std::string& request_id = "") {
    v1::Job job;
    const grpc::Status status = Call(*tuning, &Stub::CreateJob, Request(trials, request_id), &job);
    EXPECT_THAT(status, IsOk()) << status.error_message();
    return WaitForEnd(job.id());
  }
};

TEST_F(TuningServiceTest, TunesAndReturnsTheBestArtifact) {
  RemoteWorker worker(channel, "w");
  const v1::Job job = Tune(150);
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.trials(), 150);
  EXPECT_EQ(job.outcomes().at("ok"), 150);
  EXPECT_EQ(job.target(), "t");
  EXPECT_EQ(job.request().target(), "native");
  EXPECT_NEAR(job.default_schedule().record().result().latency_ns(), 1000, 0.1);
  EXPECT_EQ(job.best().peak_gflops(), 50);

  v1::Best best;
  ASSERT_THAT(Call(*tuning, &Stub::LookupBest, BestOf(), &best), IsOk());
  EXPECT_EQ(best.record().id(), job.best().record().id());
  EXPECT_EQ(best.record().policy().name(), "confirm");
  EXPECT_EQ(best.record().environment().cpu(), "fake cpu");
  EXPECT_EQ(best.trace(), job.best().trace());

  v1::GetArtifactRequest get;
  get.set_digest(best.record().result().artifact_digest());
  grpc::ClientContext context;
  auto reader = tuning->GetArtifact(&context, get);
  v1::ArtifactChunk chunk;
  std::string bytes;
  while (reader->Read(&chunk)) bytes += chunk.data();
  ASSERT_THAT(reader->Finish(), IsOk());
  EXPECT_EQ(Sha256Of(bytes), get.digest());
}

// Another worker of the target has measured a larger peak.
TEST_F(TuningServiceTest, EveryAnswerHasTheLargestPeakOfTheTarget) {
  v1::Job job;
  {
    RemoteWorker worker(channel, "w");
    job = Tune(20);
    ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  }
  v1::SynchronizeRequest other = RemoteWorker::Hello("another");
  other.mutable_capabilities()->set_peak_gflops(77);
  v1::SynchronizeResponse reply;
  ASSERT_THAT(Call(*working, &v1::WorkerService::Stub::Synchronize, other, &reply), IsOk());
  v1::Best best;
  ASSERT_THAT(Call(*tuning, &Stub::LookupBest, BestOf(), &best), IsOk());
  EXPECT_EQ(best.record().id(), job.best().record().id());
  EXPECT_EQ(best.peak_gflops(), 77);
  ASSERT_THAT(Call(*tuning, &Stub::GetJob, JobOf(job.id()), &job), IsOk());
  EXPECT_EQ(job.best().peak_gflops(), 77);
  EXPECT_EQ(job.default_schedule().peak_gflops(), 77);
}

// The worker is not registered at the server any more.
TEST_F(TuningServiceTest, ThePeakIsStoredWithTheJob) {
  {
    RemoteWorker worker(channel, "w");
    ASSERT_EQ(Tune(20).state(), v1::JOB_STATE_DONE);
  }
  Stop();
  ASSERT_THAT(Start(), IsOk());
  v1::Best best;
  ASSERT_THAT(Call(*tuning, &Stub::LookupBest, BestOf(), &best), IsOk());
  EXPECT_EQ(best.peak_gflops(), 50);
}

TEST_F(TuningServiceTest, GivenCandidateIsReportedWithItsResult) {
  RemoteWorker worker(channel, "w");
  v1::CreateJobRequest request = Request(100);
  request.set_space("2,2,2");
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, request, &job), IsOk());
  job = WaitForEnd(job.id());
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.request().space(), "2,2,2");
  EXPECT_EQ(job.trials(), 1);
  EXPECT_EQ(job.given().record().result().outcome(), v1::OUTCOME_OK);
  EXPECT_EQ(job.given().record().candidate().decisions_size(), 3);
}

TEST_F(TuningServiceTest, WatchingShowsProgressAndEndsWithTheJob) {
  RemoteWorker worker(channel, "w");
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, Request(200), &job), IsOk());
  const absl::Time begin = absl::Now();
  grpc::ClientContext context;
  auto reader = tuning->WatchJob(&context, JobOf(job.id()));
  v1::Job state;
  int64_t trials = -1;
  int messages = 0;
  while (reader->Read(&state)) {
    EXPECT_GE(state.trials(), trials);
    trials = state.trials();
    ++messages;
  }
  ASSERT_THAT(reader->Finish(), IsOk());
  EXPECT_EQ(state.state(), v1::JOB_STATE_DONE) << state.error();
  EXPECT_EQ(state.trials(), 200);
  EXPECT_LE(messages, 3 + (absl::Now() - begin) / WatchHub::kInterval);
}

TEST_F(TuningServiceTest, CancelKeepsMeasurements) {
  RemoteWorker worker(channel, "w");
  v1::CreateJobRequest endless = Request(0);
  endless.set_max_time_ms(3'600'000);
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, endless, &job), IsOk());
  const v1::GetJobRequest get = JobOf(job.id());
  ASSERT_TRUE(Eventually(
      [&] { return Call(*tuning, &Stub::GetJob, get, &job).ok() && job.trials() > 20; }));
  worker.slow = 1;  // keeps a fast machine from measuring the whole space
  v1::CancelJobRequest cancel;
  cancel.set_id(job.id());
  cancel.set_confirm_finalists(true);
  ASSERT_THAT(Call(*tuning, &Stub::CancelJob, cancel, &job), IsOk());
  worker.slow = 0;
  job = WaitForEnd(job.id());
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.best().record().policy().name(), "confirm");
}

TEST_F(TuningServiceTest, ARepeatedRequestIsOneJob) {
  RemoteWorker worker(channel, "w");
  const v1::Job first = Tune(10, "same");
  EXPECT_EQ(Tune(10, "same").id(), first.id());
  EXPECT_NE(Tune(10, "other").id(), first.id());
}

TEST_F(TuningServiceTest, ListsArePaged) {
  RemoteWorker worker(channel, "w");
  const v1::Job job = Tune(30);
  Tune(10);
  std::set<int64_t> ids;
  v1::ListRecordsRequest request;
  request.set_page_size(7);
  do {
    v1::ListRecordsResponse page;
    ASSERT_THAT(Call(*tuning, &Stub::ListRecords, request, &page), IsOk());
    EXPECT_LE(page.records_size(), 7);
    for (const v1::Record& record : page.records()) EXPECT_TRUE(ids.insert(record.id()).second);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_GE(ids.size(), 40u);

  request.set_newest_first(true);
  std::vector<int64_t> falling;
  do {
    v1::ListRecordsResponse page;
    ASSERT_THAT(Call(*tuning, &Stub::ListRecords, request, &page), IsOk());
    for (const v1::Record& record : page.records()) falling.push_back(record.id());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(falling, std::vector<int64_t>(ids.rbegin(), ids.rend()));
  request.set_page_token("0");
  v1::ListRecordsResponse none;
  EXPECT_EQ(Call(*tuning, &Stub::ListRecords, request, &none).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT)
      << "a token of zero would repeat the first page";

  v1::ListJobsRequest jobs;
  jobs.set_page_size(1);
  v1::ListJobsResponse page;
  ASSERT_THAT(Call(*tuning, &Stub::ListJobs, jobs, &page), IsOk());
  ASSERT_EQ(page.jobs_size(), 1);
  EXPECT_NE(page.jobs(0).id(), job.id()) << "newest first";
  jobs.set_page_token(page.next_page_token());
  ASSERT_THAT(Call(*tuning, &Stub::ListJobs, jobs, &page), IsOk());
  EXPECT_EQ(page.jobs(0).id(), job.id());

  v1::ListWorkersResponse workers;
  ASSERT_THAT(Call(*tuning, &Stub::ListWorkers, v1::ListWorkersRequest(), &workers), IsOk());
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_EQ(workers.workers(0).id(), "w");
  EXPECT_TRUE(workers.workers(0).connected());
  EXPECT_THAT(workers.workers(0).environment(), HasSubstr("fake cpu"));
}

TEST_F(TuningServiceTest, RecordsAreSortedByWhatAnIndexServes) {
  RemoteWorker worker(channel, "w");
  const v1::Job job = Tune(30);
  v1::ListRecordsRequest request;
  request.set_page_size(7);
  request.set_order(v1::RECORD_ORDER_LATENCY);
  std::vector<double> latencies;
  std::set<int64_t> ids;
  do {
    v1::ListRecordsResponse page;
    ASSERT_THAT(Call(*tuning, &Stub::ListRecords, request, &page), IsOk());
    EXPECT_EQ(page.orders_size(), 7) << "without filters, every order is possible";
    for (const v1::Record& record : page.records()) {
      EXPECT_TRUE(ids.insert(record.id()).second);
      latencies.push_back(record.result().latency_ns());
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_GE(latencies.size(), 30u);
  EXPECT_TRUE(std::is_sorted(latencies.begin(), latencies.end()));

  request.set_job_id(job.id());
  v1::ListRecordsResponse page;
  grpc::Status refused = Call(*tuning, &Stub::ListRecords, request, &page);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("no index sorts records like this"));
  request.clear_order();
  ASSERT_THAT(Call(*tuning, &Stub::ListRecords, request, &page), IsOk());
  EXPECT_EQ(page.orders_size(), 1) << "the records of a job are sorted by their numbers only";
  request.clear_job_id();
  for (const auto order : {v1::RECORD_ORDER_LATENCY, v1::RECORD_ORDER_OPERATOR}) {
    request.set_order(order);
    for (const char* const token : {"7", ":", "x:1", "0:1"}) {
      request.set_page_token(token);
      refused = Call(*tuning, &Stub::ListRecords, request, &page);
      EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << token;
    }
  }
}

TEST_F(TuningServiceTest, RecordsWithLongDetailsAreListedInShortPages) {
  Stop();
  std::unique_ptr<store::Store> store = *store::OpenSqliteStore(folder + "/hone.db");
  for (int trial = 0; trial < 400; ++trial) {
    record::Record record{.workload_digest = "w", .op = "op", .target = "t"};
    record.trial = trial;
    record.result.outcome = record::Outcome::kCompileError;
    record.result.detail = std::string(60 << 10, 'x');
    store->Append(std::move(record), [](const absl::StatusOr<record::Record>& stored) {
      EXPECT_THAT(stored, IsOk());
    });
  }
  ASSERT_THAT(store->Flush(), IsOk());
  ASSERT_THAT(StartWith(std::move(store)), IsOk());
  for (const bool newest_first : {false, true}) {
    v1::ListRecordsRequest request;
    request.set_page_size(1000);
    request.set_newest_first(newest_first);
    std::vector<int64_t> trials;
    int pages = 0;
    do {
      v1::ListRecordsResponse page;
      const grpc::Status status = Call(*tuning, &Stub::ListRecords, request, &page);
      ASSERT_THAT(status, IsOk()) << status.error_message();
      for (const v1::Record& record : page.records()) trials.push_back(record.trial());
      request.set_page_token(page.next_page_token());
      ++pages;
    } while (!request.page_token().empty());
    EXPECT_EQ(trials.size(), 400u);
    if (newest_first) std::reverse(trials.begin(), trials.end());
    for (size_t i = 0; i < trials.size(); ++i) EXPECT_EQ(trials[i], static_cast<int64_t>(i));
    EXPECT_EQ(pages, 6);
  }
}

TEST_F(TuningServiceTest, InvalidRequestNamesTheField) {
  struct Case {
    const char* field;
    std::function<void(v1::CreateJobRequest&)> spoil;
  };
  const Case cases[] = {
      {"1:1", [](auto& r) { r.set_workload("nonsense"); }},
      {"workload", [](auto& r) { r.clear_workload(); }},
      {"target", [](auto& r) { r.clear_target(); }},
      {"max_trials", [](auto& r) { r.set_max_trials(-1); }},
      {"a job needs a limit", [](auto& r) { r.set_max_trials(0); }},
      {"max_time_ms", [](auto& r) { r.set_max_time_ms(-5); }},
      {"strategy", [](auto& r) { r.set_strategy("magic"); }},
      {"cost_model", [](auto& r) { r.set_cost_model("oracle"); }},
      {"tolerance", [](auto& r) { r.set_tolerance(-1); }},
      {"tolerance", [](auto& r) { r.set_tolerance(std::nan("")); }},
      {"space", [](auto& r) { r.set_space("nonsense"); }},
      {"feature_set", [](auto& r) { r.set_feature_set("nonsense"); }},
      {"request_id", [](auto& r) { r.set_request_id(std::string(1000, 'x')); }},
  };
  for (const Case& c : cases) {
    v1::CreateJobRequest request = Request(10);
    c.spoil(request);
    const grpc::Status status = Create(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << c.field;
    EXPECT_THAT(status.error_message(), HasSubstr(FieldWords(c.field)));
    request.set_validate_only(true);
    EXPECT_EQ(Create(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << c.field;
  }
  v1::CreateJobRequest request = Request(10);
  request.set_strategy("magic");
  EXPECT_THAT(Create(request).error_message(), HasSubstr("picky"))
      << "the message lists the known names";
}

TEST_F(TuningServiceTest, NearestAnswersForAnUnseenShape) {
  RemoteWorker worker(channel, "w");
  const v1::Job job = Tune(150);
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  v1::LookupBestRequest lookup = BestOf("fake op 3");  // same name as "fake op 12", but smaller
  v1::Best best;
  EXPECT_EQ(Call(*tuning, &Stub::LookupBest, lookup, &best).error_code(),
            grpc::StatusCode::NOT_FOUND)
      << "only on request";
  lookup.set_nearest(true);
  const grpc::Status status = Call(*tuning, &Stub::LookupBest, lookup, &best);
  ASSERT_THAT(status, IsOk()) << status.error_message();
  ASSERT_TRUE(best.has_nearest());
  EXPECT_EQ(best.nearest().workload(), "fake op 12");
  EXPECT_DOUBLE_EQ(best.nearest().distance(), 2);
  EXPECT_EQ(best.nearest().record().id(), job.best().record().id());
  EXPECT_EQ(best.workload(), "fake op 3");
  EXPECT_EQ(best.record().result().latency_ns(), 0);
  EXPECT_EQ(best.record().result().artifact_digest(), "");
  EXPECT_EQ(best.gflops(), 0);
  for (const int64_t decision : best.record().candidate().decisions()) EXPECT_LT(decision, 3);
  EXPECT_THAT(best.trace(), HasSubstr("space of op searched ["));
  // A measured best always takes precedence over the nearest one.
  lookup.set_workload("fake op 12");
  ASSERT_THAT(Call(*tuning, &Stub::LookupBest, lookup, &best), IsOk());
  EXPECT_FALSE(best.has_nearest());
  EXPECT_EQ(best.record().id(), job.best().record().id());
  lookup.set_workload("fake unrelated 12");
  EXPECT_EQ(Call(*tuning, &Stub::LookupBest, lookup, &best).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(TuningServiceTest, RevalidationConfirmsStoredCandidates) {
  RemoteWorker worker(channel, "w");
  const v1::Job tuned = Tune(150);
  ASSERT_EQ(tuned.state(), v1::JOB_STATE_DONE) << tuned.error();
  v1::CreateJobRequest request = Request(1, "again");
  request.set_revalidate(2);
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, request, &job), IsOk());
  job = WaitForEnd(job.id());
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.trials(), 2);
  EXPECT_EQ(job.request().revalidate(), 2);
  EXPECT_GT(job.best().record().id(), tuned.best().record().id());
  request.set_request_id("by digest");
  request.clear_workload();
  request.set_workload_digest(tuned.workload_digest());
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, request, &job), IsOk());
  job = WaitForEnd(job.id());
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.workload(), tuned.workload());
  request.set_request_id("unknown");
  request.set_workload_digest(std::string(32, '0'));
  EXPECT_EQ(Create(request).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Create(request).error_message(), HasSubstr("the workload is not in the store"));
  request.set_workload("fake op 12");
  EXPECT_EQ(Create(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "text and digest";
  request.clear_workload_digest();
  request.set_request_id("too many");
  request.set_revalidate(1000);
  EXPECT_THAT(Create(request).error_message(), HasSubstr("revalidate"));
  request.set_revalidate(2);
  request.set_space("1,2,3");
  EXPECT_THAT(Create(request).error_message(), HasSubstr("space"));
  request.clear_space();
  request.set_unpublished(true);
  EXPECT_THAT(Create(request).error_message(), HasSubstr("unpublished"));
}

TEST_F(TuningServiceTest, MissingJobIsNotFound) {
  v1::Job job;
  const v1::GetJobRequest get = JobOf("4711");
  EXPECT_EQ(Call(*tuning, &Stub::GetJob, get, &job).error_code(), grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext watch;
  auto reader = tuning->WatchJob(&watch, get);
  EXPECT_FALSE(reader->Read(&job));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  v1::Best best;
  EXPECT_EQ(Call(*tuning, &Stub::LookupBest, BestOf(), &best).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::GetArtifactRequest artifact;
  artifact.set_digest(std::string(64, '0'));
  grpc::ClientContext context;
  v1::ArtifactChunk chunk;
  auto chunks = tuning->GetArtifact(&context, artifact);
  EXPECT_FALSE(chunks->Read(&chunk));
  EXPECT_EQ(chunks->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  v1::ListRecordsRequest list;
  list.set_page_token("x");
  v1::ListRecordsResponse page;
  EXPECT_EQ(Call(*tuning, &Stub::ListRecords, list, &page).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(TuningServiceTest, JobMayBeCreatedBeforeItsWorkerConnects) {
  std::optional<RemoteWorker> worker;
  std::thread late([&] { worker.emplace(channel, "late"); });
  const v1::Job job = Tune(10);
  late.join();
  EXPECT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
}

// The explanations themselves: tests/server/service/explanation_test.cc.
TEST_F(TuningServiceTest, WhatCannotBeExplainedIsRefusedWithTheReason) {
  v1::ExplainScheduleRequest request;
  v1::Explanation explanation;
  const auto explain = [&] { return Call(*tuning, &Stub::ExplainSchedule, request, &explanation); };
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_record(4711);
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(explain().error_message(), HasSubstr("there is no record 4711"));
  request.set_trace("trace 1");
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "both are given";
  request.set_record(0);
  request.set_target("unknown-key");
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  request.set_target("no target");
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_record(-1);
  request.set_trace("");
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(TuningServiceTest, ValidateOnlyCreatesNoJob) {
  v1::CreateJobRequest request = Request(10);
  request.set_validate_only(true);
  EXPECT_THAT(Create(request), IsOk());
  v1::ListJobsResponse page;
  ASSERT_THAT(Call(*tuning, &Stub::ListJobs, v1::ListJobsRequest(), &page), IsOk());
  EXPECT_EQ(page.jobs_size(), 0);
}

TEST_F(TuningServiceTest, DraftedScheduleIsTheFirstTrialOfADefaultJob) {
  v1::DraftScheduleRequest request;
  request.set_workload("fake op 12");
  request.set_target("target words");
  v1::DraftedSchedule drafted;
  const grpc::Status status = Call(*tuning, &Stub::DraftSchedule, request, &drafted);
  ASSERT_THAT(status, IsOk()) << status.error_message() << "; it needs no worker";
  EXPECT_THAT(drafted.trace(), HasSubstr("space of op searched ["));
  EXPECT_EQ(drafted.target(), "target words");
  v1::ListJobsResponse jobs;
  ASSERT_THAT(Call(*tuning, &Stub::ListJobs, v1::ListJobsRequest(), &jobs), IsOk());
  EXPECT_EQ(jobs.jobs_size(), 0);

  const auto code = [&] {
    return Call(*tuning, &Stub::DraftSchedule, request, &drafted).error_code();
  };
  request.set_target("t");
  EXPECT_EQ(code(), grpc::StatusCode::FAILED_PRECONDITION) << "no worker has described the key";
  request.set_target(std::string(10000, ' '));
  EXPECT_EQ(code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_target("target words");
  request.set_tolerance(-1);
  EXPECT_EQ(code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_tolerance(0);
  request.set_workload("nonsense");
  EXPECT_EQ(code(), grpc::StatusCode::INVALID_ARGUMENT);

  RemoteWorker worker(channel, "w");
  v1::CreateJobRequest create = Request(256);  // the default number of trials of hone tune
  create.clear_seed();
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, create, &job), IsOk());
  job = WaitForEnd(job.id());
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  v1::ListRecordsRequest list;
  list.set_job_id(job.id());
  list.set_page_size(1000);
  v1::ListRecordsResponse records;
  ASSERT_THAT(Call(*tuning, &Stub::ListRecords, list, &records), IsOk());
  std::string first;
  for (const v1::Record& record : records.records()) {
    if (record.trial() != 1 || record.policy().name() != "screen") continue;
    first = absl::StrCat("space of op searched [",
                         absl::StrJoin(record.candidate().decisions(), ", "), "]");
  }
  EXPECT_EQ(drafted.trace(), first);
  request.set_workload("fake op 12");
  request.set_target("t");
  EXPECT_EQ(code(), grpc::StatusCode::OK) << "a worker has described the key";
  EXPECT_EQ(drafted.trace(), first) << "measurements do not change the draft";
}

TEST_F(TuningServiceTest, FeaturesHaveColumnNames) {
  v1::DescribeFeaturesRequest request;
  request.set_trace("a trace");
  request.set_target("target words");
  v1::FeatureTable table;
  ASSERT_THAT(Call(*tuning, &Stub::DescribeFeatures, request, &table), IsOk()) << "needs no worker";
  EXPECT_EQ(table.feature_set(), "decisions");
  ASSERT_EQ(table.columns_size(), 2);
  EXPECT_EQ(table.columns(1), "target");
  ASSERT_EQ(table.rows_size(), 1);
  EXPECT_EQ(table.rows(0).values(0), 7);
  EXPECT_EQ(table.rows(0).values(1), 12);

  const auto code = [&] {
    return Call(*tuning, &Stub::DescribeFeatures, request, &table).error_code();
  };
  request.set_target("key");
  EXPECT_EQ(code(), grpc::StatusCode::FAILED_PRECONDITION)
      << "no worker has described the target key";
  request.set_target(std::string(10000, ' '));
  EXPECT_EQ(code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_target("target words");
  request.set_feature_set("nonsense");
  EXPECT_EQ(code(), grpc::StatusCode::INVALID_ARGUMENT);

  RemoteWorker worker(channel, "w");
  request.clear_feature_set();
  request.set_target("t");
  EXPECT_TRUE(Eventually([&] { return code() == grpc::StatusCode::OK; }))
      << "a worker has described the target key";
}

TEST_F(TuningServiceTest, TargetWithoutAWorkerIsRejectedWithAdvice) {
  Stop();
  ASSERT_THAT(Start({.target_wait = absl::Milliseconds(1)}), IsOk());
  const grpc::Status status = Create(Request(10));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("the server waited 0.001 s"), HasSubstr("start hone-worker")));
}

TEST_F(TuningServiceTest, ClientsKnowHowLongAJobWaitsForItsTarget) {
  EXPECT_EQ(ServerOptions().target_wait, client::kTargetWait);
  EXPECT_LT(client::kTargetWait, client::ConnectionOptions().call_timeout);
}

TEST_F(TuningServiceTest, ARequestThatIsNoLongerWaitedForCreatesNoJob) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto connection, client::Connection::Open(address.ToText(), {}));
  v1::CreateJobRequest spec;
  spec.set_workload("fake op 12");
  spec.set_target("t");
  spec.set_max_trials(1);
  int asked = 0;
  const auto waiting = [&] { return ++asked < 2; };
  EXPECT_THAT(connection->CreateJob(spec, waiting), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(asked, 2);
  // The connection keeps the order: an answer to this call shows that the server has read the
  // cancellation.
  auto jobs = connection->ListJobs(/*limit=*/0);
  ASSERT_THAT(jobs, IsOk());
  RemoteWorker worker(channel, "w");
  HONE_ASSERT_OK_AND_ASSIGN(const auto created, connection->CreateJob(spec, /*waiting=*/nullptr));
  WaitForEnd(created.id());
  jobs = connection->ListJobs(/*limit=*/0);
  ASSERT_THAT(jobs, IsOk());
  EXPECT_EQ(jobs->size(), 1u);
}

TEST_F(TuningServiceTest, WaitingRequestCountsAgainstTheQuota) {
  Stop();
  ASSERT_THAT(Start({.job = {.max_jobs_per_owner = 1}}), IsOk());
  std::atomic<int> answered = 0, refused = 0, created = 0;
  const auto create = [&] {
    const grpc::StatusCode code = Create(Request(1)).error_code();
    if (code == grpc::StatusCode::RESOURCE_EXHAUSTED) ++refused;
    if (code == grpc::StatusCode::OK) ++created;
    ++answered;
  };
  std::thread one(create), two(create);
  EXPECT_TRUE(Eventually([&] { return answered > 0; }));
  EXPECT_EQ(refused, 1) << "one call waits and the other is refused at once";
  RemoteWorker worker(channel, "w");
  one.join();
  two.join();
  EXPECT_EQ(created, 1);
}

}  // namespace
}  // namespace hone::service

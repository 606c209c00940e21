// Draining, resuming and removing workers, over a Unix socket.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.grpc.pb.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using AdminStub = v1::AdminService::Stub;

class AdminWorkersTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override {
    ASSERT_THAT(Start(), IsOk());
    admin_ = v1::AdminService::NewStub(channel);
    ASSERT_THAT(Synchronize(), IsOk());
  }
  grpc::Status Synchronize() {
    return Call(*working, &v1::WorkerService::Stub::Synchronize, RemoteWorker::Hello(worker_),
                &reply_);
  }
  void Restart() {
    Stop();
    ASSERT_THAT(Start(), IsOk());
    admin_ = v1::AdminService::NewStub(channel);
  }
  v1::ListWorkersResponse List() {
    v1::ListWorkersResponse workers;
    EXPECT_THAT(
        Call(*tuning, &v1::TuningService::Stub::ListWorkers, v1::ListWorkersRequest(), &workers),
        IsOk());
    return workers;
  }
  grpc::Status Remove(const std::string& id) {
    v1::RemoveWorkerRequest request;
    request.set_id(id);
    return Call(*admin_, &AdminStub::RemoveWorker, request, &removed_);
  }
  // A call of a worker, from now on.
  void SynchronizeAs(const std::string& id) {
    worker_ = id;
    ASSERT_THAT(Synchronize(), IsOk());
  }
  grpc::Status Drain(const std::string& id, bool resume, v1::WorkerInfo* info) {
    v1::DrainWorkerRequest request;
    request.set_id(id);
    request.set_resume(resume);
    return Call(*admin_, &AdminStub::DrainWorker, request, info);
  }

  std::string worker_ = "w";
  std::unique_ptr<AdminStub> admin_;
  v1::SynchronizeResponse reply_;
  v1::RemoveWorkerResponse removed_;
};

TEST_F(AdminWorkersTest, AWorkerIsDrainedAndResumed) {
  v1::WorkerInfo info;
  ASSERT_THAT(Drain("w", false, &info), IsOk());
  EXPECT_TRUE(info.draining());
  EXPECT_EQ(info.id(), "w");
  ASSERT_THAT(Synchronize(), IsOk());
  EXPECT_TRUE(reply_.drain());
  ASSERT_THAT(Drain("w", true, &info), IsOk());
  EXPECT_FALSE(info.draining());
  EXPECT_EQ(Drain("nobody", false, &info).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AdminWorkersTest, RemovedWorkerIsRejectedUntilResumed) {
  ASSERT_THAT(Remove("w"), IsOk());
  EXPECT_EQ(removed_.requeued(), 0);
  v1::ListWorkersResponse workers = List();
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_FALSE(workers.workers(0).connected());
  EXPECT_THAT(workers.workers(0).flagged(), HasSubstr("administrator"));
  EXPECT_FALSE(workers.workers(0).target().empty());
  ASSERT_THAT(Synchronize(), IsOk());
  EXPECT_THAT(reply_.refused(), HasSubstr("administrator"));
  EXPECT_EQ(Remove("w").error_code(), grpc::StatusCode::NOT_FOUND);
  v1::WorkerInfo info;
  ASSERT_THAT(Drain("w", true, &info), IsOk());
  workers = List();
  ASSERT_EQ(workers.workers_size(), 1) << "it is listed before it calls again";
  EXPECT_FALSE(workers.workers(0).connected());
  EXPECT_EQ(workers.workers(0).flagged(), "");
  EXPECT_FALSE(workers.workers(0).target().empty());
  EXPECT_GT(workers.workers(0).last_seen_unix_ms(), 0);
  ASSERT_THAT(Synchronize(), IsOk());
  EXPECT_EQ(reply_.refused(), "");
  EXPECT_TRUE(List().workers(0).connected());
}

TEST_F(AdminWorkersTest, AWorkerThatIsOnlyRememberedIsRefused) {
  Restart();
  ASSERT_EQ(List().workers_size(), 1);
  EXPECT_FALSE(List().workers(0).connected()) << "it has not called this server";
  ASSERT_THAT(Remove("w"), IsOk());
  EXPECT_THAT(List().workers(0).flagged(), HasSubstr("administrator"));
  EXPECT_EQ(Remove("w").error_code(), grpc::StatusCode::NOT_FOUND) << "it is already removed";
  EXPECT_EQ(Remove("nobody").error_code(), grpc::StatusCode::NOT_FOUND);
  Restart();
  ASSERT_THAT(Synchronize(), IsOk());
  EXPECT_THAT(reply_.refused(), HasSubstr("administrator"));
}

TEST_F(AdminWorkersTest, WorkerStatesSurviveRestart) {
  v1::WorkerInfo info;
  ASSERT_THAT(Drain("w", false, &info), IsOk());
  SynchronizeAs("gone");
  ASSERT_THAT(Remove("gone"), IsOk());
  SynchronizeAs("resumed");
  ASSERT_THAT(Drain("resumed", false, &info), IsOk());
  ASSERT_THAT(Drain("resumed", true, &info), IsOk());
  Restart();
  SynchronizeAs("w");
  EXPECT_TRUE(reply_.drain());
  SynchronizeAs("gone");
  EXPECT_THAT(reply_.refused(), HasSubstr("administrator"));
  SynchronizeAs("resumed");
  EXPECT_FALSE(reply_.drain());
  // A resumed worker stays resumed after a restart, even if it was not connected.
  ASSERT_THAT(Drain("gone", true, &info), IsOk());
  Restart();
  ASSERT_THAT(Drain("w", true, &info), IsOk()) << "a worker that has not called yet can be resumed";
  for (const char* const name : {"w", "gone"}) {
    SynchronizeAs(name);
    EXPECT_FALSE(reply_.drain()) << name;
    EXPECT_EQ(reply_.refused(), "") << name;
  }
}

TEST_F(AdminWorkersTest, DrainedAndRemovedWorkersAreListedAfterRestart) {
  v1::WorkerInfo info;
  ASSERT_THAT(Drain("w", false, &info), IsOk());
  SynchronizeAs("gone");
  ASSERT_THAT(Remove("gone"), IsOk());
  Restart();
  SynchronizeAs("here");
  v1::ListWorkersRequest list;
  v1::ListWorkersResponse page;
  list.set_page_size(2);
  ASSERT_THAT(Call(*tuning, &v1::TuningService::Stub::ListWorkers, list, &page), IsOk());
  ASSERT_EQ(page.workers_size(), 2);
  EXPECT_EQ(page.workers(0).id(), "gone");
  EXPECT_FALSE(page.workers(0).connected());
  EXPECT_THAT(page.workers(0).flagged(), HasSubstr("administrator"));
  EXPECT_GT(page.workers(0).last_seen_unix_ms(), 0) << "seen by the earlier server";
  EXPECT_EQ(page.workers(1).id(), "here");
  EXPECT_TRUE(page.workers(1).connected());
  list.set_page_token(page.next_page_token());
  ASSERT_THAT(Call(*tuning, &v1::TuningService::Stub::ListWorkers, list, &page), IsOk());
  ASSERT_EQ(page.workers_size(), 1);
  EXPECT_EQ(page.workers(0).id(), "w");
  EXPECT_TRUE(page.workers(0).draining());
  EXPECT_FALSE(page.workers(0).connected());
}

TEST_F(AdminWorkersTest, FlagSurvivesRestart) {
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &v1::TuningService::Stub::CreateJob, Request(10), &job), IsOk());
  v1::SynchronizeRequest request = RemoteWorker::Hello("w");
  request.set_max_wait_ms(30000);
  request.set_free_build_slots(1);
  ASSERT_THAT(Call(*working, &v1::WorkerService::Stub::Synchronize, request, &reply_), IsOk());
  ASSERT_EQ(reply_.start_size(), 1);
  v1::FinishedLease& finished = *request.add_finished();
  finished.set_lease_id(reply_.start(0).lease_id());
  finished.mutable_result()->set_outcome(v1::OUTCOME_OK);
  finished.mutable_result()->set_latency_ns(-1);
  ASSERT_THAT(Call(*working, &v1::WorkerService::Stub::Synchronize, request, &reply_), IsOk());
  const std::string why = reply_.refused();
  EXPECT_THAT(why, HasSubstr("impossible result"));
  Restart();
  ASSERT_THAT(Synchronize(), IsOk());
  EXPECT_EQ(reply_.refused(), why);
  EXPECT_EQ(reply_.start_size(), 0);
}

TEST_F(AdminWorkersTest, WorkersAreKnownAfterARestart) {
  const int64_t seen = List().workers(0).last_seen_unix_ms();
  Restart();
  ASSERT_EQ(List().workers_size(), 1);
  const v1::WorkerInfo away = List().workers(0);
  EXPECT_EQ(away.id(), "w");
  EXPECT_FALSE(away.connected());
  EXPECT_NEAR(static_cast<double>(away.last_seen_unix_ms()), static_cast<double>(seen), 1000);
  EXPECT_FALSE(away.target().empty());
  EXPECT_TRUE(away.can_run());
  ASSERT_THAT(Synchronize(), IsOk());
  EXPECT_TRUE(List().workers(0).connected());

  Restart();
  EXPECT_THAT(Remove("w"), IsOk());
  Restart();
  ASSERT_EQ(List().workers_size(), 1) << "it is away, and refused";
  EXPECT_THAT(List().workers(0).flagged(), HasSubstr("administrator"));
}

}  // namespace
}  // namespace hone::service

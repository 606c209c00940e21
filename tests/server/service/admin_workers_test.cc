// Draining, resuming and removing workers, over a Unix socket.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.grpc.pb.h"
#include "tests/server/service/service_harness.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using AdminStub = v1::AdminService::Stub;

class AdminWorkersTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Start().ok());
    admin_ = v1::AdminService::NewStub(channel);
    ASSERT_TRUE(Synchronize().ok());
  }
  grpc::Status Synchronize() {
    return Call(*working, &v1::WorkerService::Stub::Synchronize, RemoteWorker::Hello("w"), &reply_);
  }
  grpc::Status Drain(const std::string& id, bool resume, v1::WorkerInfo* info) {
    v1::DrainWorkerRequest request;
    request.set_id(id);
    request.set_resume(resume);
    return Call(*admin_, &AdminStub::DrainWorker, request, info);
  }

  std::unique_ptr<AdminStub> admin_;
  v1::SynchronizeResponse reply_;
};

TEST_F(AdminWorkersTest, AWorkerIsDrainedAndResumed) {
  v1::WorkerInfo info;
  ASSERT_TRUE(Drain("w", false, &info).ok());
  EXPECT_TRUE(info.draining());
  EXPECT_EQ(info.id(), "w");
  ASSERT_TRUE(Synchronize().ok());
  EXPECT_TRUE(reply_.drain());
  ASSERT_TRUE(Drain("w", true, &info).ok());
  EXPECT_FALSE(info.draining());
  EXPECT_EQ(Drain("nobody", false, &info).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AdminWorkersTest, ARemovedWorkerIsTurnedAwayUntilItIsResumed) {
  v1::RemoveWorkerRequest request;
  request.set_id("w");
  v1::RemoveWorkerResponse removed;
  ASSERT_TRUE(Call(*admin_, &AdminStub::RemoveWorker, request, &removed).ok());
  EXPECT_EQ(removed.requeued(), 0);
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(
      Call(*tuning, &v1::TuningService::Stub::ListWorkers, v1::ListWorkersRequest(), &workers)
          .ok());
  EXPECT_EQ(workers.workers_size(), 0);
  ASSERT_TRUE(Synchronize().ok());
  EXPECT_THAT(reply_.refused(), HasSubstr("administrator"));
  EXPECT_EQ(Call(*admin_, &AdminStub::RemoveWorker, request, &removed).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::WorkerInfo info;
  ASSERT_TRUE(Drain("w", true, &info).ok());
  ASSERT_TRUE(Synchronize().ok());
  EXPECT_EQ(reply_.refused(), "");
}

}  // namespace
}  // namespace hone::service

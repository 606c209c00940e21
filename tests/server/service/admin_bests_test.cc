// Forgetting what is known of a workload, and pinning its best, over gRPC.

#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.grpc.pb.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using AdminStub = v1::AdminService::Stub;
using TuningStub = v1::TuningService::Stub;

constexpr char kRoot[] = "token-of-root";

class AdminBestsTest : public ::testing::Test, protected ServiceHarness {
 protected:
  // The administrator root has a token and an address. Others use the socket.
  void SetUp() override {
    ServerOptions options;
    options.listen.push_back({*rpc::Address::Parse("127.0.0.1:0"), rpc::Role::kAdmin});
    options.tokens = std::make_shared<const rpc::TokenTable>(
        *rpc::TokenTable::Parse(rpc::TokenLine({"root", rpc::Role::kAdmin}, kRoot)));
    options.audit_log = folder + "/audit.jsonl";
    ASSERT_THAT(Start(std::move(options)), IsOk());
    admin_ = v1::AdminService::NewStub(
        *rpc::CreateChannel(server->addresses()[1].ToText(), rpc::ChannelSecurity{.token = kRoot}));
    worker_ = std::make_unique<RemoteWorker>(channel, "w");
  }
  v1::Job Tune(int64_t trials) {
    v1::Job job;
    const grpc::Status created = Call(*tuning, &TuningStub::CreateJob, Request(trials), &job);
    EXPECT_THAT(created, IsOk()) << created.error_message();
    job = WaitForEnd(job.id());
    EXPECT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
    digest_ = job.workload_digest();
    return job;
  }
  // A request about the workload of the jobs.
  template <typename T>
  T About() {
    T request;
    request.set_workload_digest(digest_);
    request.set_target("t");
    return request;
  }
  absl::Status Forget(v1::ForgetRecordsResponse* response) {
    return rpc::FromGrpc(
        Call(*admin_, &AdminStub::ForgetRecords, About<v1::ForgetRecordsRequest>(), response));
  }
  absl::Status Pin(int64_t record, v1::Best* response) {
    auto request = About<v1::PinBestRequest>();
    request.set_record(record);
    return rpc::FromGrpc(Call(*admin_, &AdminStub::PinBest, request, response));
  }
  absl::Status Unpin() {
    v1::UnpinBestResponse response;
    return rpc::FromGrpc(
        Call(*admin_, &AdminStub::UnpinBest, About<v1::UnpinBestRequest>(), &response));
  }
  absl::StatusOr<v1::Best> Lookup(bool nearest = false) {
    v1::LookupBestRequest request = BestOf();
    request.set_nearest(nearest);
    v1::Best best;
    const absl::Status status =
        rpc::FromGrpc(Call(*tuning, &TuningStub::LookupBest, request, &best));
    if (!status.ok()) return status;
    return best;
  }
  std::vector<v1::Record> Records() {
    v1::ListRecordsRequest request;
    request.set_page_size(1000);
    v1::ListRecordsResponse response;
    EXPECT_THAT(Call(*tuning, &TuningStub::ListRecords, request, &response), IsOk());
    return {response.records().begin(), response.records().end()};
  }
  v1::ListPinsResponse Pins() {
    v1::ListPinsResponse response;
    EXPECT_THAT(Call(*tuning, &TuningStub::ListPins, v1::ListPinsRequest(), &response), IsOk());
    return response;
  }

  std::unique_ptr<AdminStub> admin_;
  std::unique_ptr<RemoteWorker> worker_;
  std::string digest_;
};

TEST_F(AdminBestsTest, AForgottenWorkloadIsUnknownAndItsRecordsStay) {
  const v1::Job job = Tune(30);
  const size_t before = Records().size();
  v1::ForgetRecordsResponse forgotten;
  ASSERT_THAT(Forget(&forgotten), IsOk());
  EXPECT_EQ(forgotten.records(), static_cast<int64_t>(before));
  ASSERT_EQ(forgotten.bests_size(), 1);
  EXPECT_EQ(forgotten.bests(0).id(), job.best().record().id());
  EXPECT_THAT(Lookup(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Lookup(/*nearest=*/true), StatusIs(absl::StatusCode::kNotFound));
  const std::vector<v1::Record> records = Records();
  EXPECT_EQ(records.size(), before);
  for (const v1::Record& record : records) {
    EXPECT_TRUE(record.quarantined());
    EXPECT_THAT(record.quarantine_reason(), HasSubstr("forgotten by root on 20"));
  }
  const std::string audit = ReadFile(folder + "/audit.jsonl").value_or("");
  EXPECT_THAT(audit, HasSubstr("AdminService/ForgetRecords"));
  EXPECT_THAT(audit, HasSubstr(digest_));
  EXPECT_THAT(Forget(&forgotten), StatusIs(absl::StatusCode::kNotFound));

  const v1::Job fresh = Tune(2);
  EXPECT_EQ(fresh.trials(), 2);
  EXPECT_EQ(fresh.best().record().job_id(), fresh.id());
  EXPECT_EQ(Lookup()->record().id(), fresh.best().record().id());
}

TEST_F(AdminBestsTest, WhatAJobMeasuresIsNotForgotten) {
  Tune(4);
  worker_->slow = 1;
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &TuningStub::CreateJob, Request(4, "second"), &job), IsOk());
  v1::ForgetRecordsResponse forgotten;
  EXPECT_THAT(Forget(&forgotten),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("job " + job.id())));
  EXPECT_THAT(Lookup(), IsOk());
  worker_->slow = 0;
  WaitForEnd(job.id());
  EXPECT_THAT(Forget(&forgotten), IsOk());
}

TEST_F(AdminBestsTest, TheErrorOfPinningARecordOfAnotherWorkloadNamesBoth) {
  auto request = Request(2, "another");
  request.set_workload("fake other 12");
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &TuningStub::CreateJob, request, &job), IsOk());
  const v1::Job other = WaitForEnd(job.id());
  Tune(2);
  v1::Best pinned;
  EXPECT_THAT(
      Pin(other.best().record().id(), &pinned),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("is of another workload, fake other 12; the best to replace is of fake op")));
}

TEST_F(AdminBestsTest, APinnedBestStaysUntilThePinIsRemoved) {
  const v1::Job first = Tune(2);
  v1::Best pinned;
  ASSERT_THAT(Pin(0, &pinned), IsOk());
  EXPECT_EQ(pinned.record().id(), first.best().record().id());
  EXPECT_EQ(pinned.pinned_by(), "root");
  EXPECT_GT(pinned.pinned_unix_ms(), 0);
  EXPECT_EQ(pinned.workload(), first.workload());
  EXPECT_EQ(Lookup()->pinned_by(), "root");
  ASSERT_EQ(Pins().bests_size(), 1);
  EXPECT_EQ(Pins().bests(0).record().id(), pinned.record().id());

  const v1::Job second = Tune(200);
  EXPECT_EQ(second.best().record().id(), pinned.record().id());
  EXPECT_EQ(second.best().pinned_by(), "root");
  EXPECT_LT(second.own_best().record().result().latency_ns(),
            pinned.record().result().latency_ns());
  EXPECT_EQ(Lookup()->record().id(), pinned.record().id());
  const int64_t own = second.own_best().record().id();
  ASSERT_THAT(Pin(own, &pinned), IsOk()) << "its artifact is in the store";
  EXPECT_EQ(Lookup()->record().id(), own);

  EXPECT_THAT(Unpin(), IsOk());
  EXPECT_THAT(Unpin(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(Pins().bests_size(), 0);
  EXPECT_EQ(Lookup()->record().id(), own);
}

TEST_F(AdminBestsTest, WhatCannotBePinned) {
  const v1::Job job = Tune(8);
  v1::Best best;
  EXPECT_THAT(Pin(1 << 20, &best), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Pin(-1, &best), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Pin(Records()[0].id(), &best), StatusIs(absl::StatusCode::kFailedPrecondition));
  digest_ = "0123456789abcdef0123456789abcdef";
  EXPECT_THAT(Pin(0, &best), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Pin(job.best().record().id(), &best), StatusIs(absl::StatusCode::kInvalidArgument));
  digest_.clear();
  EXPECT_THAT(Pin(0, &best), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Pins().bests_size(), 0);
}

}  // namespace
}  // namespace hone::service

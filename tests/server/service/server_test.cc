// The life cycle of a server: health, reflection, draining, restart and private mode.

#include "server/service/server.h"

#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/connection/connection.h"
#include "common/base/file.h"
#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/fakes/manual_store.h"
#include "tests/fault/tcp_proxy.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using Stub = v1::TuningService::Stub;

class ServerTest : public ::testing::Test, protected ServiceHarness {
 protected:
  // Calls a unary method by name with raw bytes as the request, and returns the bytes of the
  // response.
  absl::StatusOr<std::string> RawCall(const std::string& method, const std::string& message) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    grpc::CompletionQueue queue;
    grpc::Slice slice(message);
    grpc::ByteBuffer request(&slice, 1), response;
    auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (!status.ok()) {
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message());
    }
    std::vector<grpc::Slice> slices;
    EXPECT_THAT(response.Dump(&slices), IsOk());
    std::string bytes;
    for (const grpc::Slice& part : slices) {
      bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
    return bytes;
  }
  // grpc.health.v1: HealthCheckRequest{service = 1}; HealthCheckResponse{status = 1}, SERVING is 1.
  bool IsServing(const std::string& service) {
    std::string request;
    if (!service.empty()) {
      request = std::string("\x0a") + static_cast<char>(service.size()) + service;
    }
    auto response = RawCall("/grpc.health.v1.Health/Check", request);
    EXPECT_THAT(response, IsOk());
    return response.ok() && *response == std::string("\x08\x01");
  }
};

TEST_F(ServerTest, HealthIsServingForEachService) {
  ASSERT_THAT(Start(), IsOk());
  EXPECT_TRUE(IsServing(""));
  EXPECT_TRUE(IsServing("hone.v1.TuningService"));
  EXPECT_TRUE(IsServing("hone.v1.WorkerService"));
}

TEST_F(ServerTest, EveryMetricIsDescribed) {
  ASSERT_THAT(Start(), IsOk());
  const std::string described = ReadFile("server/service/metrics.md").value();
  const std::vector<ServerMetric> metrics = server->Metrics();
  EXPECT_GE(metrics.size(), 12u);
  for (const ServerMetric& metric : metrics) {
    EXPECT_THAT(described, HasSubstr(absl::StrCat("`", metric.name, "`")));
    EXPECT_EQ(absl::EndsWith(metric.name, "_total"), metric.is_total) << metric.name;
  }
}

TEST_F(ServerTest, ASecondServerOnTheSameSocketOrStoreIsRefused) {
  ASSERT_THAT(Start(), IsOk());
  std::unique_ptr<Server> first = std::move(server);
  const absl::Status same_store = Start();
  EXPECT_FALSE(same_store.ok());
  EXPECT_THAT(same_store, StatusIs(absl::StatusCode::kUnavailable));
  folder = folder + "/other";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kAlreadyExists));
  folder = folder.substr(0, folder.rfind('/'));
  EXPECT_TRUE(IsServing("")) << "the first server is unaffected";
  first.reset();
}

// Damage deep in the store does not keep the server from starting, because it can still answer
// look-ups.
TEST_F(ServerTest, WithADamagedStoreItOnlyReads) {
  const std::string path = folder + "/hone.db";
  {
    const auto store = store::OpenSqliteStore(path).value();
    for (int i = 0; i < 40; ++i) {
      store->PutText(std::to_string(i), std::string(20000, 'x'), [](absl::Status) {});
    }
    ASSERT_THAT(store->Flush(), IsOk());
  }
  ASSERT_THAT(Start(), IsOk());
  EXPECT_EQ(Metric("hone_store_damaged"), 0);
  Stop();
  std::string bytes = ReadFile(path).value();
  for (size_t page = 100; page < 120; ++page) bytes.replace(page * 4096, 2000, 2000, '\x55');
  std::ofstream(path) << bytes;
  auto store = store::OpenSqliteStore(path).value();
  store::Store& opened = *store;
  ASSERT_TRUE(
      Eventually([&] { return opened.Health().check == store::StoreHealth::Check::kDamaged; }));
  ASSERT_THAT(StartWith(std::move(store)), IsOk()) << "writes are refused already";
  EXPECT_EQ(Metric("hone_store_damaged"), 1);
  ASSERT_TRUE(Eventually([&] { return !IsServing(""); }));
  EXPECT_FALSE(IsServing("hone.v1.WorkerService"));
  EXPECT_FALSE(IsServing("hone.v1.AdminService"));
  EXPECT_TRUE(IsServing("hone.v1.TuningService"));

  RemoteWorker worker(channel, "w");
  v1::Job job;
  v1::CreateJobRequest request = Request(10);
  for (const bool only_validated : {true, false}) {
    request.set_validate_only(only_validated);
    const grpc::Status refused = Call(*tuning, &Stub::CreateJob, request, &job);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_THAT(refused.error_message(), HasSubstr("restore a backup"));
  }
  v1::ListJobsResponse jobs;
  EXPECT_THAT(Call(*tuning, &Stub::ListJobs, v1::ListJobsRequest(), &jobs), IsOk());
  EXPECT_TRUE(jobs.jobs().empty());
  server->Shutdown();
  EXPECT_THAT(server->failure(), StatusIs(absl::StatusCode::kDataLoss));
  Stop();
  EXPECT_TRUE(ReadFile(path).value() == bytes);
}

// A running job fails with the reason, and the server goes on to answer.
TEST_F(ServerTest, DamageThatIsFoundLaterStopsJobs) {
  const std::string path = folder + "/hone.db";
  {
    const auto store = store::OpenSqliteStore(path).value();
    store->PutText("large", std::string(200'000, 'x'), [](const absl::Status&) {});
    ASSERT_THAT(store->Flush(), IsOk());
  }
  ASSERT_THAT(StartWith(store::OpenSqliteStore(path, {.check_integrity = false}).value()), IsOk());
  RemoteWorker worker(channel, "w");
  worker.slow = 1;  // the job waits for its first results
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, Request(100'000), &job), IsOk());
  {
    // Cuts the chain of the pages with the large text.
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes = ReadFile(path).value();
    for (size_t at = 0; at + 4096 <= bytes.size(); at += 4096) {
      if (bytes.compare(at + 100, 3000, std::string(3000, 'x')) != 0) continue;
      file.seekp(static_cast<std::streamoff>(at));
      file << "\x7f\x7f\x7f\x7f";
    }
  }
  EXPECT_TRUE(IsServing(""));
  v1::CreateJobRequest request = Request(10);
  request.clear_workload();
  request.set_workload_digest("large");
  v1::Job refused;
  EXPECT_EQ(Call(*tuning, &Stub::CreateJob, request, &refused).error_code(),
            grpc::StatusCode::DATA_LOSS);
  EXPECT_TRUE(Eventually([&] { return !IsServing(""); }));
  worker.slow = 0;
  const v1::GetJobRequest id = JobOf(job.id());
  EXPECT_TRUE(Eventually([&] {
    return Call(*tuning, &Stub::GetJob, id, &job).ok() && job.state() == v1::JOB_STATE_FAILED;
  }));
  EXPECT_THAT(job.error(), HasSubstr("restore a backup"));
  EXPECT_EQ(Metric("hone_store_damaged"), 1);
}

TEST_F(ServerTest, RemoteAddressesNeedInsecure) {
  ServerOptions options;
  options.listen = {{*rpc::Address::Parse("0.0.0.0:0")}};
  EXPECT_THAT(Server::Start(options, *store::OpenSqliteStore(folder + "/hone.db"), nullptr),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(ServerTest, ShutdownNotifiesWatchersQuickly) {
  // A shutdown that waited for the stream would take a part of this, which is minutes.
  ASSERT_THAT(Start({.shutdown_limit = absl::Minutes(10)}), IsOk());
  RemoteWorker worker(channel, "w");
  worker.slow = 1;  // keeps a fast machine from measuring the whole space
  v1::CreateJobRequest endless = Request(0);
  endless.set_max_time_ms(3'600'000);
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, endless, &job), IsOk());
  grpc::ClientContext context;
  auto reader = tuning->WatchJob(&context, JobOf(job.id()));
  ASSERT_TRUE(reader->Read(&job));
  const absl::Time begin = absl::Now();
  Stop();
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
  while (reader->Read(&job)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServerTest, NewServerContinuesTheJob) {
  ASSERT_THAT(Start(), IsOk());
  v1::Job job;
  {
    RemoteWorker worker(channel, "w");
    ASSERT_THAT(Call(*tuning, &Stub::CreateJob, Request(300), &job), IsOk());
    const v1::GetJobRequest request = JobOf(job.id());
    ASSERT_TRUE(Eventually(
        [&] { return Call(*tuning, &Stub::GetJob, request, &job).ok() && job.trials() > 30; }));
    Stop();
  }
  ASSERT_THAT(Start(), IsOk());
  RemoteWorker worker(channel, "w");
  const v1::Job ended = WaitForEnd(job.id());
  EXPECT_EQ(ended.state(), v1::JOB_STATE_DONE) << ended.error();
  EXPECT_EQ(ended.trials(), 300);
}

TEST_F(ServerTest, PrivateServerCancelsUnwatchedJobs) {
  ASSERT_THAT(Start({.private_mode = true, .unwatched_limit = absl::Milliseconds(300)}), IsOk());
  RemoteWorker worker(channel, "w");
  worker.slow = 1;  // keeps a fast machine from measuring the whole space
  v1::CreateJobRequest endless = Request(0);
  endless.set_max_time_ms(3'600'000);
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, endless, &job), IsOk());
  EXPECT_EQ(WaitForEnd(job.id()).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(ServerTest, ShutdownDoesNotWaitForALongProposal) {
  absl::Notification proposing, may_end;
  auto environment = std::make_unique<job::FakeTaskEnvironment>();
  environment->WatchSteps([&](absl::string_view step, absl::string_view) {
    if (step != "propose" || proposing.HasBeenNotified()) return;
    proposing.Notify();
    may_end.WaitForNotification();
  });
  HONE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<store::Store> store,
                            store::OpenStore(folder + "/hone.db"));
  ASSERT_THAT(StartWith(std::move(store), {}, std::move(environment)), IsOk());
  auto worker = std::make_unique<RemoteWorker>(channel, "w");
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, Request(8), &job), IsOk());
  proposing.WaitForNotification();
  EXPECT_FALSE(server->Shutdown(absl::Milliseconds(100)));
  may_end.Notify();
  EXPECT_TRUE(server->Shutdown());
  worker.reset();
  Stop();
  ASSERT_THAT(Start(), IsOk());
  RemoteWorker again(channel, "w");
  EXPECT_EQ(WaitForEnd(job.id()).state(), v1::JOB_STATE_DONE) << "the job continues";
}

// The test keeps a pointer to the store, which outlives each server.
class LeaderTest : public ServerTest {
 protected:
  absl::Status StartOnStore() {
    ServerOptions options{.listen = {{address}}};
    options.job.respect_timing_lock = false;
    auto started = Server::Start(options, store_, std::make_unique<job::FakeTaskEnvironment>());
    if (!started.ok()) return started.status();
    server = *std::move(started);
    channel = Connect();
    tuning = v1::TuningService::NewStub(channel);
    return absl::OkStatus();
  }
  grpc::Status List() {
    v1::ListJobsResponse jobs;
    return Call(*tuning, &Stub::ListJobs, v1::ListJobsRequest(), &jobs);
  }
  // Waits until the server is in this state.
  bool Becomes(Readiness::State state) {
    return Eventually([&] { return server->state() == state; });
  }

  const std::shared_ptr<store::ManualStore> store_ = std::make_shared<store::ManualStore>();
};

TEST_F(LeaderTest, AStandbyRefusesCallsUntilItLeads) {
  store_->SetLeads(false);
  ASSERT_THAT(StartOnStore(), IsOk());
  EXPECT_FALSE(IsServing(""));
  EXPECT_FALSE(IsServing("hone.v1.TuningService"));
  const grpc::Status refused = List();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("another server leads"));
  EXPECT_EQ(Metric("hone_server_state", "standby"), 1);
  EXPECT_EQ(Metric("hone_server_state", "leader"), 0);

  store_->SetLeads(absl::UnavailableError("no database"));
  ASSERT_TRUE(Becomes(Readiness::State::kUnreachable));
  EXPECT_THAT(List().error_message(), HasSubstr("cannot reach its database"));
  store_->SetLeads(absl::FailedPreconditionError("only reads"));
  ASSERT_TRUE(Becomes(Readiness::State::kRefused));

  store_->SetLeads(true);
  ASSERT_TRUE(Becomes(Readiness::State::kLeader));
  EXPECT_TRUE(List().ok());
  EXPECT_FALSE(server->IsDeposed());
}

// A store whose database answers late that this server leads.
class LateStore final : public store::ManualStore {
 public:
  absl::StatusOr<bool> Lead() override {
    if (!is_late) return false;
    if (!asked.HasBeenNotified()) asked.Notify();
    may_answer.WaitForNotification();
    return true;
  }
  std::atomic<bool> is_late = false;
  absl::Notification asked, may_answer;
};

TEST_F(ServerTest, AServerThatEndsDoesNotBeginToLead) {
  auto owned = std::make_unique<LateStore>();
  LateStore& store = *owned;
  ASSERT_THAT(StartWith(std::move(owned)), IsOk());
  ASSERT_EQ(server->state(), Readiness::State::kStandby);
  store.is_late = true;
  store.asked.WaitForNotification();
  std::thread end([this] { server->Shutdown(); });
  EXPECT_TRUE(Eventually([&] { return server->state() == Readiness::State::kDraining; }));
  EXPECT_FALSE(IsServing("hone.v1.TuningService"));
  store.may_answer.Notify();
  end.join();
  EXPECT_EQ(server->state(), Readiness::State::kDraining);
}

TEST_F(LeaderTest, JobsOfADeposedServerContinueWhenItLeadsAgain) {
  ASSERT_THAT(StartOnStore(), IsOk());
  auto worker = std::make_unique<RemoteWorker>(channel, "w");
  worker->slow = 1;
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, Request(8), &job), IsOk());
  store_->SetLeads(absl::UnavailableError("no database"));
  ASSERT_TRUE(Eventually([&] { return server->IsDeposed(); }));
  EXPECT_FALSE(IsServing(""));
  EXPECT_EQ(List().error_code(), grpc::StatusCode::UNAVAILABLE);
  worker.reset();
  Stop();
  ASSERT_THAT(StartOnStore(), IsOk()) << "although the database cannot be reached";
  EXPECT_EQ(List().error_code(), grpc::StatusCode::UNAVAILABLE);
  store_->SetLeads(true);
  ASSERT_TRUE(Becomes(Readiness::State::kLeader));
  RemoteWorker again(channel, "w");
  EXPECT_EQ(WaitForEnd(job.id()).state(), v1::JOB_STATE_DONE);
}

TEST_F(LeaderTest, JobsWaitWhileTheDiskIsFull) {
  ASSERT_THAT(StartOnStore(), IsOk());
  RemoteWorker worker(channel, "w");
  worker.slow = 1;  // the job does not end before the disk is full
  v1::CreateJobRequest request = Request(400);
  request.set_max_time_ms(600'000);
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, request, &job), IsOk());
  const auto now = [&] {
    v1::Job state;
    EXPECT_THAT(Call(*tuning, &Stub::GetJob, JobOf(job.id()), &state), IsOk());
    return state;
  };
  ASSERT_TRUE(Eventually([&] { return now().state() == v1::JOB_STATE_RUNNING; }));
  EXPECT_EQ(Metric("hone_store_full"), 0);
  store_->SetSpace(absl::ResourceExhaustedError("the disk is full; free space"));
  worker.slow = 0;
  EXPECT_EQ(Metric("hone_store_full"), 1);
  EXPECT_TRUE(Eventually([&] { return !IsServing(""); }));
  EXPECT_FALSE(IsServing("hone.v1.WorkerService"));
  EXPECT_TRUE(IsServing("hone.v1.TuningService")) << "look-ups are answered";
  EXPECT_TRUE(
      Eventually([&] { return now().phase().kind() == v1::JobPhase::KIND_WAITING_FOR_SPACE; }));
  EXPECT_EQ(now().phase().detail(), "the disk is full; free space");
  v1::Job other;
  const grpc::Status refused = Call(*tuning, &Stub::CreateJob, Request(8, "other"), &other);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("free space"));
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_EQ(now().state(), v1::JOB_STATE_RUNNING);

  store_->SetSpace(absl::OkStatus());
  EXPECT_TRUE(Eventually([&] { return IsServing(""); }));
  const v1::Job done = WaitForEnd(job.id());
  EXPECT_EQ(done.state(), v1::JOB_STATE_DONE) << done.error();
  EXPECT_EQ(done.trials(), 400);
}

// Clients and workers name all servers.
TEST_F(LeaderTest, AChannelToAllServersFindsTheLeader) {
  store_->SetLeads(false);
  ASSERT_THAT(StartOnStore(), IsOk());
  const std::unique_ptr<Server> standby = std::move(server);
  const std::string both = absl::StrCat(address.ToText(), ",unix:", folder, "/two");
  address.path = folder + "/two";
  ASSERT_THAT(Start(), IsOk());
  const auto stub = v1::TuningService::NewStub(*rpc::CreateChannel(both, {}));
  const auto list = [&] {
    v1::ListJobsResponse jobs;
    return Call(*stub, &Stub::ListJobs, v1::ListJobsRequest(), &jobs);
  };
  ASSERT_TRUE(Eventually([&] { return list().ok(); }));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(list().ok()) << "no call goes to the standby";
  Stop();
  store_->SetLeads(true);
  EXPECT_TRUE(Eventually([&] { return list().ok(); }));
  EXPECT_FALSE(standby->IsDeposed());
}

// Of a leader that hangs, or whose machine has lost its network, the connections stay open.
TEST_F(LeaderTest, AChannelToAllServersMovesOnFromALeaderThatHangs) {
  store_->SetLeads(false);
  ASSERT_THAT(StartOnStore(), IsOk());
  const std::unique_ptr<Server> standby = std::move(server);
  HONE_ASSERT_OK_AND_ASSIGN(const auto to_standby, fault::TcpProxy::Start(address.path));
  address.path = folder + "/two";
  ASSERT_THAT(Start(), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto to_leader, fault::TcpProxy::Start(address.path));
  const std::string both = absl::StrCat(to_leader->address(), ",", to_standby->address());
  const auto stub = v1::TuningService::NewStub(*rpc::CreateChannel(both, {}));
  const auto list = [&] {
    grpc::ClientContext context;
    rpc::SetDeadline(context, absl::Minutes(1));
    v1::ListJobsResponse jobs;
    return stub->ListJobs(&context, v1::ListJobsRequest(), &jobs);
  };
  ASSERT_TRUE(Eventually([&] { return list().ok(); }));
  to_leader->SetWeather({.black_hole = true});
  store_->SetLeads(true);
  grpc::Status status = list();
  EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED)
      << "the lost connection ends the call";
  EXPECT_TRUE(Eventually([&] { return (status = list()).ok(); })) << status.error_message();
  // A client makes the call again within its own deadline.
  EXPECT_LT(rpc::kLeaderKeepaliveTime + rpc::kLeaderKeepaliveTimeout,
            client::ConnectionOptions().call_timeout);
}

TEST_F(ServerTest, PrivateServerCancelsJobsAtShutdown) {
  ASSERT_THAT(Start({.private_mode = true}), IsOk());
  v1::Job job;
  {
    RemoteWorker worker(channel, "w");
    worker.slow = 1;
    v1::CreateJobRequest endless = Request(0);
    endless.set_max_time_ms(3'600'000);
    ASSERT_THAT(Call(*tuning, &Stub::CreateJob, endless, &job), IsOk());
    Stop();
  }
  ASSERT_THAT(Start(), IsOk());
  EXPECT_EQ(WaitForEnd(job.id()).state(), v1::JOB_STATE_CANCELLED);
}

}  // namespace
}  // namespace hone::service

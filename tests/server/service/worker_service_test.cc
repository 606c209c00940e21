// The worker API over a Unix socket.

#include <limits>

#include "common/base/deflate.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/record/reference_name.h"
#include "common/rpc/channel.h"
#include "common/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/job_convert.h"
#include "server/store/store.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/fault/tcp_proxy.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using WorkerStub = v1::WorkerService::Stub;

class WorkerServiceTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override { ASSERT_THAT(Start(), IsOk()); }

  grpc::Status Upload(const std::string& digest, int64_t total,
                      const std::vector<std::string>& chunks) {
    grpc::ClientContext context;
    v1::UploadArtifactResponse response;
    auto writer = working->UploadArtifact(&context, &response);
    for (size_t i = 0; i < chunks.size(); ++i) {
      v1::WorkerArtifactChunk chunk;
      if (i == 0) {
        chunk.set_digest(digest);
        chunk.set_total_bytes(total);
      }
      chunk.set_data(chunks[i]);
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
};

TEST_F(WorkerServiceTest, HeldCallIsAnsweredWhenAJobArrives) {
  v1::SynchronizeRequest request = RemoteWorker::Hello("w");
  v1::SynchronizeResponse response;
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk()) << "registers";
  request.set_max_wait_ms(30000);
  request.set_free_build_slots(2);
  std::thread caller([&] {
    const grpc::Status status = Call(*working, &WorkerStub::Synchronize, request, &response);
    EXPECT_THAT(status, IsOk()) << status.error_message();
  });
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &v1::TuningService::Stub::CreateJob, Request(10), &job), IsOk());
  caller.join();
  ASSERT_GE(response.start_size(), 1);
  const v1::Lease& lease = response.start(0);
  EXPECT_TRUE(lease.build() && lease.run());
  EXPECT_EQ(lease.workload(), "fake op 12");
  EXPECT_EQ(lease.target(), "target text");
  EXPECT_EQ(lease.job_id(), job.id());
  EXPECT_EQ(lease.policy().name(), "screen");
  EXPECT_GT(lease.deadline_ms(), 0);
}

TEST_F(WorkerServiceTest, AnIdleCallIsAnsweredInTime) {
  v1::SynchronizeRequest request = RemoteWorker::Hello("w");
  request.set_max_wait_ms(200);
  v1::SynchronizeResponse response;
  EXPECT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
}

class HandlingObserver final : public ServerObserver {
 public:
  void OnCall(absl::string_view, grpc::StatusCode, absl::Duration) override {}
  void OnRefusal(absl::string_view, absl::string_view) override {}
  void OnRefusedConnection(absl::string_view) override {}
  void OnSynchronize(absl::Duration handling) override {
    absl::MutexLock lock(&mutex_);
    handling_.push_back(handling);
  }
  void OnResult(record::Outcome) override {}
  std::vector<absl::Duration> handling() {
    absl::MutexLock lock(&mutex_);
    return handling_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<absl::Duration> handling_ ABSL_GUARDED_BY(mutex_);
};

class HandlingTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.observer = &observer_;
    ASSERT_THAT(Start(std::move(options)), IsOk());
  }
  void TearDown() override { Stop(); }  // before the observer is destroyed
  HandlingObserver observer_;
};

TEST_F(HandlingTest, ExcludesTheTimeThatACallIsHeld) {
  v1::SynchronizeRequest request = RemoteWorker::Hello("w");
  v1::SynchronizeResponse response;
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
  EXPECT_TRUE(Eventually([&] { return observer_.handling().size() == 1; }))
      << "the call that is answered at once";
  request.set_max_wait_ms(400);
  const absl::Time begin = absl::Now();
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
  const absl::Duration took = absl::Now() - begin;
  ASSERT_TRUE(Eventually([&] { return observer_.handling().size() == 2; })) << "the held call";
  EXPECT_GT(took, absl::Milliseconds(200));
  EXPECT_LT(observer_.handling()[1], took - absl::Milliseconds(200));
  EXPECT_GT(observer_.handling()[1], absl::ZeroDuration());
}

TEST_F(WorkerServiceTest, DisconnectedWorkerIsReportedAndCanReconnect) {
  v1::SynchronizeRequest request = RemoteWorker::Hello("w");
  request.set_max_wait_ms(30000);
  {
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    std::thread caller([&] {
      const grpc::Status status = working->Synchronize(&context, request, &response);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
    });
    v1::ListWorkersResponse workers;
    EXPECT_TRUE(Eventually([&] {
      return Call(*tuning, &v1::TuningService::Stub::ListWorkers, v1::ListWorkersRequest(),
                  &workers)
                 .ok() &&
             workers.workers_size() == 1;
    }));
    context.TryCancel();
    caller.join();
  }
  request.set_max_wait_ms(0);
  v1::SynchronizeResponse response;
  EXPECT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
}

TEST_F(WorkerServiceTest, ArtifactsAreSentInChunksAndVerified) {
  std::string bytes;
  for (int i = 0; i < 200000; ++i) bytes += std::to_string(i);
  const std::string digest = Sha256Of(bytes);
  const int64_t size = static_cast<int64_t>(bytes.size());
  EXPECT_THAT(Upload(digest, size, {bytes.substr(0, 1000), bytes.substr(1000)}), IsOk());

  grpc::ClientContext context;
  v1::DownloadArtifactRequest request;
  request.set_digest(digest);
  auto reader = working->DownloadArtifact(&context, request);
  v1::WorkerArtifactChunk chunk;
  std::string received;
  while (reader->Read(&chunk)) {
    EXPECT_LE(chunk.data().size(), 256u << 10);
    if (received.empty()) {
      EXPECT_EQ(chunk.digest(), digest);
      EXPECT_EQ(chunk.total_bytes(), size);
    }
    received += chunk.data();
  }
  ASSERT_THAT(reader->Finish(), IsOk());
  EXPECT_EQ(received, bytes);

  const auto rest_of = [&](int64_t offset, std::string* rest) {
    grpc::ClientContext again;
    request.set_offset(offset);
    auto part = working->DownloadArtifact(&again, request);
    for (bool first = true; part->Read(&chunk); first = false) {
      if (first) {
        EXPECT_EQ(chunk.offset(), offset);
      }
      *rest += chunk.data();
    }
    return part->Finish().error_code();
  };
  std::string rest, none;
  EXPECT_EQ(rest_of(300'001, &rest), grpc::StatusCode::OK);
  EXPECT_EQ(rest, bytes.substr(300'001));
  EXPECT_EQ(rest_of(size, &none), grpc::StatusCode::OK);
  EXPECT_EQ(none, "");
  const auto refused = grpc::StatusCode::INVALID_ARGUMENT;
  EXPECT_EQ(rest_of(size + 1, &none), refused);
  EXPECT_EQ(rest_of(-1, &none), refused);
  EXPECT_EQ(Upload(digest, 5, {"other"}).error_code(), refused)
      << "the bytes do not match the digest";
  EXPECT_EQ(Upload(digest, 100, {"short"}).error_code(), refused);
  EXPECT_EQ(Upload(digest, 2, {"too long"}).error_code(), refused);
  EXPECT_EQ(Upload(digest, int64_t{1} << 40, {"x"}).error_code(), refused);
  EXPECT_EQ(Upload("../../x", 1, {"x"}).error_code(), refused);
  EXPECT_EQ(Upload("", 0, {}).error_code(), refused);
}

class UploadLimitTest : public ::testing::Test, protected ServiceHarness {
 protected:
  struct Upload {
    grpc::ClientContext context;
    v1::UploadArtifactResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::WorkerArtifactChunk>> writer;
    bool Write(const std::string& digest, int64_t total, const std::string& data) {
      v1::WorkerArtifactChunk chunk;
      chunk.set_digest(digest);
      chunk.set_total_bytes(total);
      chunk.set_data(data);
      return writer->Write(chunk);
    }
    grpc::Status End() {
      writer->WritesDone();
      return writer->Finish();
    }
  };
  std::unique_ptr<Upload> Begin() {
    auto upload = std::make_unique<Upload>();
    upload->writer = working->UploadArtifact(&upload->context, &upload->response);
    return upload;
  }
};

TEST_F(UploadLimitTest, BytesInFlightAreBoundedAndRetriesSucceed) {
  ServerOptions options;
  options.uploads.max_bytes = 100;
  ASSERT_THAT(Start(std::move(options)), IsOk());
  const std::string bytes(60, 'x'), digest = Sha256Of(bytes);
  const std::string other(50, 'y'), other_digest = Sha256Of(other);
  const auto send_other = [&] {
    auto upload = Begin();
    upload->Write(other_digest, 50, other);
    return upload->End();
  };
  // An upload is not told that it was admitted. If the other one arrives first, it is admitted, and
  // the first one may be refused: then both begin again.
  grpc::Status refused;
  ASSERT_TRUE(Eventually([&] {
    auto first = Begin();
    first->Write(digest, 60, bytes.substr(0, 30));
    refused = send_other();
    first->Write("", 0, bytes.substr(30));
    return first->End().ok() && !refused.ok();
  })) << "an admitted upload can finish while another one is refused";
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("try again in a second"));
  EXPECT_TRUE(Eventually([&] { return send_other().ok(); }))
      << "the finished upload frees its bytes";
}

TEST_F(UploadLimitTest, StalledUploadIsCancelled) {
  ServerOptions options;
  options.uploads.stall_limit = absl::Milliseconds(200);
  ASSERT_THAT(Start(std::move(options)), IsOk());
  auto silent = Begin();
  auto half = Begin();
  half->Write(Sha256Of("whole"), 5, "wh");  // which may come too late on a busy machine
  EXPECT_FALSE(half->writer->Finish().ok());
  EXPECT_FALSE(silent->writer->Finish().ok());
}

TEST_F(WorkerServiceTest, DownloadsAreCompressedOnRequest) {
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes.push_back(static_cast<char>(i % 100));
  const std::string digest = Sha256Of(bytes);
  ASSERT_THAT(Upload(digest, static_cast<int64_t>(bytes.size()), {bytes}), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto proxy, fault::TcpProxy::Start(address.path));
  const auto stub = v1::WorkerService::NewStub(rpc::CreateChannel(proxy->address(), {}).value());
  const auto download = [&](bool deflate) {
    grpc::ClientContext context;
    v1::DownloadArtifactRequest request;
    request.set_digest(digest);
    request.set_deflate(deflate);
    auto reader = stub->DownloadArtifact(&context, request);
    std::string received;
    for (v1::WorkerArtifactChunk chunk; reader->Read(&chunk);) {
      EXPECT_EQ(chunk.data().empty(), deflate);
      received += chunk.data();
      if (deflate) received += Inflate(chunk.deflated(), rpc::kChunkBytes).value();
    }
    EXPECT_THAT(reader->Finish(), IsOk());
    EXPECT_EQ(received, bytes);
  };
  download(true);
  EXPECT_LT(proxy->bytes(), 10000);
  download(false);
  EXPECT_GT(proxy->bytes(), 100000) << "a worker that does not ask for it gets plain bytes";
}

TEST_F(WorkerServiceTest, ReferencesAreNamedByWorkloadAndTarget) {
  const std::string workload = "workload copy\ninput A: f32[4]\noutput B[i: 4] = A[i]\n";
  const target::Target target = *target::TargetByName("x86-avx512");
  const std::string bytes = record::EncodeArtifact({.shared_object = "\x7f"
                                                                     "ELF and more",
                                                    .object = "\x7f"
                                                              "ELF",
                                                    .workload = workload,
                                                    .program = "kernel main\n",
                                                    .target = target.ToText()});
  const std::string digest = ir::ParseWorkload(workload)->StructuralDigest().ToHex();
  const std::string name = record::ReferenceName{digest, target.Key()}.ToText();
  // The job is about this workload and target.
  Stop();
  auto environment = std::make_unique<job::FakeTaskEnvironment>();
  environment->workload_digest = digest;
  ASSERT_THAT(StartWith(*store::OpenSqliteStore(folder + "/hone.db"), {}, std::move(environment)),
              IsOk());
  const auto download = [&](const std::string& what) {
    grpc::ClientContext context;
    v1::DownloadArtifactRequest request;
    request.set_digest(what);
    auto reader = working->DownloadArtifact(&context, request);
    v1::WorkerArtifactChunk chunk;
    std::string received;
    while (reader->Read(&chunk)) received += chunk.data();
    const grpc::Status status = reader->Finish();
    return status.ok() ? received : std::string("error ") + std::to_string(status.error_code());
  };
  const int64_t size = static_cast<int64_t>(bytes.size());
  EXPECT_EQ(download(name), "error 5") << "not found";
  // Boards run the code, so that only a worker may send it that builds candidates of the workload.
  const auto unleased = grpc::StatusCode::FAILED_PRECONDITION;
  EXPECT_EQ(Upload(name, size, {bytes}).error_code(), unleased);
  EXPECT_EQ(download(name), "error 5");
  v1::SynchronizeRequest request = RemoteWorker::Hello("w");
  request.mutable_capabilities()->set_target(target.ToText());
  request.mutable_capabilities()->set_target_key(target.Key());
  request.mutable_capabilities()->set_can_run(false);
  v1::SynchronizeResponse response;
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
  v1::SynchronizeRequest board = RemoteWorker::Hello("board");
  *board.mutable_capabilities() = request.capabilities();
  board.mutable_capabilities()->set_can_build(false);
  board.mutable_capabilities()->set_can_run(true);
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, board, &response), IsOk());
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &v1::TuningService::Stub::CreateJob, Request(10), &job), IsOk());
  EXPECT_EQ(Upload(name, size, {bytes}).error_code(), unleased) << "nothing is leased yet";
  request.set_max_wait_ms(30000);
  request.set_free_build_slots(1);
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
  ASSERT_EQ(response.start_size(), 1);
  ASSERT_EQ(response.start(0).workload_digest(), digest);
  EXPECT_THAT(Upload(name, size, {bytes.substr(0, 7), bytes.substr(7)}), IsOk());
  EXPECT_EQ(download(name), bytes);

  const auto refused = grpc::StatusCode::INVALID_ARGUMENT;
  const std::string other(32, 'a');
  for (const std::string& wrong : {record::ReferenceName{other, target.Key()}.ToText(),
                                   record::ReferenceName{digest, "another-target"}.ToText()}) {
    EXPECT_EQ(Upload(wrong, size, {bytes}).error_code(), unleased) << wrong;
    EXPECT_EQ(download(wrong), "error 5") << wrong;
  }
  for (const std::string& wrong : std::vector<std::string>{
           "reference3/", "reference3/" + digest, "reference3/../../etc/passwd",
           "reference3/" + digest + "/a/b", "reference3/" + digest + "/"}) {
    EXPECT_EQ(Upload(wrong, size, {bytes}).error_code(), refused) << wrong;
    EXPECT_EQ(download(wrong), "error 5") << wrong;
  }
  EXPECT_EQ(Upload(name, 5, {"other"}).error_code(), refused) << "the bytes are not an artifact";
  EXPECT_EQ(download(name), bytes) << "the reference is unchanged";
}

TEST_F(WorkerServiceTest, NonNumericResultIsRejectedAndFlagsItsWorker) {
  v1::SynchronizeRequest request = RemoteWorker::Hello("w");
  v1::SynchronizeResponse response;
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &v1::TuningService::Stub::CreateJob, Request(10), &job), IsOk());
  request.set_max_wait_ms(30000);
  request.set_free_build_slots(1);
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
  ASSERT_EQ(response.start_size(), 1);
  EXPECT_GT(response.heartbeat_ms(), 0);
  v1::FinishedLease& finished = *request.add_finished();
  finished.set_lease_id(response.start(0).lease_id());
  finished.mutable_result()->set_outcome(v1::OUTCOME_OK);
  finished.mutable_result()->set_latency_ns(std::numeric_limits<double>::quiet_NaN());
  ASSERT_THAT(Call(*working, &WorkerStub::Synchronize, request, &response), IsOk());
  ASSERT_EQ(response.durable_size(), 1) << "the worker may drop the result";
  EXPECT_EQ(response.durable(0), finished.lease_id());
  EXPECT_THAT(response.refused(), HasSubstr("latency ns"));
  EXPECT_EQ(response.start_size(), 0);
  v1::ListWorkersResponse workers;
  ASSERT_THAT(
      Call(*tuning, &v1::TuningService::Stub::ListWorkers, v1::ListWorkersRequest(), &workers),
      IsOk());
  EXPECT_THAT(workers.workers(0).flagged(), HasSubstr("latency ns"));
}

TEST_F(WorkerServiceTest, InvalidReportNamesTheField) {
  struct Case {
    const char* field;
    std::function<void(v1::SynchronizeRequest&)> spoil;
  };
  const Case cases[] = {
      {"worker_id", [](auto& r) { r.clear_worker_id(); }},
      {"epoch", [](auto& r) { r.clear_epoch(); }},
      {"target_key", [](auto& r) { r.mutable_capabilities()->clear_target_key(); }},
      {"free_build_slots", [](auto& r) { r.set_free_build_slots(-1); }},
      {"free_run_slots", [](auto& r) { r.set_free_run_slots(1 << 30); }},
      {"max_wait_ms", [](auto& r) { r.set_max_wait_ms(-1); }},
      {"held.phase", [](auto& r) { r.add_held()->set_lease_id("x"); }},
      {"peak_gflops", [](auto& r) { r.mutable_capabilities()->set_peak_gflops(-1); }},
      {"memory_bytes", [](auto& r) { r.mutable_capabilities()->set_memory_bytes(-1); }},
      {"build_isas", [](auto& r) { r.mutable_capabilities()->add_build_isas(""); }},
  };
  for (const Case& c : cases) {
    v1::SynchronizeRequest request = RemoteWorker::Hello("w");
    c.spoil(request);
    v1::SynchronizeResponse response;
    const grpc::Status status = Call(*working, &WorkerStub::Synchronize, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << c.field;
    EXPECT_THAT(status.error_message(), HasSubstr(FieldWords(c.field)));
  }
}

}  // namespace
}  // namespace hone::service

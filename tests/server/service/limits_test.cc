// Limits on what one caller can use up, over real sockets.

#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/rpc/channel.h"
#include "common/rpc/listener.h"
#include "common/rpc/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/dashboard.pb.h"
#include "nlohmann/json.hpp"
#include "server/service/gate.h"
#include "server/store/store.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using LimitedStub = v1::TuningService::Stub;

// Counts refusals.
class RefusalObserver final : public ServerObserver {
 public:
  void OnCall(absl::string_view, grpc::StatusCode, absl::Duration) override {}
  void OnRefusal(absl::string_view method, absl::string_view reason) override {
    absl::MutexLock lock(&mutex_);
    ++refusals_[absl::StrCat(method.substr(method.rfind('/') + 1), " ", reason)];
  }
  void OnRefusedConnection(absl::string_view reason) override {
    absl::MutexLock lock(&mutex_);
    ++refusals_[std::string(reason)];
  }
  void OnSynchronize(absl::Duration) override {}
  void OnResult(record::Outcome) override {}
  // By method and reason, or by the reason for a connection.
  std::map<std::string, int> refusals() {
    absl::MutexLock lock(&mutex_);
    return refusals_;
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, int> refusals_ ABSL_GUARDED_BY(mutex_);
};

class LimitsTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void TearDown() override { Stop(); }  // before the observer is destroyed
  // Starts a server that also listens on a loopback port, for clients with tokens.
  void Serve(ServerOptions options = {}) {
    options.listen.push_back({*rpc::Address::Parse("127.0.0.1:0"), rpc::Role::kClient});
    options.tokens = std::make_shared<const rpc::TokenTable>(
        *rpc::TokenTable::Parse(rpc::TokenLine({"ann", rpc::Role::kClient}, "token-of-ann") +
                                rpc::TokenLine({"bob", rpc::Role::kClient}, "token-of-bob")));
    options.observer = &observer_;
    options.audit_log = folder + "/audit.jsonl";
    auto store = store::OpenSqliteStore(folder + "/hone.db");
    ASSERT_THAT(store, IsOk());
    store_ = store->get();
    ASSERT_THAT(StartWith(*std::move(store), std::move(options)), IsOk());
  }
  std::shared_ptr<grpc::Channel> Dial(const std::string& token) {
    return *rpc::CreateChannel(server->addresses()[1].ToText(),
                               rpc::ChannelSecurity{.token = token});
  }
  static absl::Status List(const std::shared_ptr<grpc::Channel>& channel,
                           absl::Duration limit = absl::Minutes(1)) {
    grpc::ClientContext context;
    rpc::SetDeadline(context, limit);
    v1::ListJobsResponse jobs;
    return rpc::FromGrpc(
        v1::TuningService::NewStub(channel)->ListJobs(&context, v1::ListJobsRequest(), &jobs));
  }
  // Sends an artifact as a worker, and returns its digest.
  std::string Upload(const std::string& bytes) {
    grpc::ClientContext context;
    v1::UploadArtifactResponse response;
    auto writer = working->UploadArtifact(&context, &response);
    v1::WorkerArtifactChunk chunk;
    chunk.set_digest(Sha256Of(bytes));
    chunk.set_total_bytes(static_cast<int64_t>(bytes.size()));
    for (size_t sent = 0; sent < bytes.size(); sent += rpc::kChunkBytes) {
      chunk.set_data(bytes.substr(sent, rpc::kChunkBytes));
      writer->Write(chunk);
    }
    writer->WritesDone();
    EXPECT_THAT(writer->Finish(), IsOk());
    return Sha256Of(bytes);
  }
  static absl::Status Get(const std::shared_ptr<grpc::Channel>& channel,
                          const std::string& digest) {
    grpc::ClientContext context;
    rpc::SetDeadline(context, absl::Minutes(1));
    v1::GetArtifactRequest request;
    request.set_digest(digest);
    auto reader = v1::TuningService::NewStub(channel)->GetArtifact(&context, request);
    std::string bytes;
    for (v1::ArtifactChunk chunk; reader->Read(&chunk);) bytes += chunk.data();
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(!status.ok() || Sha256Of(bytes) == digest);
    return rpc::FromGrpc(status);
  }
  // The entries of the audit log, as JSON. Ends the server, which writes the last ones.
  std::vector<nlohmann::json> Audit() {
    Stop();
    std::vector<nlohmann::json> entries;
    const std::string text = ReadFile(folder + "/audit.jsonl").value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      entries.push_back(nlohmann::json::parse(line.begin(), line.end(), nullptr, false));
      EXPECT_TRUE(entries.back().is_object()) << line;
    }
    return entries;
  }

  RefusalObserver observer_;
  store::Store* store_ = nullptr;  // of the server
};

TEST_F(LimitsTest, ALongRequestIsNotParsed) {
  Serve();
  int checked = 0;
  for (const auto* file :
       {v1::CreateJobRequest::descriptor()->file(), v1::SynchronizeRequest::descriptor()->file(),
        v1::DrainWorkerRequest::descriptor()->file(),
        v1::OpenDashboardRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const auto* method = file->service(i)->method(j);
        if (method->client_streaming()) continue;
        const std::string path =
            absl::StrCat("/", file->service(i)->full_name(), "/", method->name());
        const size_t most = FindAccess(path)->max_bytes;
        // gRPC itself refuses a message over the limit of all methods.
        if (most >= size_t{rpc::kMaxMessageBytes}) continue;
        // These bytes are no message, which is found out only if they are parsed.
        const absl::Status refused = Raw(channel, path, std::string(most + 1, '\x07'));
        EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                      AllOf(HasSubstr(absl::StrCat(most + 1, " bytes")),
                                            HasSubstr(absl::StrCat("at most ", most)))))
            << path;
        EXPECT_EQ(rpc::ReasonOf(refused), "MESSAGE_SIZE");
        EXPECT_EQ(observer_.refusals()[absl::StrCat(method->name(), " MESSAGE_SIZE")], 1);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 20);
  EXPECT_THAT(Raw(channel, "/hone.v1.TuningService/ListJobs", std::string(128 << 10, '\x07')),
              StatusIs(absl::StatusCode::kInvalidArgument))
      << "it is parsed";
}

TEST_F(LimitsTest, ALongMessageOfAStreamIsRefused) {
  Serve();
  grpc::ClientContext context;
  v1::UploadArtifactResponse response;
  auto writer = working->UploadArtifact(&context, &response);
  v1::WorkerArtifactChunk chunk;
  const std::string bytes(kMaxChunkBytes, 'a');
  chunk.set_digest(Sha256Of(bytes));
  chunk.set_total_bytes(static_cast<int64_t>(bytes.size()));
  chunk.set_data(bytes);
  writer->Write(chunk);
  writer->WritesDone();
  EXPECT_THAT(rpc::FromGrpc(writer->Finish()),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at most 4194304")));
}

// The caller is known before its request is parsed.
TEST_F(LimitsTest, ALongRequestOfAnUnknownCallerIsNotParsed) {
  Serve();
  const std::string create = "/hone.v1.TuningService/CreateJob";
  for (const size_t bytes : {size_t{100}, size_t{1} << 20}) {
    EXPECT_THAT(Raw(Dial("token-of-mallory"), create, std::string(bytes, '\x07')),
                StatusIs(absl::StatusCode::kUnauthenticated));
    EXPECT_THAT(Raw(Dial("token-of-ann"), create, std::string(bytes, '\x07')),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_EQ(observer_.refusals()["CreateJob TOKEN_UNKNOWN"], 2);
}

TEST_F(LimitsTest, CallsOnAConnectionAreLimited) {
  Serve();
  RemoteWorker worker(Connect(), "w");
  worker.slow = 1;
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &LimitedStub::CreateJob, Request(100), &job), IsOk());
  v1::GetJobRequest watch;
  watch.set_id(job.id());
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Job>> reader;
  };
  std::list<Watch> watches;
  for (int i = 0; i < rpc::kMaxStreams; ++i) {
    Watch& one = watches.emplace_back();
    one.reader = tuning->WatchJob(&one.context, watch);
    v1::Job state;
    ASSERT_TRUE(one.reader->Read(&state)) << i;
  }
  EXPECT_THAT(List(channel, absl::Seconds(2)), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(List(Connect()), IsOk()) << "other connections are not affected";
  watches.front().context.TryCancel();
  watches.front().reader->Finish();
  watches.pop_front();
  EXPECT_THAT(List(channel), IsOk());
  for (Watch& one : watches) one.context.TryCancel();
  for (Watch& one : watches) one.reader->Finish();
}

TEST_F(LimitsTest, ConnectionsAreLimitedAndCounted) {
  ServerOptions options;
  options.connections = {.all = 100, .of_host = 2, .grace = absl::Hours(1)};
  Serve(std::move(options));
  std::shared_ptr<grpc::Channel> first = Dial("token-of-ann");
  const std::shared_ptr<grpc::Channel> second = Dial("token-of-bob");
  EXPECT_THAT(List(first), IsOk());
  EXPECT_THAT(List(second), IsOk());
  EXPECT_EQ(Metric("hone_connections", "used"), 2);
  EXPECT_EQ(Metric("hone_connections", "unused"), 0);
  EXPECT_THAT(List(Dial("token-of-ann")), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_GE(observer_.refusals()["connections_of_host"], 1);
  EXPECT_THAT(List(second), IsOk()) << "existing connections continue";
  EXPECT_THAT(List(channel), IsOk()) << "a Unix socket has no limit";
  first.reset();
  EXPECT_TRUE(Eventually([&] { return List(Dial("token-of-ann")).ok(); }));
  const std::vector<nlohmann::json> audit = Audit();
  ASSERT_FALSE(audit.empty());
  EXPECT_EQ(audit[0]["reason"], "connections_of_host");
  EXPECT_EQ(audit[0]["peer"], "127.0.0.1");
}

// Strangers who hold connections do not lock out others.
TEST_F(LimitsTest, ConnectionsOfUnknownCallersMakeRoom) {
  ServerOptions options;
  options.connections = {.all = 8, .of_host = 4, .grace = absl::ZeroDuration()};
  Serve(std::move(options));
  const std::shared_ptr<grpc::Channel> ann = Dial("token-of-ann");
  EXPECT_THAT(List(ann), IsOk());
  std::vector<std::shared_ptr<grpc::Channel>> strangers;
  for (int i = 0; i < 12; ++i) {
    strangers.push_back(Dial("token-of-mallory"));
    EXPECT_THAT(List(strangers.back()), StatusIs(absl::StatusCode::kUnauthenticated));
  }
  EXPECT_THAT(List(ann), IsOk());
  EXPECT_EQ(Metric("hone_connections", "used"), 1);
  const std::shared_ptr<grpc::Channel> bob = Dial("token-of-bob");
  EXPECT_THAT(List(bob), IsOk());
  EXPECT_EQ(Metric("hone_connections", "used"), 2);
}

TEST_F(LimitsTest, ADownloadThatIsNotReadIsEnded) {
  ServerOptions options;
  options.downloads.stall_limit = absl::Seconds(5);
  Serve(std::move(options));
  const std::string digest = Upload(std::string(32 << 20, 'a'));
  EXPECT_THAT(Get(channel, digest), IsOk()) << "one that is read is not ended";
  grpc::ClientContext context;
  rpc::SetDeadline(context, absl::Minutes(1));
  v1::GetArtifactRequest request;
  request.set_digest(digest);
  auto reader = tuning->GetArtifact(&context, request);
  v1::ArtifactChunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  absl::SleepFor(absl::Seconds(10));  // much longer than the limit, for a busy machine
  size_t received = chunk.data().size();
  while (reader->Read(&chunk)) received += chunk.data().size();
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_LT(received, size_t{32} << 20);
}

TEST_F(LimitsTest, AllDownloadsShareTheirMemory) {
  ServerOptions options;
  options.downloads.max_bytes = 1000;
  Serve(std::move(options));
  EXPECT_THAT(Get(channel, Upload(std::string(1000, 'a'))), IsOk());
  EXPECT_THAT(Get(channel, Upload(std::string(1001, 'b'))),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("try again")));
  const std::string last = Upload(std::string(999, 'c'));
  EXPECT_TRUE(Eventually([&] { return Get(channel, last).ok(); }))
      << "the first one frees its bytes, shortly after it has ended";
}

TEST_F(LimitsTest, ClientsGetPublishedArtifacts) {
  Serve();
  const std::string bytes = "code that nobody has checked";
  const std::string digest = Upload(bytes);
  const auto ann = Dial("token-of-ann");
  EXPECT_THAT(Get(ann, digest), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Get(channel, digest), IsOk()) << "administrators get all";
  store_->PutArtifact(digest, bytes, [](const absl::Status&) {});
  ASSERT_THAT(store_->Flush(), IsOk());
  EXPECT_THAT(Get(ann, digest), IsOk());
}

TEST_F(LimitsTest, AClientGetsTheArtifactOfItsOwnUnpublishedJob) {
  Serve();
  RemoteWorker worker(channel, "w");
  v1::CreateJobRequest request = Request(4);
  request.set_unpublished(true);
  const auto ann = Dial("token-of-ann");
  v1::Job job;
  ASSERT_THAT(Call(*v1::TuningService::NewStub(ann), &LimitedStub::CreateJob, request, &job),
              IsOk());
  job = WaitForEnd(job.id());
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  const std::string& digest = job.best().record().result().artifact_digest();
  ASSERT_NE(digest, "");
  EXPECT_THAT(Get(ann, digest), IsOk());
  EXPECT_THAT(Get(Dial("token-of-bob"), digest), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(LimitsTest, RefusalsAreCountedInTheAuditLog) {
  Serve({.audit = {.refusal_interval = absl::Hours(1)}});
  const auto stranger = Dial("token-of-mallory");
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(List(stranger), StatusIs(absl::StatusCode::kUnauthenticated));
  }
  EXPECT_TRUE(Eventually([&] { return observer_.refusals()["ListJobs TOKEN_UNKNOWN"] == 50; }));
  const std::vector<nlohmann::json> audit = Audit();
  ASSERT_EQ(audit.size(), 2u);
  for (const nlohmann::json& entry : audit) {
    EXPECT_EQ(entry["method"], "TuningService/ListJobs");
    EXPECT_EQ(entry["peer"], "127.0.0.1");
    EXPECT_EQ(entry["reason"], "TOKEN_UNKNOWN");
  }
  EXPECT_FALSE(audit[0].contains("count"));
  EXPECT_EQ(audit[1]["count"], 49);
}

TEST(AuditLimitTest, RefusedCallsDoNotPushOutOtherEntries) {
  const TemporaryFolder folder;
  const std::string path = folder / "audit.jsonl";
  {
    HONE_ASSERT_OK_AND_ASSIGN(auto log, AuditLog::Open(path, {.max_bytes = 64 << 10,
                                                              .kept = 1,
                                                              .refusal_interval = absl::Hours(1)}));
    log->Write({.time = absl::UnixEpoch(), .who = "ann", .resource = "precious"});
    for (int i = 0; i < 100'000; ++i) {
      log->WriteRefusal({.time = absl::UnixEpoch(),
                         .peer = absl::StrCat("10.0.", i % 1000 / 250, ".", i % 250),
                         .method = "TuningService/ListJobs",
                         .result = "UNAUTHENTICATED",
                         .detail = "the server does not know this token",
                         .reason = i % 3 == 0 ? "TOKEN_UNKNOWN" : "TOKEN_MISSING"});
    }
  }
  const std::string text = ReadFile(path).value();
  EXPECT_THAT(text, HasSubstr("precious"));
  EXPECT_THAT(text, HasSubstr("other peers"));
  EXPECT_NE(access(absl::StrCat(path, ".1").c_str(), F_OK), 0) << "nothing was rotated";
  int64_t refusals = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const auto entry = nlohmann::json::parse(line.begin(), line.end());
    if (entry.contains("reason")) refusals += entry.value("count", 1);
  }
  EXPECT_EQ(refusals, 100'000) << "all of them are counted";
}

TEST(AuditLimitTest, CountsAreWrittenAfterAnInterval) {
  const TemporaryFolder folder;
  const std::string path = folder / "audit.jsonl";
  HONE_ASSERT_OK_AND_ASSIGN(auto log, AuditLog::Open(path, {.refusal_interval = absl::Seconds(5)}));
  const auto lines = [&] {
    const std::string text = ReadFile(path).value();
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto refuse = [&] { log->WriteRefusal({.peer = "10.0.0.1", .reason = "ROLE"}); };
  for (int i = 0; i < 3; ++i) refuse();
  EXPECT_EQ(lines(), 1);
  absl::SleepFor(absl::Milliseconds(5100));
  log->Tick();
  EXPECT_EQ(lines(), 2);
  EXPECT_THAT(ReadFile(path).value(), HasSubstr("\"count\":2"));
  refuse();
  EXPECT_EQ(lines(), 3) << "the next one is written at once again";
}

}  // namespace
}  // namespace hone::service

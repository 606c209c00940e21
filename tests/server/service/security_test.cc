// Access control over real sockets.

#include <google/protobuf/descriptor.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/config_file.h"
#include "common/base/file.h"
#include "common/rpc/certificate.h"
#include "common/rpc/channel.h"
#include "common/rpc/revocation.h"
#include "common/rpc/secret.h"
#include "common/rpc/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/dashboard.pb.h"
#include "nlohmann/json.hpp"
#include "server/service/gate.h"
#include "server/service/offline_commands.h"
#include "tests/fakes/kept_log.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Tuning = v1::TuningService::Stub;
using Working = v1::WorkerService::Stub;

constexpr char kAnn[] = "token-of-ann";
constexpr char kBob[] = "token-of-bob";
constexpr char kPi[] = "token-of-pi-07";
constexpr char kRoot[] = "token-of-root";

std::shared_ptr<const rpc::TokenTable> Tokens() {
  return std::make_shared<const rpc::TokenTable>(
      *rpc::TokenTable::Parse(rpc::TokenLine({"ann", rpc::Role::kClient}, kAnn) +
                              rpc::TokenLine({"bob", rpc::Role::kClient}, kBob) +
                              rpc::TokenLine({"pi-07", rpc::Role::kWorker}, kPi) +
                              rpc::TokenLine({"root", rpc::Role::kAdmin}, kRoot)));
}

class SecurityTest : public ::testing::Test, protected ServiceHarness {
 protected:
  // Starts a server that also listens on loopback ports and requires tokens there.
  void Serve(ServerOptions options = {}) {
    options.listen.push_back({*rpc::Address::Parse("127.0.0.1:0"), rpc::Role::kClient});
    options.listen.push_back({*rpc::Address::Parse("127.0.0.1:0"), rpc::Role::kWorker});
    options.listen.push_back({*rpc::Address::Parse("127.0.0.1:0"), rpc::Role::kAdmin});
    options.tokens = Tokens();
    options.audit_log = folder + "/audit.jsonl";
    ASSERT_THAT(Start(std::move(options)), IsOk());
  }
  std::shared_ptr<grpc::Channel> Dial(int listener, const std::string& token) {
    return *rpc::CreateChannel(server->addresses()[listener].ToText(),
                               rpc::ChannelSecurity{.token = token});
  }
  static absl::Status List(const std::shared_ptr<grpc::Channel>& channel) {
    v1::ListJobsResponse response;
    return rpc::FromGrpc(Call(*v1::TuningService::NewStub(channel), &Tuning::ListJobs,
                              v1::ListJobsRequest(), &response));
  }
  static absl::Status Synchronize(const std::shared_ptr<grpc::Channel>& channel,
                                  const std::string& id) {
    v1::SynchronizeRequest request = RemoteWorker::Hello(id);
    request.set_max_wait_ms(0);
    v1::SynchronizeResponse response;
    return rpc::FromGrpc(
        Call(*v1::WorkerService::NewStub(channel), &Working::Synchronize, request, &response));
  }
  std::string Audit() { return ReadFile(folder + "/audit.jsonl").value_or(""); }

  static constexpr int kUnix = 0;
  static constexpr int kClients = 1;
  static constexpr int kWorkers = 2;
  static constexpr int kAdmin = 3;
};

TEST(AccessTest, EveryMethodHasAnAccessRule) {
  std::set<std::string> methods;
  for (const auto* file :
       {v1::CreateJobRequest::descriptor()->file(), v1::SynchronizeRequest::descriptor()->file(),
        v1::DrainWorkerRequest::descriptor()->file(),
        v1::OpenDashboardRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const auto* method = file->service(i)->method(j);
        const std::string path =
            absl::StrCat("/", file->service(i)->full_name(), "/", method->name());
        const Access* access = FindAccess(path);
        ASSERT_NE(access, nullptr) << path;
        methods.insert(path);
        if (!access->resource.empty()) {
          EXPECT_NE(method->input_type()->FindFieldByName(std::string(access->resource)), nullptr)
              << path;
        }
      }
    }
  }
  EXPECT_EQ(methods.size(), 37u);
  EXPECT_EQ(FindAccess("/hone.v1.AdminService/DrainWorker")->role, rpc::Role::kAdmin);
  EXPECT_EQ(FindAccess("/hone.v1.Other/Call"), nullptr);
}

TEST_F(SecurityTest, EveryMethodIsServed) {
  Serve();
  for (const auto* file :
       {v1::CreateJobRequest::descriptor()->file(), v1::SynchronizeRequest::descriptor()->file(),
        v1::DrainWorkerRequest::descriptor()->file(),
        v1::OpenDashboardRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const std::string path = absl::StrCat("/", file->service(i)->full_name(), "/",
                                              file->service(i)->method(j)->name());
        // These bytes are not a valid request of any method.
        EXPECT_NE(Raw(channel, path, "\x12\x7f").code(), absl::StatusCode::kUnimplemented) << path;
      }
    }
  }
}

TEST_F(SecurityTest, EachRoleMayCallItsMethodsOnly) {
  Serve();
  EXPECT_THAT(List(Dial(kClients, kAnn)), IsOk());
  EXPECT_THAT(List(Dial(kClients, kRoot)), IsOk());
  const absl::Status wrong = List(Dial(kClients, kPi));
  EXPECT_THAT(wrong,
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("pi-07 has the role worker, and this needs the role client")));
  EXPECT_EQ(rpc::ReasonOf(wrong), "ROLE");
  EXPECT_THAT(Synchronize(Dial(kWorkers, kPi), "pi-07"), IsOk());
  EXPECT_THAT(Synchronize(Dial(kWorkers, kAnn), "pi-07"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  v1::RemoveWorkerResponse response;
  v1::RemoveWorkerRequest request;
  request.set_id("pi-07");
  for (const char* token : {kAnn, kPi}) {
    EXPECT_EQ(Call(*v1::AdminService::NewStub(Dial(kAdmin, token)),
                   &v1::AdminService::Stub::RemoveWorker, request, &response)
                  .error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST_F(SecurityTest, UnauthenticatedAndUnknownCallersAreRejected) {
  Serve();
  const absl::Status nobody = List(Dial(kClients, ""));
  EXPECT_THAT(nobody, StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(rpc::ReasonOf(nobody), "TOKEN_MISSING");
  const absl::Status stranger = List(Dial(kClients, "token-of-mallory"));
  EXPECT_THAT(stranger, StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(rpc::ReasonOf(stranger), "TOKEN_UNKNOWN");
  EXPECT_THAT(std::string(stranger.message()), Not(HasSubstr("mallory")));
}

TEST_F(SecurityTest, UnixSocketIsProtectedByItsFolder) {
  Serve();
  EXPECT_THAT(List(Dial(kUnix, "")), IsOk());
  EXPECT_THAT(Synchronize(Dial(kUnix, ""), "anybody"), IsOk());
  struct stat info;
  ASSERT_EQ(stat(address.path.c_str(), &info), 0);
}

TEST_F(SecurityTest, EachListenerServesItsRoleOnly) {
  Serve();
  EXPECT_THAT(List(Dial(kWorkers, kAnn)),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("serves workers only")));
  EXPECT_THAT(Synchronize(Dial(kClients, kPi), "pi-07"),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(SecurityTest, WorkerCannotUseAnotherName) {
  Serve();
  EXPECT_THAT(
      Synchronize(Dial(kWorkers, kPi), "pi-08"),
      StatusIs(absl::StatusCode::kPermissionDenied,
               HasSubstr("calls itself 'pi-08', but its certificate or token is of 'pi-07'")));
}

TEST_F(SecurityTest, RateLimitReportsRetryDelay) {
  Serve({.calls_per_second = 0.5});  // so few that a busy machine exceeds it, too
  const auto ann = Dial(kClients, kAnn);
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = List(ann);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_TRUE(rpc::RetryAfter(status).has_value());
  EXPECT_LE(*rpc::RetryAfter(status), absl::Seconds(2));
  EXPECT_THAT(List(Dial(kClients, kRoot)), IsOk()) << "each caller has its own limit";
}

TEST_F(SecurityTest, RevokedTokenIsRejectedAtTheNextCall) {
  Serve();
  const auto ann = Dial(kClients, kAnn);
  ASSERT_THAT(List(ann), IsOk());
  auto rest = std::make_shared<const rpc::TokenTable>(
      *rpc::TokenTable::Parse(rpc::TokenLine({"root", rpc::Role::kAdmin}, kRoot) +
                              rpc::TokenLine({"bob", rpc::Role::kClient}, "token-of-bob")));
  ASSERT_THAT(server->ReplaceTokens(rest), IsOk());
  EXPECT_EQ(rpc::ReasonOf(List(ann)), "TOKEN_UNKNOWN") << "also on an existing connection";
  {
    const KeptLog log;
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(Synchronize(Dial(kWorkers, kPi), "pi\n07"),
                  StatusIs(absl::StatusCode::kUnauthenticated));
    }
    EXPECT_THAT(
        std::vector<std::string>(absl::StrSplit(log.text(), "in the name of the worker")),
        ElementsAre(_, HasSubstr(" 'pi\\n07' from 127.0.0.1 was refused: the server does not "
                                 "know this token")))
        << "said once: " << log.text();
  }
  EXPECT_THAT(List(Dial(kClients, "token-of-bob")), IsOk());
  EXPECT_THAT(server->ReplaceTokens(nullptr), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(rpc::ReasonOf(List(ann)), "TOKEN_UNKNOWN") << "the refused call changes nothing";
}

class MethodObserver final : public ServerObserver {
 public:
  void OnCall(absl::string_view method, grpc::StatusCode, absl::Duration) override {
    absl::MutexLock lock(&mutex_);
    methods_.insert(std::string(method));
  }
  void OnRefusal(absl::string_view, absl::string_view) override {}
  void OnRefusedConnection(absl::string_view) override {}
  void OnSynchronize(absl::Duration) override {}
  void OnResult(record::Outcome) override {}
  std::set<std::string> methods() {
    absl::MutexLock lock(&mutex_);
    return methods_;
  }

 private:
  absl::Mutex mutex_;
  std::set<std::string> methods_ ABSL_GUARDED_BY(mutex_);
};

// Metrics are kept per method name, and unauthenticated callers can send any name.
TEST_F(SecurityTest, UnknownMethodsAreCountedAsOne) {
  MethodObserver observer;
  ServerOptions options;
  options.observer = &observer;
  Serve(std::move(options));
  const auto stranger = Dial(kClients, "");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Raw(stranger, absl::StrCat("/hone.v1.TuningService/MadeUp", i), ""),
                StatusIs(absl::StatusCode::kUnimplemented));
  }
  EXPECT_TRUE(Eventually([&] { return !observer.methods().empty(); }));
  Stop();
  EXPECT_EQ(observer.methods(), std::set<std::string>{"/hone.v1/unknown"});
}

TEST_F(SecurityTest, JobRecordsItsOwner) {
  Serve();
  RemoteWorker worker(channel, "w");
  v1::Job job;
  const auto stub = v1::TuningService::NewStub(Dial(kClients, kAnn));
  ASSERT_THAT(Call(*stub, &Tuning::CreateJob, Request(1), &job), IsOk());
  EXPECT_EQ(job.owner(), "ann");
  EXPECT_EQ(WaitForEnd(job.id()).owner(), "ann");
}

TEST_F(SecurityTest, OnlyItsOwnerAndAdministratorsControlAJob) {
  Serve();
  RemoteWorker worker(channel, "w");
  worker.slow = 1;
  const auto ann = v1::TuningService::NewStub(Dial(kClients, kAnn));
  const auto bob = v1::TuningService::NewStub(Dial(kClients, kBob));
  v1::Job job;
  ASSERT_THAT(Call(*ann, &Tuning::CreateJob, Request(100), &job), IsOk());
  v1::CancelJobRequest cancel;
  cancel.set_id(job.id());
  v1::ResumeJobRequest resume;
  resume.set_id(job.id());
  const auto expect_refused = [&](const grpc::Status& status) {
    EXPECT_THAT(rpc::FromGrpc(status),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("belongs to 'ann', and 'bob' may only cancel and resume")));
  };
  expect_refused(Call(*bob, &Tuning::CancelJob, cancel, &job));
  ASSERT_THAT(Call(*bob, &Tuning::GetJob, JobOf(cancel.id()), &job), IsOk())
      << "reading is allowed";
  EXPECT_NE(job.state(), v1::JOB_STATE_CANCELLED);
  ASSERT_THAT(Call(*ann, &Tuning::CancelJob, cancel, &job), IsOk());
  WaitForEnd(cancel.id());
  expect_refused(Call(*bob, &Tuning::ResumeJob, resume, &job));
  // Its end may not be stored yet.
  ASSERT_TRUE(Eventually([&] { return Call(*ann, &Tuning::ResumeJob, resume, &job).ok(); }));
  ASSERT_THAT(Call(*tuning, &Tuning::CancelJob, cancel, &job), IsOk()) << "from this machine";
  WaitForEnd(cancel.id());
  cancel.set_id("nothing");
  EXPECT_EQ(Call(*bob, &Tuning::CancelJob, cancel, &job).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(SecurityTest, AuditLogNamesCallersWithoutSecrets) {
  Serve();
  RemoteWorker worker(channel, "w");
  v1::Job job;
  const auto stub = v1::TuningService::NewStub(Dial(kClients, kAnn));
  ASSERT_THAT(Call(*stub, &Tuning::CreateJob, Request(1, "my-request"), &job), IsOk());
  EXPECT_FALSE(List(Dial(kClients, "token-of-mallory")).ok());
  EXPECT_FALSE(List(Dial(kClients, kPi)).ok());
  Stop();
  std::vector<nlohmann::json> lines;
  for (absl::string_view line : absl::StrSplit(Audit(), '\n', absl::SkipEmpty())) {
    lines.push_back(nlohmann::json::parse(line.begin(), line.end(), nullptr, false));
    ASSERT_TRUE(lines.back().is_object()) << line;
  }
  ASSERT_EQ(lines.size(), 3u) << Audit();
  EXPECT_EQ(lines[0]["who"], "ann");
  EXPECT_EQ(lines[0]["role"], "client");
  EXPECT_EQ(lines[0]["peer"], "127.0.0.1");
  EXPECT_EQ(lines[0]["method"], "TuningService/CreateJob");
  EXPECT_EQ(lines[0]["resource"], "my-request");
  EXPECT_EQ(lines[0]["result"], "OK");
  EXPECT_EQ(lines[1]["result"], "UNAUTHENTICATED");
  EXPECT_EQ(lines[1]["who"], "");
  EXPECT_EQ(lines[2]["result"], "PERMISSION_DENIED");
  EXPECT_EQ(lines[2]["who"], "pi-07");
  for (const char* secret : {kAnn, kPi, kRoot, "mallory"}) {
    EXPECT_THAT(Audit(), Not(HasSubstr(secret)));
    EXPECT_THAT(Audit(), Not(HasSubstr(rpc::HashToken(secret))));
  }
  struct stat info;
  ASSERT_EQ(stat((folder + "/audit.jsonl").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(SecurityTest, AuditLogIsRotated) {
  HONE_ASSERT_OK_AND_ASSIGN(auto log, AuditLog::Open(folder + "/a", {.max_bytes = 400, .kept = 2}));
  for (int i = 0; i < 20; ++i) {
    log->Write({.time = absl::UnixEpoch(), .who = "ann\n", .resource = absl::StrCat(i)});
  }
  std::string all;
  for (const char* name : {"/a.2", "/a.1", "/a"}) {
    const std::string part = ReadFile(folder + name).value_or("");
    EXPECT_LE(part.size(), 400u) << name;
    EXPECT_FALSE(part.empty()) << name;
    all += part;
  }
  EXPECT_NE(access((folder + "/a.3").c_str(), F_OK), 0);
  EXPECT_THAT(all, HasSubstr("\"resource\":\"19\""));
  EXPECT_THAT(all, HasSubstr("ann\\n"));
}

TEST_F(SecurityTest, AuditLogThatCannotBeReopenedKeepsItsFiles) {
  const std::string path = folder + "/a";
  HONE_ASSERT_OK_AND_ASSIGN(auto log, AuditLog::Open(path, {.max_bytes = 400, .kept = 2}));
  const auto write = [&](int entry) {
    log->Write({.time = absl::UnixEpoch(), .who = "ann", .resource = absl::StrCat(entry)});
  };
  for (int i = 0; i < 20; ++i) write(i);
  // Files can be renamed, but not opened. This holds for root too.
  rlimit files;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  rlimit none = files;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 20; i < 40; ++i) write(i);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "the test needs a rotation";
  EXPECT_THAT(ReadFile(path + ".1").value_or(""), HasSubstr("\"resource\":\"19\""));
  EXPECT_NE(ReadFile(path + ".2").value_or(""), "");
  write(40);
  EXPECT_THAT(ReadFile(path).value_or(""), HasSubstr("\"resource\":\"40\""));
}

TEST_F(SecurityTest, RemoteAddressesNeedTlsAndAuthentication) {
  ServerOptions options;
  options.listen = {{*rpc::Address::Parse("0.0.0.0:0")}};
  EXPECT_THAT(std::string(CheckListeners(options).message()), HasSubstr("not encrypted"));
  const rpc::KeyPair authority =
      *rpc::MakeAuthority("Test", absl::UnixEpoch(), absl::Now() + absl::Hours(1));
  options.security.identity =
      *rpc::IssueCertificate(authority, {.common_name = "s",
                                         .hosts = {"localhost"},
                                         .server = true,
                                         .not_before = absl::Now() - absl::Hours(1),
                                         .not_after = absl::Now() + absl::Hours(1)});
  EXPECT_THAT(std::string(CheckListeners(options).message()),
              HasSubstr("callers are not authenticated"));
  options.tokens = Tokens();
  EXPECT_THAT(CheckListeners(options), IsOk());
  options.tokens = nullptr;
  options.security.client_ca = authority.certificate;
  EXPECT_THAT(CheckListeners(options), IsOk());
  options = {.listen = options.listen, .security = {.insecure = true}};
  EXPECT_THAT(CheckListeners(options), IsOk());
}

TEST_F(SecurityTest, MalformedRequestIsInvalidArgument) {
  Serve();
  const auto raw = [&](const std::string& method, const std::string& bytes) {
    return Raw(channel, method, bytes);
  };
  const std::string create = "/hone.v1.TuningService/CreateJob";
  const absl::Status utf8 = raw(create, "\x12\x02\xc3\x28");  // field 2: workload
  EXPECT_THAT(utf8,
              StatusIs(absl::StatusCode::kInvalidArgument, "workload: the text is not UTF-8"));
  EXPECT_THAT(raw(create, "\x12\x7f"), StatusIs(absl::StatusCode::kInvalidArgument));
  std::string nested;  // groups of an unknown field, 200 deep
  for (int i = 0; i < 200; ++i) nested += "\x9b\x06";
  for (int i = 0; i < 200; ++i) nested += "\x9c\x06";
  EXPECT_THAT(raw(create, nested), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(raw("/hone.v1.TuningService/Nothing", ""),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(raw(create, std::string(rpc::kMaxMessageBytes + 1, 'x')),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(MessageLimitsTest, NamesTheField) {
  v1::SynchronizeRequest request;
  EXPECT_THAT(CheckMessage(request), IsOk());
  request.set_worker_id(std::string(kMaxNameBytes + 1, 'x'));
  EXPECT_EQ(CheckMessage(request).message(), "worker id: 4097 bytes; at most 4096 are allowed");
  request.set_worker_id("a\x1b[31m");
  EXPECT_EQ(CheckMessage(request).message(), "worker id: it has a control character");
  request.set_worker_id("w");
  request.add_finished();
  request.add_finished()->mutable_result()->set_detail(std::string((256 << 10) + 1, 'x'));
  EXPECT_THAT(std::string(CheckMessage(request).message()),
              HasSubstr("finished 2 result detail: 262145 bytes"));
  request.clear_finished();
  for (int i = 0; i <= kMaxListEntries; ++i) request.add_held();
  EXPECT_THAT(std::string(CheckMessage(request).message()), HasSubstr("held: 65537 entries"));
}

class InitTest : public SecurityTest {
 protected:
  // The value of a key in a file that init has written.
  std::string Value(const std::string& file, const std::string& key) {
    const auto entries = *ParseConfig(*ReadFile(folder + "/etc/" + file));
    for (const ConfigEntry& entry : entries) {
      if (entry.key == key) return entry.values[0];
    }
    return "";
  }
};

TEST_F(InitTest, GeneratedCredentialsAdmitEachRole) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto report,
      Initialize({.folder = folder + "/etc", .hosts = {"hone.test"}, .workers = {"pi-07", "pi-08"}},
                 absl::Now()));
  for (const std::string& file : report.files) {
    struct stat info;
    ASSERT_EQ(stat(file.c_str(), &info), 0) << file;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << file;
  }
  ServerOptions options;
  options.security = *rpc::LoadServerSecurity({.certificate = Value("hone.toml", "certificate"),
                                               .key = Value("hone.toml", "key"),
                                               .client_ca = Value("hone.toml", "client-ca"),
                                               .client_certificates = "require"},
                                              absl::Now());
  options.tokens = std::make_shared<const rpc::TokenTable>(
      *rpc::TokenTable::Parse(*ReadFile(Value("hone.toml", "tokens"))));
  options.listen.push_back({*rpc::Address::Parse("127.0.0.1:0"), rpc::Role::kClient});
  ASSERT_THAT(Start(options), IsOk());
  const auto dial = [&](const std::string& file, bool token) {
    return *rpc::CreateChannel(server->addresses()[1].ToText(),
                               *rpc::LoadSecurity({.ca = Value(file, "ca"),
                                                   .certificate = Value(file, "certificate"),
                                                   .key = Value(file, "key"),
                                                   .token = token ? Value(file, "token") : ""}));
  };
  for (const bool token : {false, true}) {
    EXPECT_THAT(List(dial("client.conf", token)), IsOk());
    EXPECT_THAT(List(dial("admin.conf", token)), IsOk());
    EXPECT_THAT(List(dial("worker-pi-07.conf", token)),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
}

TEST_F(InitTest, TheStoreIsAFileOrADatabase) {
  const auto store_of = [&](const std::string& store) {
    EXPECT_THAT(
        Initialize({.folder = folder + "/etc", .hosts = {"a"}, .store = store}, absl::Now()),
        IsOk());
    const std::string named = Value("hone.toml", "store"), log = Value("hone.toml", "audit-log");
    std::filesystem::remove_all(folder + "/etc");
    return std::pair(named, log);
  };
  const std::string etc = folder + "/etc";
  EXPECT_EQ(store_of(""), std::pair(etc + "/hone.db", etc + "/audit.jsonl"));
  EXPECT_EQ(store_of("/srv/./hone.db"),
            std::pair(std::string("/srv/hone.db"), std::string("/srv/audit.jsonl")));
  const std::string uri = "postgresql://hone@db-1,db-2/hone?target_session_attrs=read-write";
  EXPECT_EQ(store_of(uri), std::pair(uri, etc + "/audit.jsonl"));
}

TEST_F(InitTest, EachWorkerHasItsOwnToken) {
  ASSERT_THAT(Initialize({.folder = folder + "/etc", .hosts = {"a"}, .workers = {"pi-07", "pi-08"}},
                         absl::Now()),
              IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto tokens,
                            rpc::TokenTable::Parse(*ReadFile(folder + "/etc/tokens")));
  for (const std::string worker : {"pi-07", "pi-08"}) {
    const auto caller = tokens.Find(Value("worker-" + worker + ".conf", "token"));
    ASSERT_TRUE(caller.has_value());
    EXPECT_EQ(*caller, (rpc::Identity{.name = worker, .role = rpc::Role::kWorker}));
    EXPECT_EQ(Value("worker-" + worker + ".conf", "name"), worker);
  }
  for (const std::string bad : {"", "../x", "a b", "*"}) {
    EXPECT_THAT(
        Initialize({.folder = folder + "/bad", .hosts = {"a"}, .workers = {bad}}, absl::Now()),
        StatusIs(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

TEST_F(InitTest, ACallerIsRevokedByNameSerialOrFile) {
  const std::string etc = folder + "/etc";
  ASSERT_THAT(
      Initialize({.folder = etc, .hosts = {"a"}, .workers = {"pi-07", "pi-08"}}, absl::Now()),
      IsOk());
  const auto serial = [&](const std::string& name) {
    return rpc::DescribeCertificate(*ReadFile(etc + "/" + name + ".pem"))->serial;
  };
  EXPECT_EQ(Value("hone.toml", "revoked"), etc + "/revoked");
  HONE_ASSERT_OK_AND_ASSIGN(const auto by_name, Revoke(etc, "pi-07", absl::Now()));
  EXPECT_THAT(by_name.serials, ElementsAre(serial("worker-pi-07")));
  EXPECT_THAT(by_name.tokens, ElementsAre("pi-07"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto tokens, rpc::TokenTable::Parse(*ReadFile(etc + "/tokens")));
  EXPECT_FALSE(tokens.Find(Value("worker-pi-07.conf", "token")).has_value());
  EXPECT_TRUE(tokens.Find(Value("worker-pi-08.conf", "token")).has_value());
  EXPECT_THAT(*ReadFile(etc + "/tokens"), HasSubstr("# The tokens")) << "comments stay";
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, Revoke(etc, "pi-07", absl::Now()));
  EXPECT_TRUE(again.serials.empty() && again.tokens.empty());
  HONE_ASSERT_OK_AND_ASSIGN(const auto by_serial, Revoke(etc, serial("worker-pi-08"), absl::Now()));
  EXPECT_THAT(by_serial.serials, ElementsAre(serial("worker-pi-08")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto by_file, Revoke(etc, etc + "/client.pem", absl::Now()));
  EXPECT_THAT(by_file.serials, ElementsAre(serial("client")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto list,
                            rpc::RevocationList::Parse(*ReadFile(etc + "/revoked")));
  for (const std::string name : {"worker-pi-07", "worker-pi-08", "client"}) {
    EXPECT_TRUE(list.Contains(serial(name))) << name;
  }
  EXPECT_FALSE(list.Contains(serial("admin")));
}

TEST_F(InitTest, NothingIsRevokedAfterAnError) {
  const std::string etc = folder + "/etc";
  EXPECT_THAT(Revoke(etc, "pi-07", absl::Now()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("hone-server init has made")));
  ASSERT_THAT(Initialize({.folder = etc, .hosts = {"a"}}, absl::Now()), IsOk());
  const std::string before = *ReadFile(etc + "/revoked");
  for (const std::string who : {"pi-09", "0123456789abcdef"}) {
    EXPECT_THAT(Revoke(etc, who, absl::Now()),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("'" + who + "' is unknown")));
  }
  EXPECT_THAT(Revoke(etc, etc + "/tokens", absl::Now()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a certificate")));
  EXPECT_EQ(*ReadFile(etc + "/revoked"), before);
  ASSERT_THAT(WriteFileAtomically(etc + "/revoked", "nonsense\n"), IsOk());
  EXPECT_THAT(Revoke(etc, "client", absl::Now()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("revoked: line 1")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto tokens, rpc::TokenTable::Parse(*ReadFile(etc + "/tokens")));
  EXPECT_TRUE(tokens.Find(Value("client.conf", "token")).has_value());
}

TEST_F(InitTest, AUrlIsNotAHost) {
  const absl::Status status =
      Initialize({.folder = folder + "/etc", .hosts = {"http://x.y"}}, absl::Now()).status();
  EXPECT_EQ(status, absl::InvalidArgumentError("--host 'http://x.y' is a URL; give the host alone, "
                                               "as hone.internal"));
}

TEST_F(InitTest, TheServerListensWhereItsHostsAre) {
  EXPECT_THAT(ListenAddresses({"localhost"}, 7070), ElementsAre("localhost:7070"));
  EXPECT_THAT(ListenAddresses({"10.0.0.5", "fd00::5"}, 7071),
              ElementsAre("10.0.0.5:7071", "[fd00::5]:7071", "localhost:7071"));
  EXPECT_THAT(ListenAddresses({"hone.internal", "10.0.0.5"}, 7070), ElementsAre("0.0.0.0:7070"))
      << "the name may stand for another address";
  ASSERT_THAT(Initialize({.folder = folder + "/etc", .hosts = {"127.0.0.1"}}, absl::Now()), IsOk());
  EXPECT_EQ(Value("hone.toml", "listen"), "127.0.0.1:7070");
}

// The disk is full, which a limit on the size of files stands for.
TEST_F(InitTest, LeavesNoFileIfOneCannotBeWritten) {
  struct rlimit usual;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {.rlim_cur = 400, .rlim_max = usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = Initialize({.folder = folder + "/etc", .hosts = {"a"}}, absl::Now());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(failed.ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/etc"));
  EXPECT_THAT(Initialize({.folder = folder + "/etc", .hosts = {"a"}}, absl::Now()), IsOk());
}

TEST_F(InitTest, DoesNotOverwriteFiles) {
  ASSERT_THAT(Initialize({.folder = folder + "/etc", .hosts = {"a"}}, absl::Now()), IsOk());
  const std::string before = *ReadFile(folder + "/etc/ca-key.pem");
  EXPECT_THAT(Initialize({.folder = folder + "/etc", .hosts = {"a"}}, absl::Now()),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(*ReadFile(folder + "/etc/ca-key.pem"), before);
}

}  // namespace
}  // namespace hone::service

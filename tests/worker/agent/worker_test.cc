// The real hone-worker with the real hone-runner and a fake builder, against a server in the test.
#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/ir/workload_parser.h"
#include "common/target/target.h"
#include "hone/v1/worker.grpc.pb.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "worker/agent/child_process.h"

namespace hone::agent {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::string_view kMatmul =
    "workload matmul\n"
    "input A: f32[64, 32]\n"
    "input B: f32[32, 48]\n"
    "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n";

// Grants the queued leases, holds calls while it has no news, and records the requests.
class FakeServer final : public v1::WorkerService::Service {
 public:
  grpc::Status Synchronize(grpc::ServerContext* context, const v1::SynchronizeRequest* request,
                           v1::SynchronizeResponse* response) override {
    absl::MutexLock lock(&mutex_);
    ++calls_;
    max_waits_.push_back(request->max_wait_ms());
    if (!denied_.empty()) return {grpc::StatusCode::PERMISSION_DENIED, denied_};
    worker_ids_.insert(request->worker_id());
    epochs_.insert(request->epoch());
    last_ = *request;
    for (const v1::FinishedLease& finished : request->finished()) {
      finished_[finished.lease_id()] = finished.result();
      if (acknowledge_) response->add_durable(finished.lease_id());
    }
    const int64_t mine = ++newest_;
    const absl::Time until = absl::Now() + absl::Milliseconds(request->max_wait_ms());
    // Like the real server: a call is held until there is news or a newer call.
    while (to_grant_.empty() && to_cancel_.empty() && to_keep_.empty() &&
           response->durable().empty() && newest_ == mine && absl::Now() < until &&
           refused_.empty() && !context->IsCancelled() && !closing_) {
      changed_.WaitWithTimeout(&mutex_, absl::Milliseconds(20));
    }
    response->set_gather_ms(gather_ms_);
    response->set_refused(refused_);
    if (newest_ != mine) return grpc::Status::OK;
    for (const v1::Lease& lease : to_grant_) *response->add_start() = lease;
    for (const std::string& id : to_cancel_) response->add_cancel(id);
    for (const std::string& digest : to_keep_) response->add_keep_artifacts(digest);
    to_grant_.clear();
    to_cancel_.clear();
    to_keep_.clear();
    return grpc::Status::OK;
  }

  grpc::Status UploadArtifact(grpc::ServerContext* context,
                              grpc::ServerReader<v1::WorkerArtifactChunk>* reader,
                              v1::UploadArtifactResponse* response) override {
    v1::WorkerArtifactChunk chunk;
    std::string digest, bytes;
    while (reader->Read(&chunk)) {
      if (digest.empty()) digest = chunk.digest();
      bytes += chunk.data();
    }
    response->set_digest(digest);
    absl::MutexLock lock(&mutex_);
    ++uploads_begun_;
    while (holds_uploads_ && !context->IsCancelled() && !closing_) {
      changed_.WaitWithTimeout(&mutex_, absl::Milliseconds(20));
    }
    if (uploads_without_room_ > 0) {
      --uploads_without_room_;
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              "upload: not enough memory; try again in a second"};
    }
    artifacts_[digest] = bytes;
    uploads_.push_back(digest);
    return grpc::Status::OK;
  }

  grpc::Status DownloadArtifact(grpc::ServerContext*, const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::WorkerArtifactChunk>* writer) override {
    absl::MutexLock lock(&mutex_);
    const auto found = artifacts_.find(request->digest());
    if (found == artifacts_.end()) return {grpc::StatusCode::NOT_FOUND, "no such artifact"};
    v1::WorkerArtifactChunk chunk;
    chunk.set_digest(found->first);
    chunk.set_total_bytes(static_cast<int64_t>(found->second.size()));
    chunk.set_data(found->second);
    writer->Write(chunk);
    return grpc::Status::OK;
  }

  void Grant(const v1::Lease& lease) {
    absl::MutexLock lock(&mutex_);
    to_grant_.push_back(lease);
    changed_.SignalAll();
  }
  void Grant(const std::vector<v1::Lease>& leases, int64_t gather_ms) {
    absl::MutexLock lock(&mutex_);
    gather_ms_ = gather_ms;
    to_grant_ = leases;
    changed_.SignalAll();
  }
  void Keep(const std::string& digest) {
    absl::MutexLock lock(&mutex_);
    to_keep_.push_back(digest);
    changed_.SignalAll();
  }
  // Calls of a killed worker, whose end the server may not have noticed yet, get no leases.
  void EndCalls() {
    absl::MutexLock lock(&mutex_);
    ++newest_;
  }
  void SetAcknowledge(bool acknowledge) {
    absl::MutexLock lock(&mutex_);
    acknowledge_ = acknowledge;
  }
  void ForgetFinished() {
    absl::MutexLock lock(&mutex_);
    finished_.clear();
  }
  void Close() {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    changed_.SignalAll();
  }
  template <typename Predicate>
  bool Await(Predicate predicate) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&predicate), kPatience);
  }

  // Read under Await or when no call is in progress.
  absl::Mutex mutex_;
  std::map<std::string, v1::MeasureResult> finished_;
  std::map<std::string, std::string> artifacts_;
  std::vector<std::string> uploads_;  // in order of arrival
  int uploads_begun_ = 0;
  bool holds_uploads_ = false;    // uploads do not end
  int uploads_without_room_ = 0;  // number of uploads to refuse
  std::set<std::string> worker_ids_;
  std::set<std::string> epochs_;
  v1::SynchronizeRequest last_;
  int64_t calls_ = 0;
  std::vector<int64_t> max_waits_;  // of each call
  std::string refused_;             // why it refuses the worker; "": it does not
  std::string denied_;              // why it denies calls; "": it does not

 private:
  absl::CondVar changed_;
  int64_t newest_ = 0;  // the number of the only call that gets leases
  std::vector<v1::Lease> to_grant_;
  std::vector<std::string> to_cancel_;
  std::vector<std::string> to_keep_;
  int64_t gather_ms_ = 0;
  bool acknowledge_ = true;
  bool closing_ = false;
};

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    bin_dir_ = getenv("HONE_BIN_DIR");
    std::filesystem::create_directory(folder_ / "bin");
    std::filesystem::create_symlink(FAKE_BUILDER, folder_ / "bin/hone-builder");
    std::filesystem::create_symlink(bin_dir_ + "/hone-runner", folder_ / "bin/hone-runner");
    StartServer();
    StartWorker();
  }
  void TearDown() override {
    worker_.reset();
    StopServer();
  }

  void StartServer() {
    service_ = std::make_unique<FakeServer>();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + folder_ / "socket", grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void StopServer() {
    service_->Close();
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  void StartWorker(std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {bin_dir_ + "/hone-worker",
                                     "--server",
                                     "unix:" + folder_ / "socket",
                                     "--state-dir",
                                     folder_ / "state",
                                     "--program-dir",
                                     folder_ / "bin",
                                     "--ready-file",
                                     folder_ / "ready",
                                     "--lock",
                                     folder_ / "lock",
                                     "--compile-limit",
                                     "0.3",
                                     "--run-limit",
                                     "2"};  // a loaded machine slows checks and timing down
    argv.insert(argv.end(), more.begin(), more.end());
    service_->EndCalls();
    HONE_ASSERT_OK_AND_ASSIGN(worker_, ChildProcess::Start(argv));
  }

  v1::Lease Lease(const std::string& id, const std::string& space) {
    v1::Lease lease;
    lease.set_lease_id(id);
    lease.set_build(true);
    lease.set_run(true);
    lease.set_deadline_ms(300000);
    lease.set_workload(std::string(kMatmul));
    lease.set_workload_digest(ir::ParseWorkload(kMatmul)->StructuralDigest().ToHex());
    lease.set_space(space);
    lease.add_decisions(next_decision_++);
    lease.mutable_policy()->set_name("screen");
    lease.mutable_policy()->set_cache("warm");
    return lease;
  }
  bool AwaitFinished(size_t count) {
    return service_->Await([this, count] { return service_->finished_.size() >= count; });
  }
  bool AwaitResult(const std::string& id) {
    return service_->Await([this, &id] { return service_->finished_.contains(id); });
  }
  v1::MeasureResult Result(const std::string& id) {
    absl::MutexLock lock(&service_->mutex_);
    return service_->finished_[id];
  }
  std::string Log() { return worker_->TakeErrorOutput(); }

  const TemporaryFolder folder_;
  std::string bin_dir_;
  std::unique_ptr<FakeServer> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ChildProcess> worker_;
  int next_decision_ = 0;
};

TEST_F(WorkerTest, ReportsItsCapabilities) {
  ASSERT_TRUE(service_->Await([this] { return service_->calls_ > 0; })) << Log();
  absl::MutexLock lock(&service_->mutex_);
  const v1::Capabilities& can = service_->last_.capabilities();
  EXPECT_TRUE(can.can_build() && can.can_run());
  EXPECT_GT(can.build_slots(), 0);
  EXPECT_GT(can.peak_gflops(), 0);
  EXPECT_GE(can.peak_gflops(), can.peak_gflops_one_core() * 0.5);
  EXPECT_EQ(can.environment().compiler(), "by hand");
  EXPECT_EQ(can.environment().codegen_version(), 42);
  EXPECT_FALSE(can.environment().cpu().empty());
  EXPECT_GT(service_->last_.free_build_slots(), 0);
  EXPECT_FALSE(service_->last_.worker_id().empty());
}

TEST_F(WorkerTest, OnlyTheFirstCallIsNotHeld) {
  ASSERT_TRUE(service_->Await([this] { return service_->calls_ >= 2; })) << Log();
  absl::MutexLock lock(&service_->mutex_);
  EXPECT_EQ(service_->max_waits_[0], 0);
  EXPECT_EQ(service_->max_waits_[1], 10'000);
}

TEST_F(WorkerTest, ARefusedWorkerIsNotReady) {
  worker_.reset();
  std::filesystem::remove(folder_ / "ready");
  int64_t before = 0;
  {
    absl::MutexLock lock(&service_->mutex_);
    service_->refused_ = "another process uses its name";
    before = service_->calls_;
  }
  StartWorker();
  ASSERT_TRUE(service_->Await([&] { return service_->calls_ > before + 2; })) << Log();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ready"));
}

TEST_F(WorkerTest, AWorkerWithTheCredentialsOfAnotherEnds) {
  worker_.reset();
  {
    absl::MutexLock lock(&service_->mutex_);
    service_->denied_ = "its certificate is of 'pi-08'";
  }
  StartWorker();
  EXPECT_EQ(worker_->Wait(absl::Now() + kPatience).ToString(), "exit status 2");
  EXPECT_THAT(Log(), ::testing::HasSubstr("hone-worker: its certificate is of 'pi-08'"));
}

TEST_F(WorkerTest, AnAcceptedWorkerOutlivesADenial) {
  service_->Grant(Lease("a", "good"));
  ASSERT_TRUE(AwaitFinished(1)) << Log();
  int64_t before = 0;
  {
    absl::MutexLock lock(&service_->mutex_);
    service_->denied_ = "its token was removed";
    before = service_->calls_;
  }
  ASSERT_TRUE(service_->Await([&] { return service_->calls_ > before + 2; })) << Log();
  {
    absl::MutexLock lock(&service_->mutex_);
    service_->denied_.clear();
  }
  const std::string log = Log();
  const std::vector<std::string> parts =
      absl::StrSplit(log, " error the server refuses this worker: its token was removed");
  EXPECT_EQ(parts.size(), 2u) << "said once: " << log;
  service_->Grant(Lease("b", "good"));
  EXPECT_TRUE(AwaitResult("b")) << Log();
}

TEST_F(WorkerTest, EveryFailureHasAnOutcomeAndWorkContinues) {
  const std::map<std::string, v1::Outcome> cases = {
      {"good", v1::OUTCOME_OK},
      {"abort", v1::OUTCOME_COMPILE_ERROR},
      {"endless", v1::OUTCOME_COMPILE_TIMEOUT},
      {"nonsense", v1::OUTCOME_INVALID},
      {"crash", v1::OUTCOME_CRASH},
      {"hang", v1::OUTCOME_RUN_TIMEOUT},
      {"wrong", v1::OUTCOME_WRONG_OUTPUT},
      {"huge_workspace", v1::OUTCOME_OUT_OF_MEMORY},
  };
  for (const auto& [space, outcome] : cases) service_->Grant(Lease(space, space));
  ASSERT_TRUE(AwaitFinished(cases.size())) << Log();
  service_->Grant(Lease("good again", "good"));
  ASSERT_TRUE(AwaitFinished(cases.size() + 1)) << Log();
  for (const auto& [space, outcome] : cases) {
    const v1::MeasureResult result = Result(space);
    EXPECT_EQ(v1::Outcome_Name(result.outcome()), v1::Outcome_Name(outcome))
        << space << ": " << result.detail();
  }
  EXPECT_EQ(Result("good again").outcome(), v1::OUTCOME_OK);
  EXPECT_GT(Result("good").latency_ns(), 0);
  EXPECT_EQ(Result("good").facts().compile_ms(), 1);
  EXPECT_TRUE(IsSha256(Result("good").artifact_digest()));
}

TEST_F(WorkerTest, TransfersArtifacts) {
  v1::Lease build = Lease("build", "good");
  build.set_run(false);
  service_->Grant(build);
  ASSERT_TRUE(AwaitFinished(1)) << Log();
  const std::string built = Result("build").artifact_digest();
  {
    absl::MutexLock lock(&service_->mutex_);
    ASSERT_EQ(Sha256Of(service_->artifacts_[built]), built);  // uploaded before the result
  }
  // Another worker would download the artifact. This worker has to if its own copy is missing.
  std::filesystem::remove(folder_ / "state/artifacts/" + built);
  worker_.reset();
  StartWorker();
  v1::Lease run = Lease("run", "");
  run.set_build(false);
  run.set_artifact_digest(built);
  service_->Grant(run);
  v1::Lease missing = run;
  missing.set_lease_id("missing");
  missing.set_artifact_digest(std::string(64, '0'));
  service_->Grant(missing);
  ASSERT_TRUE(AwaitFinished(3)) << Log();
  EXPECT_EQ(Result("run").outcome(), v1::OUTCOME_OK) << Result("run").detail();
  EXPECT_EQ(Result("missing").outcome(), v1::OUTCOME_DEVICE_LOST);

  service_->Grant(Lease("winner", "good"));
  ASSERT_TRUE(AwaitFinished(4)) << Log();
  const std::string winner = Result("winner").artifact_digest();
  service_->Keep(winner);
  EXPECT_TRUE(service_->Await([&] { return service_->artifacts_.contains(winner); })) << Log();
}

TEST_F(WorkerTest, RetriesRejectedUploads) {
  {
    absl::MutexLock lock(&service_->mutex_);
    service_->uploads_without_room_ = 3;
  }
  v1::Lease build = Lease("build", "good");
  build.set_run(false);
  service_->Grant(build);
  ASSERT_TRUE(AwaitFinished(1)) << Log();
  const v1::MeasureResult result = Result("build");
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << "not a failure of the worker: " << result.detail();
  absl::MutexLock lock(&service_->mutex_);
  EXPECT_EQ(service_->uploads_without_room_, 0);
  EXPECT_TRUE(service_->artifacts_.contains(result.artifact_digest()));
}

TEST_F(WorkerTest, UploadsTheReferenceFirst) {
  worker_.reset();
  StartWorker({"--build-slots", "4"});
  for (int i = 0; i < 4; ++i) {
    v1::Lease build = Lease(absl::StrCat("build ", i), "good");
    build.set_run(false);
    build.set_target(target::TargetByName("x86-avx512")->ToText());
    service_->Grant(build);
  }
  ASSERT_TRUE(AwaitFinished(4)) << Log();
  absl::MutexLock lock(&service_->mutex_);
  EXPECT_THAT(service_->uploads_, ::testing::SizeIs(5)) << "four candidates and one reference";
  EXPECT_THAT(service_->uploads_.at(0), ::testing::StartsWith("reference3/"));
}

TEST_F(WorkerTest, UploadsTheReferenceToANewServer) {
  int built = 0;
  // Builds until the current server has the reference, for at most 40 seconds.
  const auto build_until_it_is_there = [&] {
    const absl::Time limit = absl::Now() + absl::Seconds(40);
    for (size_t count = 1; absl::Now() < limit; ++count) {
      v1::Lease build = Lease(absl::StrCat("build ", built++), "good");
      build.set_run(false);
      build.set_target(target::TargetByName("x86-avx512")->ToText());
      service_->Grant(build);
      if (!AwaitFinished(count)) return false;
      absl::MutexLock lock(&service_->mutex_);
      for (const std::string& name : service_->uploads_) {
        if (absl::StartsWith(name, "reference3/")) return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(build_until_it_is_there()) << Log();
  StopServer();
  StartServer();
  EXPECT_TRUE(build_until_it_is_there()) << Log();
}

TEST_F(WorkerTest, ResultsSurviveAKilledWorker) {
  service_->SetAcknowledge(false);
  service_->Grant(Lease("a", "good"));
  ASSERT_TRUE(AwaitFinished(1)) << Log();
  worker_->Kill();
  worker_->Wait(absl::InfiniteFuture());
  service_->ForgetFinished();
  service_->SetAcknowledge(true);
  StartWorker();
  ASSERT_TRUE(AwaitFinished(1)) << Log();
  EXPECT_EQ(Result("a").outcome(), v1::OUTCOME_OK);
  EXPECT_TRUE(service_->Await(
      [this] { return service_->last_.finished().empty() && service_->epochs_.size() == 2; }));
  absl::MutexLock lock(&service_->mutex_);
  EXPECT_EQ(service_->worker_ids_.size(), 1u);  // the worker keeps its name
}

TEST_F(WorkerTest, ResultsAreGatheredWhileThereIsEnoughToDo) {
  ASSERT_TRUE(service_->Await([this] { return service_->calls_ > 0; })) << Log();
  size_t room = 0;
  {
    absl::MutexLock lock(&service_->mutex_);
    room = service_->last_.free_build_slots();
  }
  std::vector<v1::Lease> leases;
  for (size_t i = 0; i < room; ++i) leases.push_back(Lease(absl::StrCat("l", i), "good"));
  service_->Grant(leases, 3600000);
  ASSERT_TRUE(AwaitFinished(1)) << Log();
  {
    absl::MutexLock lock(&service_->mutex_);
    EXPECT_GE(service_->finished_.size(), room / 2);
  }
  EXPECT_TRUE(AwaitFinished(room)) << "the other results are reported when they are ready";
}

TEST_F(WorkerTest, ReconnectsToARestartedServer) {
  service_->Grant(Lease("a", "good"));
  ASSERT_TRUE(AwaitFinished(1)) << Log();
  StopServer();
  StartServer();
  service_->Grant(Lease("b", "good"));
  // The new server may be told about "a" again: its acknowledgement can be lost with the old one.
  ASSERT_TRUE(AwaitResult("b")) << Log();
  EXPECT_EQ(Result("b").outcome(), v1::OUTCOME_OK);
}

TEST_F(WorkerTest, EndsOnRequestWithItsChildren) {
  ASSERT_TRUE(service_->Await([this] { return service_->calls_ > 0; })) << Log();
  service_->Grant(Lease("hang", "hang"));
  ASSERT_TRUE(service_->Await(
      [this] { return service_->last_.held_size() > 0 || !service_->finished_.empty(); }));
  kill(worker_->pid(), SIGTERM);
  EXPECT_EQ(worker_->Wait(absl::Now() + kPatience).ToString(), "exit status 0") << Log();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ready"));
}

TEST_F(WorkerTest, ReportsItsEndDuringALongUpload) {
  {
    absl::MutexLock lock(&service_->mutex_);
    service_->holds_uploads_ = true;
  }
  v1::Lease build = Lease("build", "good");
  build.set_run(false);
  service_->Grant(build);
  ASSERT_TRUE(service_->Await([this] { return service_->uploads_begun_ > 0; })) << Log();
  kill(worker_->pid(), SIGTERM);
  // Half as long as an upload may take.
  EXPECT_EQ(worker_->Wait(absl::Now() + absl::Seconds(30)).ToString(), "exit status 0") << Log();
  absl::MutexLock lock(&service_->mutex_);
  EXPECT_TRUE(service_->last_.draining());
}

TEST_F(WorkerTest, EndsWhileItDescribesItsMachine) {
  worker_.reset();
  const std::string runner = folder_ / "bin/hone-runner";
  std::filesystem::remove(runner);
  std::ofstream(runner) << "#!/bin/sh\ntouch " << folder_.path() << "/described\nexec sleep 1000\n";
  std::filesystem::permissions(runner, std::filesystem::perms::owner_all);
  StartWorker();
  const absl::Time limit = absl::Now() + kPatience;
  while (!std::filesystem::exists(folder_ / "described") && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  ASSERT_TRUE(std::filesystem::exists(folder_ / "described"));
  kill(worker_->pid(), SIGTERM);
  // Sooner than the agent would end the runner.
  EXPECT_EQ(worker_->Wait(absl::Now() + absl::Seconds(30)).ToString(), "exit status 0");
  EXPECT_THAT(Log(), ::testing::HasSubstr("stopped before it was ready"));
}

TEST_F(WorkerTest, TwoWorkersDoNotShareAStateFolder) {
  ASSERT_TRUE(service_->Await([this] { return service_->calls_ > 0; })) << Log();
  auto first = std::move(worker_);
  StartWorker();
  EXPECT_EQ(worker_->Wait(absl::Now() + kPatience).ToString(), "exit status 1");
  EXPECT_THAT(Log(), ::testing::HasSubstr("another hone-worker uses"));
}

TEST_F(WorkerTest, AForeignServerNeedsInsecure) {
  HONE_ASSERT_OK_AND_ASSIGN(
      auto foreign, ChildProcess::Start({bin_dir_ + "/hone-worker", "--server", "192.0.2.1:7070",
                                         "--state-dir", folder_ / "other"}));
  EXPECT_EQ(foreign->Wait(absl::Now() + kPatience).ToString(), "exit status 2");
  EXPECT_THAT(foreign->TakeErrorOutput(), ::testing::HasSubstr("insecure"));
}

}  // namespace
}  // namespace hone::agent

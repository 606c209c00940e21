// The parts of the agent that talk to the server, with a server played by the test and builders
// that are hand-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/record/proto_convert.h"
#include "common/record/reference_name.h"
#include "common/target/target.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "tests/worker/agent/scripted_child.h"
#include "worker/agent/candidates.h"
#include "worker/agent/reference_kernels.h"
#include "worker/agent/server_link.h"

namespace hone::agent {
namespace {

using record::MeasureResult;
using record::Outcome;
using ::testing::HasSubstr;

constexpr char kWorkloadDigest[] = "0123456789abcdef0123456789abcdef";

class FakeLink final : public ServerLink {
 public:
  void Synchronize(const v1::SynchronizeRequest&, SynchronizeDone) override {}
  absl::Status Upload(const std::string& digest, const std::string& bytes) override {
    absl::MutexLock lock(&mutex_);
    ++uploads_;
    if (refusals_ > 0) {
      --refusals_;
      return absl::ResourceExhaustedError("no room");
    }
    stored_[digest] = bytes;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Download(const std::string& digest) override {
    absl::MutexLock lock(&mutex_);
    const auto found = stored_.find(digest);
    if (found == stored_.end()) return absl::NotFoundError("the server does not have it");
    return found->second;
  }
  void Shutdown() override {}

  absl::Mutex mutex_;
  std::map<std::string, std::string> stored_;
  int uploads_ = 0;
  int refusals_ = 0;  // the next uploads find no room
};

class PartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    artifacts_ = *BoundedDir::Open(folder_ / "artifacts", 64 << 20);
    references_ = *BoundedDir::Open(folder_ / "references", 64 << 20);
    uploader_ = std::make_unique<Uploader>(&link_, artifacts_.get());
    machine_.set_can_build(true);
    machine_.set_target(target_.ToText());
    machine_.set_target_key(target_.Key());
  }

  ReferenceKernels MakeReferenceKernels() {
    return ReferenceKernels(machine_, builder_, artifacts_.get(), &link_, uploader_.get());
  }
  HeldWork Work(const std::string& space, bool build, bool run) const {
    HeldWork work;
    work.lease.set_lease_id("lease");
    work.lease.set_workload("workload w\n");
    work.lease.set_workload_digest(kWorkloadDigest);
    work.lease.set_space(space);
    work.lease.set_target(target_.ToText());
    work.lease.set_build(build);
    work.lease.set_run(run);
    work.lease.mutable_policy()->set_name("screen");
    work.lease.mutable_policy()->set_cache("warm");
    work.deadline = absl::InfiniteFuture();
    return work;
  }
  std::string Put(const std::string& bytes) {
    const std::string digest = Sha256Of(bytes);
    EXPECT_THAT(artifacts_->Put(digest, bytes), IsOk());
    return digest;
  }
  std::string ReferenceName() const {
    return record::ReferenceName{kWorkloadDigest, target_.Key()}.ToText();
  }

  const target::Target target_ = *target::TargetByName("x86-avx2");
  v1::Capabilities machine_;
  const TemporaryFolder folder_;
  const BuilderOptions builder_ = {.command = {FAKE_BUILDER}, .output_parent = folder_ / "outputs"};
  FakeLink link_;
  std::unique_ptr<BoundedDir> artifacts_;
  std::unique_ptr<BoundedDir> references_;
  std::unique_ptr<Uploader> uploader_;
};

TEST_F(PartsTest, AnUploadIsRetriedWhileTheServerHasNoRoom) {
  link_.refusals_ = 2;
  const std::string digest = Put("an artifact");
  EXPECT_THAT(uploader_->UploadArtifact(digest), IsOk());
  EXPECT_EQ(link_.stored_.at(digest), "an artifact");
  EXPECT_EQ(link_.uploads_, 3);
  EXPECT_THAT(uploader_->UploadArtifact("../../etc/passwd"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PartsTest, AStoppedUploaderDoesNotRetry) {
  uploader_->Stop();
  link_.refusals_ = 2;
  EXPECT_THAT(uploader_->Upload("name", "bytes"), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(PartsTest, QueuedArtifactsAreUploaded) {
  const std::string first = Put("first"), second = Put("second");
  uploader_->Enqueue(first);
  uploader_->Enqueue(kWorkloadDigest);  // not there, which does not stop the others
  uploader_->Enqueue(second);
  absl::MutexLock lock(&link_.mutex_);
  const auto sent = [&] { return link_.stored_.contains(first) && link_.stored_.contains(second); };
  EXPECT_TRUE(link_.mutex_.AwaitWithTimeout(absl::Condition(&sent), absl::Seconds(60)));
}

TEST_F(PartsTest, ReferenceKernelIsUploadedOncePerServer) {
  ReferenceKernels kernels = MakeReferenceKernels();
  const HeldWork work = Work("good", true, false);
  kernels.Offer(work.lease);
  kernels.Offer(work.lease);
  EXPECT_TRUE(link_.stored_.contains(ReferenceName()));
  EXPECT_EQ(link_.uploads_, 1);
  kernels.ForgetOffers();
  kernels.Offer(work.lease);
  EXPECT_EQ(link_.uploads_, 2);
}

TEST_F(PartsTest, AReferenceKernelIsBuiltOrFetched) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::string built,
                            MakeReferenceKernels().Get(kWorkloadDigest, "workload w\n"));
  EXPECT_TRUE(artifacts_->Pin(built));
  machine_.set_can_build(false);
  EXPECT_THAT(MakeReferenceKernels().Get(kWorkloadDigest, ""),
              StatusIs(absl::StatusCode::kNotFound));
  link_.stored_[ReferenceName()] = "of another worker";
  HONE_ASSERT_OK_AND_ASSIGN(const std::string fetched,
                            MakeReferenceKernels().Get(kWorkloadDigest, ""));
  EXPECT_EQ(fetched, Sha256Of("of another worker"));
  EXPECT_TRUE(artifacts_->Pin(fetched));
}

TEST_F(PartsTest, AReferenceKernelIsBuiltOnce) {
  ReferenceKernels kernels = MakeReferenceKernels();
  const auto artifacts = [&] {
    return std::distance(std::filesystem::directory_iterator(artifacts_->path()),
                         std::filesystem::directory_iterator());
  };
  kernels.BuildAhead(kWorkloadDigest, "workload w\n");
  HONE_ASSERT_OK_AND_ASSIGN(const std::string built, kernels.Get(kWorkloadDigest, "workload w\n"));
  EXPECT_EQ(artifacts(), 1);
  HONE_ASSERT_OK_AND_ASSIGN(const std::string again, kernels.Get(kWorkloadDigest, "another text"));
  EXPECT_EQ(again, built) << "the text is not compiled a second time";
}

TEST_F(PartsTest, ACandidateIsBuiltAndPinnedOrUploaded) {
  ReferenceKernels kernels = MakeReferenceKernels();
  CandidatePreparer preparer{
      builder_, BuilderClient(builder_), *artifacts_, *references_, link_, *uploader_, kernels};
  HeldWork here = Work("good", true, true);
  EXPECT_EQ(preparer.Prepare(here), std::nullopt);
  EXPECT_EQ(here.facts.compile_ms, 1);
  EXPECT_TRUE(artifacts_->Pin(here.artifact_digest));
  EXPECT_EQ(link_.uploads_, 0);

  HeldWork elsewhere = Work("slow", true, false);
  const std::optional<MeasureResult> uploaded = preparer.Prepare(elsewhere);
  ASSERT_TRUE(uploaded.has_value());
  EXPECT_EQ(uploaded->outcome, Outcome::kOk) << uploaded->detail;
  EXPECT_TRUE(link_.stored_.contains(elsewhere.artifact_digest));
  EXPECT_TRUE(link_.stored_.contains(ReferenceName()));

  HeldWork fails = Work("missing", true, true);
  const std::optional<MeasureResult> failed = preparer.Prepare(fails);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->outcome, Outcome::kInvalid);
}

TEST_F(PartsTest, ANewProcessBuildsWhatIsCompared) {
  ReferenceKernels kernels = MakeReferenceKernels();
  CandidatePreparer preparer{
      builder_, BuilderClient(builder_), *artifacts_, *references_, link_, *uploader_, kernels};
  HeldWork first = Work("good", true, true), second = Work("good", true, true);
  EXPECT_EQ(preparer.Prepare(first), std::nullopt);
  EXPECT_EQ(preparer.Prepare(second), std::nullopt);
  EXPECT_EQ(second.facts.code_bytes, 2) << "the second build of the process";
  HeldWork compared = Work("good", true, false);
  compared.lease.set_only_digest(true);
  const std::optional<MeasureResult> result = preparer.Prepare(compared);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->outcome, Outcome::kOk) << result->detail;
  EXPECT_EQ(compared.facts.code_bytes, 1) << "the first build of another process";
  EXPECT_EQ(compared.artifact_digest, first.artifact_digest);
  EXPECT_EQ(link_.uploads_, 0);
}

TEST_F(PartsTest, ACandidateOfAnotherBuilderIsFetched) {
  ReferenceKernels kernels = MakeReferenceKernels();
  CandidatePreparer preparer{
      builder_, BuilderClient(builder_), *artifacts_, *references_, link_, *uploader_, kernels};
  HeldWork work = Work("", false, true);
  work.lease.set_artifact_digest("no digest");
  EXPECT_EQ(preparer.Prepare(work)->outcome, Outcome::kInvalid);
  const std::string digest = Sha256Of("remote");
  work.lease.set_artifact_digest(digest);
  const std::optional<MeasureResult> missing = preparer.Prepare(work);
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->outcome, Outcome::kDeviceLost);
  EXPECT_THAT(missing->detail, HasSubstr("does not have it"));
  link_.stored_[digest] = "remote";
  EXPECT_EQ(preparer.Prepare(work), std::nullopt);
  EXPECT_TRUE(artifacts_->Pin(digest));
  std::ofstream(artifacts_->PathOf(digest)) << "";  // a power loss
  EXPECT_EQ(preparer.Prepare(work), std::nullopt);
  EXPECT_EQ(ReadFile(artifacts_->PathOf(digest)).value_or(""), "remote");
}

TEST_F(PartsTest, AFailureToMakeAReferenceIsReportedForEachCandidate) {
  ReferenceKernels kernels(machine_,
                           {.command = {"/no/such/builder"}, .output_parent = folder_ / "outputs"},
                           artifacts_.get(), &link_, uploader_.get());
  CandidateRunner runner(
      {.runner = {.command = {"/no/such/runner"}}, .output_parent = folder_ / "outputs"},
      artifacts_.get(), references_.get(), &kernels);
  const absl::Time connected = absl::InfinitePast();
  EXPECT_TRUE(runner.NeedsReference(kWorkloadDigest, connected));
  runner.MakeReference(kWorkloadDigest, "workload w\n", {kWorkloadDigest});
  EXPECT_FALSE(runner.NeedsReference(kWorkloadDigest, connected)) << "it is tried again later";
  EXPECT_TRUE(runner.NeedsReference(kWorkloadDigest, absl::InfiniteFuture()))
      << "and at once with a new server";
  auto work = std::make_shared<HeldWork>(Work("good", true, true));
  MeasureResult result;
  runner.Run(
      {work}, [](const HeldWork&) { return true; },
      [](HeldWork&) { FAIL() << "it does not start"; },
      [&](const std::shared_ptr<HeldWork>&, MeasureResult r) { result = std::move(r); });
  EXPECT_EQ(result.outcome, Outcome::kDeviceLost);
  EXPECT_THAT(result.detail, HasSubstr("the reference of this workload cannot be computed"));
}

// The kernel of a reference may come from another machine.
TEST_F(PartsTest, AFetchedReferenceKernelCannotReachOtherReferences) {
  constexpr absl::string_view kMatmul =
      "workload matmul\n"
      "input A: f32[64, 32]\n"
      "input B: f32[32, 48]\n"
      "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n";
  const std::string digest = ir::ParseWorkload(kMatmul)->StructuralDigest().ToHex();
  machine_.set_can_build(false);
  const std::vector<std::string> command = {absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-runner"),
                                            "--lock", folder_ / "lock", "--read",
                                            artifacts_->path()};
  const CandidateRunner::Options options = {
      .runner = {.command = command, .reference_command = command},
      .output_parent = folder_ / "outputs"};
  ReferenceKernels kernels = MakeReferenceKernels();
  CandidateRunner runner(options, artifacts_.get(), references_.get(), &kernels);
  const auto object = ReadFile(absl::StrCat(KERNEL_DIR, "/kernel_reference_spoils.so"));
  link_.stored_[record::ReferenceName{digest, target_.Key()}.ToText()] =
      record::EncodeArtifact({.shared_object = object.value()});
  runner.MakeReference(digest, std::string(kMatmul), {digest});
  EXPECT_FALSE(runner.NeedsReference(digest, absl::InfiniteFuture())) << "it was made";
  for (const auto& entry : std::filesystem::directory_iterator(references_->path())) {
    EXPECT_EQ(entry.path().filename(), digest);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "outputs"));
}

TEST_F(PartsTest, ReferencesOfHeldWorkloadsAreKept) {
  ReferenceKernels kernels = MakeReferenceKernels();
  CandidateRunner runner(
      {.runner = {.command = {"/no/such/runner"}}, .output_parent = folder_ / "outputs"},
      artifacts_.get(), references_.get(), &kernels);
  std::vector<std::string> digests;
  absl::flat_hash_set<std::string> held;
  for (int i = 0; i < 21; ++i) {
    digests.push_back(DigestOf(absl::StrCat("workload ", i)).ToHex());
    ASSERT_THAT(references_->Put(digests.back(), "a reference"), IsOk());
    if (i != 3) held.insert(digests.back());
  }
  const std::string last = digests.back();
  digests.pop_back();
  for (const std::string& digest : digests) runner.MakeReference(digest, "", held);
  for (size_t i = 0; i < digests.size(); ++i) {
    EXPECT_EQ(runner.NeedsReference(digests[i], absl::InfinitePast()), i == 3) << i;
  }
  // Without leases, only the newest stay.
  runner.MakeReference(last, "", {last});
  for (size_t i = 0; i < digests.size(); ++i) {
    EXPECT_EQ(runner.NeedsReference(digests[i], absl::InfinitePast()), i < 5) << i;
  }
}

TEST_F(PartsTest, TheBestOfAJobStopsItsOtherCandidatesEarlier) {
  v1::RunResponse answer;
  *answer.mutable_result() = record::ToProto(MeasureResult{.latency_ns = 100});
  const ScriptedChild script(folder_ / "script", answer.SerializeAsString());
  ReferenceKernels kernels = MakeReferenceKernels();
  CandidateRunner runner({.runner = {.command = {script.path()}}, .run_limit = absl::Seconds(10)},
                         artifacts_.get(), references_.get(), &kernels);
  const auto best_in_request = [&](const std::string& job, double best_in_lease) {
    auto work = std::make_shared<HeldWork>(Work("good", true, true));
    work->lease.set_job_id(job);
    work->lease.set_best_latency_ns(best_in_lease);
    runner.Run(
        {work}, [](const HeldWork&) { return true; }, [](HeldWork&) {},
        [](const std::shared_ptr<HeldWork>&, const MeasureResult& result) {
          EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
        });
    v1::RunRequest sent;
    EXPECT_TRUE(sent.ParseFromString(script.Requests().back()));
    return sent.best_latency_ns();
  };
  EXPECT_EQ(best_in_request("a", 500), 500);
  EXPECT_EQ(best_in_request("a", 500), 100);
  EXPECT_EQ(best_in_request("a", 50), 50);
  EXPECT_EQ(best_in_request("a", 0), 0) << "it must not stop early";
  EXPECT_EQ(best_in_request("b", 500), 500) << "another job";
}

}  // namespace
}  // namespace hone::agent

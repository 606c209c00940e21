// The real hone-runner with handwritten kernels: the outcome of each kind of fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/host_lock.h"
#include "common/base/sha256.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/record/counters.h"
#include "common/record/framing.h"
#include "common/record/given_inputs.h"
#include "common/record/proto_convert.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "worker/agent/child_process.h"

namespace hone {
namespace {

using agent::ChildProcess;
using record::MeasureResult;
using record::Outcome;
using record::RunRequest;
using ::testing::HasSubstr;

// The workload of tests/worker/kernels/matmul.cc.
constexpr absl::string_view kMatmul =
    "workload matmul\n"
    "input A: f32[64, 32]\n"
    "input B: f32[32, 48]\n"
    "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n";

class RunnerProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    lock_ = folder_ / "lock";
    Start({});
  }
  void Start(const std::vector<std::string>& more) {
    std::vector<std::string> command = {absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-runner"),
                                        "--lock",
                                        lock_,
                                        "--write",
                                        folder_.path(),
                                        "--memory",
                                        "8000000000"};
    command.insert(command.end(), more.begin(), more.end());
    runner_.reset();
    HONE_ASSERT_OK_AND_ASSIGN(runner_, ChildProcess::Start(command));
  }
  void TearDown() override { runner_.reset(); }

  // Writes the artifact of a handwritten kernel and returns its path.
  std::string Artifact(absl::string_view behaviour) {
    record::Artifact artifact;
    artifact.shared_object =
        ReadFile(absl::StrCat(KERNEL_DIR, "/kernel_", behaviour, ".so")).value();
    const std::string bytes = record::EncodeArtifact(artifact);
    const std::string path = absl::StrCat(folder_.path(), "/", Sha256Of(bytes));
    EXPECT_THAT(WriteFileAtomically(path, bytes), IsOk());
    return path;
  }

  RunRequest Request(absl::string_view behaviour) {
    RunRequest request;
    request.workload = std::string(kMatmul);
    request.workload_digest = ir::ParseWorkload(kMatmul)->StructuralDigest().ToHex();
    if (!behaviour.empty()) request.artifact_path = Artifact(behaviour);
    request.reference_path = Artifact("reference");
    request.reference_data = folder_ / "reference";
    request.seed = 1;
    request.time_limit_ms = 20000;
    return request;
  }

  void Send(const RunRequest& request) {
    EXPECT_THAT(
        record::WriteFrame(runner_->input(), record::ToProto(request).SerializeAsString(), Limit()),
        IsOk());
  }
  absl::StatusOr<MeasureResult> Receive() {
    const auto message = record::ReadFrame(runner_->output(), Limit());
    if (!message.ok()) return message.status();
    v1::RunResponse response;
    EXPECT_TRUE(response.ParseFromString(*message));
    return record::FromProto(response.result());
  }
  MeasureResult Run(const RunRequest& request) {
    Send(request);
    const absl::StatusOr<MeasureResult> result = Receive();
    EXPECT_THAT(result, IsOk()) << runner_->TakeErrorOutput();
    return result.ok() ? *result : MeasureResult{};
  }
  static absl::Time Limit() { return absl::Now() + absl::Seconds(60); }

  const TemporaryFolder folder_;
  std::string lock_;
  std::unique_ptr<ChildProcess> runner_;
};

TEST_F(RunnerProcessTest, CorrectKernelIsTimed) {
  const RunRequest request = Request("good");
  const MeasureResult result = Run(request);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
  EXPECT_GT(result.latency_ns, 100);
  EXPECT_LT(result.latency_ns, 1e9);
  EXPECT_GE(result.samples_ns.size(), 2u);
  EXPECT_GE(result.reference_drift, 1);
  EXPECT_LE(result.max_error, 1);
  EXPECT_EQ(result.artifact_digest, std::filesystem::path(request.artifact_path).filename());
}

// As large workloads are checked, with a small limit: the results say so, and wrong and missing
// elements are still found.
TEST_F(RunnerProcessTest, ALargeOutputIsComparedInPart) {
  Start({"--whole-reference", "1000"});
  const MeasureResult good = Run(Request("good"));
  EXPECT_EQ(good.outcome, Outcome::kOk) << good.detail;
  EXPECT_THAT(good.detail, HasSubstr(" of 3072 elements of C were compared"));
  const MeasureResult wrong = Run(Request("wrong"));
  EXPECT_EQ(wrong.outcome, Outcome::kWrongOutput) << wrong.detail;
  const MeasureResult unwritten = Run(Request("unwritten"));
  EXPECT_EQ(unwritten.outcome, Outcome::kWrongOutput) << unwritten.detail;
}

TEST_F(RunnerProcessTest, ResultsNameTheirInputs) {
  EXPECT_EQ(Run(Request("good")).inputs, record::kSeededInputs);
  // Data of a user. The runner keeps the two apart in one process.
  std::string a(64 * 32 * sizeof(float), '\0');
  for (int i = 0; i < 64 * 32; ++i) {
    const float value = static_cast<float>(i) * 0.01F;
    memcpy(&a[i * sizeof value], &value, sizeof value);
  }
  const std::string bytes = record::EncodeGivenInputs({{0, a}});
  RunRequest request = Request("good");
  request.inputs_digest = Sha256Of(bytes);
  request.inputs_path = folder_ / request.inputs_digest;
  request.reference_data = folder_ / "reference-of-given";
  ASSERT_THAT(WriteFileAtomically(request.inputs_path, bytes), IsOk());
  const MeasureResult given = Run(request);
  EXPECT_EQ(given.outcome, Outcome::kOk) << given.detail;
  EXPECT_EQ(given.inputs, request.inputs_digest);
  EXPECT_EQ(Run(Request("good")).inputs, record::kSeededInputs);
  const std::string other = record::EncodeGivenInputs({{0, a.substr(4)}});
  ASSERT_THAT(WriteFileAtomically(request.inputs_path, other), IsOk());
  EXPECT_EQ(Run(request).outcome, Outcome::kDeviceLost);
  request.inputs_digest = Sha256Of(other);
  const MeasureResult wrong = Run(request);
  EXPECT_EQ(wrong.outcome, Outcome::kInvalid);
  EXPECT_THAT(wrong.detail, HasSubstr("8188 bytes of A, which has 8192"));
}

TEST_F(RunnerProcessTest, AConfirmationTakesManySamples) {
  RunRequest request = Request("good");
  request.policy.name = "confirm";
  const MeasureResult result = Run(request);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
  // Ten on a quiet machine; a disturbed one may reject half of them. A screening takes up to four.
  EXPECT_GE(result.samples_ns.size(), 5u);
}

TEST_F(RunnerProcessTest, FlushesCaches) {
  RunRequest request = Request("good");
  request.policy.cache = "flushed";
  const MeasureResult result = Run(request);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
  EXPECT_GT(result.latency_ns, 0);
}

TEST_F(RunnerProcessTest, EachFailureHasItsOutcome) {
  struct Case {
    const char* behaviour;
    Outcome outcome;
    const char* detail;
  };
  // A single runner survives all of these.
  for (const Case& c :
       {Case{"wrong", Outcome::kWrongOutput, "C: element 821 is"},
        Case{"unwritten", Outcome::kWrongOutput, "C: element 3071 is nan"},
        Case{"out_of_bounds", Outcome::kWrongOutput, "outside of output C, at byte"},
        Case{"outside_workspace", Outcome::kWrongOutput,
             "outside of its workspace, at byte 64 of 64"},
        Case{"huge_workspace", Outcome::kOutOfMemory, "bytes of workspace"},
        Case{"other_abi", Outcome::kInvalid, "version 3"},
        Case{"other_cpu", Outcome::kInvalid, "this CPU lacks"}, Case{"good", Outcome::kOk, ""}}) {
    const MeasureResult result = Run(Request(c.behaviour));
    EXPECT_EQ(record::OutcomeName(result.outcome), record::OutcomeName(c.outcome)) << c.behaviour;
    EXPECT_THAT(result.detail, HasSubstr(c.detail));
  }
}

// The sandbox denies these requests, and the kernel continues.
TEST_F(RunnerProcessTest, DeniedSystemCallsDoNoHarm) {
  for (const char* behaviour : {"reads_file", "writes_file", "signals_parent", "raises_limits",
                                "starts_thread", "pins_parent", "changes_modes"}) {
    const MeasureResult result = Run(Request(behaviour));
    // The request failed, but the kernel did its work.
    EXPECT_EQ(record::OutcomeName(result.outcome), "ok") << behaviour << ": " << result.detail;
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/hone-written-by-a-kernel"));
}

// Files in memory do not count as its address space. (A process that writes references may write
// more.)
TEST_F(RunnerProcessTest, FilesOfKernelsAreBounded) {
  ASSERT_EQ(Run(Request("good")).outcome, Outcome::kOk);  // makes the reference
  HONE_ASSERT_OK_AND_ASSIGN(
      runner_, ChildProcess::Start({absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-runner"), "--lock",
                                    lock_, "--read", folder_.path()}));
  const MeasureResult result = Run(Request("writes_much"));
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
}

TEST_F(RunnerProcessTest, AKernelThatOpensASocketIsEnded) {
  const MeasureResult result = Run(Request("opens_socket"));
  EXPECT_EQ(result.outcome, Outcome::kCrash);
  EXPECT_THAT(result.detail, HasSubstr("which its sandbox forbids"));
  EXPECT_FALSE(Receive().ok());  // the process ended and released its lock
  EXPECT_THAT(HostLock::Acquire(HostLock::Mode::kExclusive, Limit(), lock_), IsOk());
}

// The runner has opened its own counters before the sandbox.
TEST_F(RunnerProcessTest, AKernelThatOpensACounterIsEnded) {
  const MeasureResult result = Run(Request("opens_counter"));
  EXPECT_EQ(result.outcome, Outcome::kCrash);
  EXPECT_THAT(result.detail, HasSubstr("which its sandbox forbids"));
}

TEST_F(RunnerProcessTest, OnlyAConfirmationIsCounted) {
  RunRequest request = Request("good");
  EXPECT_EQ(Run(request).counters, "");
  request.policy.name = "confirm";
  const MeasureResult result = Run(request);
  ASSERT_EQ(result.outcome, Outcome::kOk) << result.detail;
  double wall_ns = 0, processor_ns = 0;
  bool has_cycles = false;
  for (const record::Counter& counter : record::ParseCounters(result.counters)) {
    if (counter.name == record::kWallNs) wall_ns = counter.value;
    if (counter.name == record::kProcessorNs) processor_ns = counter.value;
    // The processor's own counters are there, or it is said why not.
    if (counter.name == record::kCycles) {
      has_cycles = true;
      EXPECT_EQ(counter.value > 0, counter.missing.empty()) << result.counters;
    }
  }
  EXPECT_TRUE(has_cycles) << result.counters;
  EXPECT_GT(wall_ns, 0.2 * result.latency_ns);
  EXPECT_GT(processor_ns, 0.2 * wall_ns);
}

TEST_F(RunnerProcessTest, AKernelThatForksIsEnded) {
  Send(Request("forks"));
  const absl::StatusOr<MeasureResult> result = Receive();
  if (!result.ok()) {  // since glibc 2.41, fork() blocks the signal that the runner reports
    EXPECT_EQ(runner_->Wait(Limit()).signal, SIGSYS) << result.status();
    return;
  }
  EXPECT_EQ(result->outcome, Outcome::kCrash);
  EXPECT_THAT(result->detail, HasSubstr("which its sandbox forbids"));
}

TEST_F(RunnerProcessTest, AKernelThatKillsItsParentIsEnded) {
  const MeasureResult result = Run(Request("kills_parent"));  // this process
  EXPECT_EQ(result.outcome, Outcome::kCrash);
  EXPECT_THAT(result.detail, HasSubstr("which its sandbox forbids"));
}

TEST_F(RunnerProcessTest, AKernelThatAllocatesWithoutBoundIsEnded) {
  Send(Request("hungry"));
  EXPECT_FALSE(Receive().ok());
  EXPECT_EQ(runner_->Wait(Limit()).signal, SIGABRT);
}

TEST_F(RunnerProcessTest, DetectsAKernelThatFakesItsTiming) {
  const MeasureResult result = Run(Request("fakes_timing"));
  EXPECT_EQ(result.outcome, Outcome::kWrongOutput);
  EXPECT_THAT(result.detail, HasSubstr("when its outputs do not contain the results yet"));
}

TEST_F(RunnerProcessTest, AHangEndsTheProcessWithItsOutcome) {
  RunRequest request = Request("hang");
  request.time_limit_ms = 100;
  const MeasureResult result = Run(request);
  EXPECT_EQ(result.outcome, Outcome::kRunTimeout);
  EXPECT_THAT(result.detail, HasSubstr("within 0.1 s"));
  EXPECT_THAT(Receive(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(runner_->Wait(Limit()).signal, 0);
  // The lock is free again.
  EXPECT_THAT(HostLock::Acquire(HostLock::Mode::kExclusive, Limit(), lock_), IsOk());
}

TEST_F(RunnerProcessTest, ACrashEndsTheProcess) {
  Send(Request("crash"));
  EXPECT_FALSE(Receive().ok());
  EXPECT_EQ(runner_->Wait(Limit()).signal, SIGSEGV);
  EXPECT_THAT(HostLock::Acquire(HostLock::Mode::kExclusive, Limit(), lock_), IsOk());
}

TEST_F(RunnerProcessTest, ASlowKernelStopsEarly) {
  RunRequest request = Request("slow");
  request.best_latency_ns = 1000;
  const MeasureResult result = Run(request);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.samples_ns.size(), 1u);
}

// The part of its range by which a kernel is judged may already write outside its buffers. The next
// kernel is not blamed for that.
TEST_F(RunnerProcessTest, AKernelThatStopsAfterAPartIsCheckedForWritesOutside) {
  RunRequest request = Request("outside_part");
  request.best_latency_ns = 1000;
  const MeasureResult result = Run(request);
  EXPECT_EQ(result.outcome, Outcome::kWrongOutput);
  EXPECT_THAT(result.detail, HasSubstr("outside of output C, at byte 12288 of 12288"));
  const MeasureResult next = Run(Request("good"));
  EXPECT_EQ(next.outcome, Outcome::kOk) << next.detail;
}

// A kernel whose time is no better than the best is not run again for a check of its outputs.
TEST_F(RunnerProcessTest, TimedRunsAreCheckedForWritesOutside) {
  RunRequest request = Request("outside_later");
  request.best_latency_ns = 90e6;
  MeasureResult result;
  do {
    result = Run(request);
  } while (result.stopped_early);  // a stall of the machine, so that it was not timed
  EXPECT_EQ(result.outcome, Outcome::kWrongOutput) << result.detail;
  EXPECT_THAT(result.detail, HasSubstr("outside of output C"));
  const MeasureResult next = Run(Request("good"));
  EXPECT_EQ(next.outcome, Outcome::kOk) << next.detail;
}

TEST_F(RunnerProcessTest, TheReferenceIsMadeOnceAndOnRequest) {
  const RunRequest request = Request("");
  EXPECT_EQ(Run(request).outcome, Outcome::kOk);
  ASSERT_TRUE(std::filesystem::exists(request.reference_data));
  RunRequest later = Request("good");
  later.reference_path = "/no/such/file";  // no longer needed
  EXPECT_EQ(Run(later).outcome, Outcome::kOk);
}

TEST_F(RunnerProcessTest, AWrongReferenceKernelIsFoundByTheInterpreter) {
  RunRequest request = Request("good");
  request.reference_path = Artifact("good");  // f32 where f64 is expected
  const MeasureResult result = Run(request);
  EXPECT_EQ(result.outcome, Outcome::kDeviceLost);
  EXPECT_THAT(result.detail, HasSubstr("the interpreter says"));
}

// A reference kernel that computes some elements wrongly cannot know which ones are looked at: the
// same kernel is found in some attempts, and not in others.
TEST_F(RunnerProcessTest, TheElementsThatAreLookedAtCannotBeForeseen) {
  int found = 0;
  constexpr int kAttempts = 40;  // each finds one of the 6 elements with a probability of 0.39
  for (int i = 0; i < kAttempts; ++i) {
    if (i > 0) Start({});
    RunRequest request = Request("");
    request.reference_path = Artifact("reference_with_gaps");
    std::filesystem::remove(request.reference_data);
    found += Run(request).outcome != Outcome::kOk;
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, kAttempts);
}

TEST_F(RunnerProcessTest, DamagedArtifactsAndTextsAreReported) {
  RunRequest request = Request("good");
  ASSERT_THAT(WriteFileAtomically(request.artifact_path, "garbage"), IsOk());
  EXPECT_EQ(Run(request).outcome, Outcome::kDeviceLost);
  request.artifact_path = folder_ / "none";
  EXPECT_EQ(Run(request).outcome, Outcome::kDeviceLost);
  request = Request("good");
  request.workload = "workload nonsense";
  request.workload_digest = "other";
  EXPECT_EQ(Run(request).outcome, Outcome::kInvalid);
}

TEST_F(RunnerProcessTest, TheLockIsKeptForABatchAndFreeAfterIt) {
  for (int i = 0; i < 3; ++i) Send(Request("good"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Receive()->outcome, Outcome::kOk);
  EXPECT_THAT(HostLock::Acquire(HostLock::Mode::kExclusive, Limit(), lock_), IsOk());
}

TEST_F(RunnerProcessTest, ExitsAtEndOfInput) {
  runner_->CloseInput();
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 0");
}

TEST_F(RunnerProcessTest, ExitsOnAGarbledRequest) {
  ASSERT_THAT(record::WriteFrame(runner_->input(), "\xff\xff\xff", Limit()), IsOk());
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 1");
  EXPECT_THAT(runner_->TakeErrorOutput(), HasSubstr("garbled"));
}

}  // namespace
}  // namespace hone

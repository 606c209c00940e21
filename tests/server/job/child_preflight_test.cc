// The exit of the child process determines the verdict on a job. The children here are shell
// commands.

#include "server/job/child_preflight.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"

namespace hone::job {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ChildPreflightOptions Shell(const std::string& script, absl::Duration limit = absl::Minutes(5)) {
  return {.command = {"/bin/sh", "-c", script}, .limit = limit};
}

JobSpec Spec() {
  return {.workload = "a workload", .target = "a target", .strategy = "s", .cost_model = "m"};
}

absl::Status Check(ChildPreflight& preflight, const JobSpec& spec) {
  absl::Status verdict;
  absl::Notification done;
  preflight.Check(spec, [&](const absl::Status& status) {
    verdict = status;
    done.Notify();
  });
  done.WaitForNotification();
  return verdict;
}

std::string Verdict(const std::string& script, absl::Duration limit = absl::Minutes(5)) {
  ChildPreflight preflight(Shell(script, limit));
  const absl::Status status = Check(preflight, Spec());
  EXPECT_EQ(status.code(), status.ok() ? absl::StatusCode::kOk : absl::StatusCode::kAborted);
  return std::string(status.message());
}

TEST(ChildPreflight, SuccessfulChildPasses) {
  EXPECT_EQ(Verdict("echo step proposing candidates"), "");
}

TEST(ChildPreflight, ReportsHowAndWhereTheChildFailed) {
  EXPECT_THAT(Verdict("echo step making the design spaces; kill -SEGV $$"),
              AllOf(HasSubstr("signal 11"), HasSubstr("while making the design spaces")));
  EXPECT_THAT(Verdict("echo step making; echo step proposing candidates; kill -ABRT $$"),
              AllOf(HasSubstr("signal 6"), HasSubstr("while proposing candidates")));
  EXPECT_THAT(Verdict("echo step a; echo error std::bad_alloc: much; exit 1"),
              HasSubstr("failed with std::bad_alloc: much while a"));
  EXPECT_THAT(Verdict("kill -KILL $$"), HasSubstr("memory"));
  EXPECT_THAT(Verdict("kill -XCPU $$"), HasSubstr("processor time"));
  EXPECT_THAT(Verdict("exit 9"), HasSubstr("exit code 9"));
}

TEST(ChildPreflight, EndlessChildIsKilled) {
  ChildPreflightOptions options = Shell("echo step b; while :; do :; done", absl::Seconds(4));
  options.least_share = 1e-4;  // on a loaded machine, children get little processor time
  ChildPreflight preflight(options);
  const absl::Status status = Check(preflight, Spec());
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("took longer than 4 s"), HasSubstr("while b")));
}

TEST(ChildPreflight, ChildWithoutCpuTimePasses) {
  EXPECT_EQ(Verdict("echo step b; exec sleep 1000", absl::Milliseconds(200)), "");
}

TEST(ChildPreflight, TimeOfTheJobLimitsTheChild) {
  ChildPreflight preflight(Shell("echo step making the design spaces; exec sleep 1000"));
  JobSpec spec = Spec();
  spec.max_time = absl::Milliseconds(300);
  const absl::Status status = Check(preflight, spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("was over while making the design spaces"),
                    ::testing::Not(HasSubstr("defect"))));
}

TEST(ChildPreflight, SlowChildDoesNotBlockOthers) {
  ChildPreflight preflight(Shell("read job; case $job in *slow*) exec sleep 1000;; esac"));
  JobSpec slow = Spec();
  slow.workload = "slow";
  absl::Status ended;
  preflight.Check(slow, [&](const absl::Status& status) { ended = status; });
  EXPECT_TRUE(Check(preflight, Spec()).ok());
  preflight.Stop();
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled) << ended;
}

TEST(ChildPreflight, ChildReadsTheJobAndInheritsNoDescriptors) {
  const std::string path = ::testing::TempDir() + "/child_preflight_input";
  JobSpec spec = Spec();
  spec.workload = std::string(1 << 20, 'w');  // larger than a pipe buffer
  ChildPreflight preflight(Shell(absl::StrCat("cat > ", path, "; test ! -e /proc/self/fd/9")));
  const int ours = open("/dev/null", O_RDONLY);
  ASSERT_EQ(dup2(ours, 9), 9);  // stays open across exec
  EXPECT_TRUE(Check(preflight, spec).ok());
  close(9);
  close(ours);
  const auto read = DecodeSpec(ReadFile(path).value());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->workload, spec.workload);
  EXPECT_EQ(read->strategy, "s");
}

TEST(ChildPreflight, EqualJobsAreCheckedOnce) {
  const std::string path = ::testing::TempDir() + "/child_preflight_count";
  std::filesystem::remove(path);
  ChildPreflight preflight(Shell(absl::StrCat("echo x >> ", path)));
  JobSpec spec = Spec();
  ASSERT_TRUE(Check(preflight, spec).ok());
  spec.owner = "another", spec.max_trials = 7, spec.request_id = "9";
  ASSERT_TRUE(Check(preflight, spec).ok());
  EXPECT_EQ(*ReadFile(path), "x\n");
  spec.workload = "another workload";
  ASSERT_TRUE(Check(preflight, spec).ok());
  EXPECT_EQ(*ReadFile(path), "x\nx\n");
}

TEST(ChildPreflight, MissingProgramPasses) {
  ChildPreflight preflight({.command = {"/no/such/program"}});
  EXPECT_TRUE(Check(preflight, Spec()).ok());
}

TEST(ChildPreflight, StopCancelsRunningAndLaterChecks) {
  const std::string path = ::testing::TempDir() + "/child_preflight_began";
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  ChildPreflight preflight(Shell(absl::StrCat("echo x > ", path, "; exec sleep 1000")));
  absl::Status ended;
  preflight.Check(Spec(), [&](const absl::Status& status) { ended = status; });
  const int began = open(path.c_str(), O_RDONLY);  // blocks until the child opens it
  preflight.Stop();
  close(began);
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled) << ended;
  EXPECT_EQ(Check(preflight, Spec()).code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace hone::job

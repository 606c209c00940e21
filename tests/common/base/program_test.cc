#include "common/base/program.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(ProgramTest, GetsInputAndEnvironmentAndReturnsItsTexts) {
  const auto result =
      RunProgram({.words = {"/bin/sh", "-c", "cat; echo $ADDED; echo no >&2; exit 3"},
                  .input = "in\n",
                  .environment = {{"ADDED", "more"}}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->ok());
  EXPECT_EQ(WEXITSTATUS(result->wait_status), 3);
  EXPECT_EQ(result->output, "in\nmore\n");
  EXPECT_EQ(result->errors, "no\n");
}

TEST(ProgramTest, ReportsErrorsWhileItRuns) {
  std::string seen;
  const auto result = RunProgram({.words = {"/bin/sh", "-c", "echo waits >&2; exec sleep 60"},
                                  .on_errors = [&](pid_t program, absl::string_view errors) {
                                    seen = std::string(errors);
                                    kill(program, SIGTERM);
                                  }});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(seen, "waits\n");
  EXPECT_EQ(WTERMSIG(result->wait_status), SIGTERM);
}

TEST(ProgramTest, ProgramThatIsNotThere) {
  EXPECT_TRUE(absl::IsNotFound(RunProgram({.words = {"/nowhere/program"}}).status()));
}

TEST(ProgramTest, FolderOfThisProgram) {
  EXPECT_TRUE(std::filesystem::exists(ProgramDir() + "/" + program_invocation_short_name));
}

}  // namespace
}  // namespace hone

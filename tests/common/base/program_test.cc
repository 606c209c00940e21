#include "common/base/program.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone {
namespace {

TEST(ProgramTest, GetsInputAndEnvironmentAndReturnsItsTexts) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto result,
      RunProgram({.words = {"/bin/sh", "-c", "cat; echo $ADDED; echo no >&2; exit 3"},
                  .input = "in\n",
                  .environment = {{"ADDED", "more"}}}));
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(WEXITSTATUS(result.wait_status), 3);
  EXPECT_EQ(result.output, "in\nmore\n");
  EXPECT_EQ(result.errors, "no\n");
}

TEST(ProgramTest, ReportsErrorsWhileItRuns) {
  std::string seen;
  HONE_ASSERT_OK_AND_ASSIGN(const auto result,
                            RunProgram({.words = {"/bin/sh", "-c", "echo waits >&2; exec sleep 60"},
                                        .on_errors = [&](pid_t program, absl::string_view errors) {
                                          seen = std::string(errors);
                                          kill(program, SIGTERM);
                                        }}));
  EXPECT_EQ(seen, "waits\n");
  EXPECT_EQ(WTERMSIG(result.wait_status), SIGTERM);
}

TEST(ProgramTest, ProgramThatIsNotThere) {
  EXPECT_THAT(RunProgram({.words = {"/nowhere/program"}}), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ProgramTest, FolderOfThisProgram) {
  EXPECT_TRUE(std::filesystem::exists(ProgramDir() + "/" + program_invocation_short_name));
}

}  // namespace
}  // namespace hone

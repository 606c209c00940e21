#include "client/cli/npy_argument.h"

#include <filesystem>

#include "client/cli/exit_code.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

TEST(CheckNpyResultsTest, LeavesFilesAndFoldersAsTheyAre) {
  const std::string folder = testing::TempDir() + "check_npy_results";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  const std::string file = folder + "/y.npy";
  EXPECT_TRUE(CheckNpyResults({file}).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  ASSERT_TRUE(WriteFileAtomically(file, "old").ok());
  EXPECT_TRUE(CheckNpyResults({file}).ok());
  EXPECT_EQ(ReadFile(file).value_or(""), "old");
}

TEST(CheckNpyResultsTest, NamesThePathThatCannotBeWritten) {
  for (const std::string path : {"/nowhere/y.npy", "/proc/y.npy", "/tmp"}) {
    const absl::Status status = CheckNpyResults({testing::TempDir() + "x.npy", path});
    EXPECT_EQ(ExitCodeFor(status), kExitFailed) << status;
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace hone::cli

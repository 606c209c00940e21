#include "server/research/lab/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;

constexpr char kList[] = "tests/bench/sample/tasks.txt";

// Which tasks are held out must never change: results before and after could not be compared, and
// constants may have been chosen by the tasks that are not held out.
TEST(SampleTasksTest, HoldOutTheSameTasksForEver) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<SampleTask> tasks, ReadSampleTasks(kList));
  std::string text;
  std::set<std::string> families;
  for (const SampleTask& task : tasks) {
    absl::StrAppend(&text, task.held_out ? "held out     " : "development  ", task.name, "\n");
    families.insert(task.family);
  }
  EXPECT_GE(families.size(), 12u);
  ExpectGolden("tests/server/research/lab/testdata/tasks.txt", text);
}

TEST(SampleTasksTest, RefusesMalformedLists) {
  const TemporaryFolder folder;
  const std::string list = folder / "tasks.txt";
  const auto refused = [&](const std::string& text, absl::StatusCode code, const char* why) {
    std::ofstream(list) << text;
    EXPECT_THAT(ReadSampleTasks(list), StatusIs(code, HasSubstr(why))) << text;
  };
  refused("matmul m=8 n=8 k=8\nmatmul m=8", absl::StatusCode::kInvalidArgument, "tasks.txt:2: ");
  refused("# twice\nmatmul m=8 n=8 k=8\n\nmatmul n=8 m=8 k=8", absl::StatusCode::kInvalidArgument,
          "tasks.txt:4: matmul n=8 m=8 k=8: this task occurs twice");
  refused("matmull m=8 n=8 k=8", absl::StatusCode::kNotFound, "matmul");
  refused("net/none.hone", absl::StatusCode::kNotFound, "tasks.txt:1: net/none.hone");
}

}  // namespace
}  // namespace hone::lab

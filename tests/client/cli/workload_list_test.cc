#include "client/cli/workload_list.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Titles(const absl::StatusOr<std::vector<WorkloadArgument>>& workloads) {
  EXPECT_TRUE(workloads.ok()) << workloads.status();
  std::vector<std::string> titles;
  if (workloads.ok()) {
    for (const WorkloadArgument& workload : *workloads) titles.push_back(workload.title);
  }
  return titles;
}

class WorkloadListTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = ::testing::TempDir() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  const std::string one_ =
      File("the one.hone", "workload w\ninput A: f32[4]\noutput B[i: 4] = A[i]\n");
};

TEST_F(WorkloadListTest, OperatorOrFileStartsANewWorkload) {
  EXPECT_THAT(Titles(ReadWorkloads({"matmul", "m=4", "n=4", "k=4", one_, "softmax", "m=8", "n=8"})),
              ElementsAre("matmul m=4 n=4 k=4", one_, "softmax m=8 n=8"));
  EXPECT_THAT(Titles(ReadWorkloads({"matmul m=4 n=4 k=4", "softmax m=8 n=8"})),
              ElementsAre("matmul m=4 n=4 k=4", "softmax m=8 n=8"));
}

TEST_F(WorkloadListTest, WordsCanBeCopiedToAShell) {
  const auto workloads = ReadWorkloads({"matmul", "m=4", "n=4", "k=4", one_});
  ASSERT_TRUE(workloads.ok()) << workloads.status();
  EXPECT_EQ((*workloads)[0].words, "matmul m=4 n=4 k=4");
  EXPECT_EQ((*workloads)[1].words, "'" + one_ + "'") << "the name has a blank";
}

TEST_F(WorkloadListTest, ErrorNamesTheWorkload) {
  EXPECT_THAT(std::string(ReadWorkloads({"matmul", "m=4", "nn"}).status().message()),
              HasSubstr("matmul takes m, n, k"));
  EXPECT_THAT(std::string(ReadWorkloads({}).status().message()), HasSubstr("workload is missing"));
}

TEST_F(WorkloadListTest, AFileHasOneWorkloadOnEachLine) {
  EXPECT_THAT(Titles(ReadWorkloadList(
                  File("list.txt", "# of a network\n\n  matmul m=4  n=4 k=4\r\n" + one_ + "\n"))),
              ElementsAre("matmul m=4 n=4 k=4", one_));
  const absl::Status wrong =
      ReadWorkloadList(File("bad.txt", "matmul m=4 n=4 k=4\n\nmatmull\n")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong));
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("bad.txt:3: unknown operator 'matmull'"));
  EXPECT_THAT(std::string(ReadWorkloadList(File("empty.txt", "# none\n")).status().message()),
              HasSubstr("has no workload"));
}

}  // namespace
}  // namespace hone::cli

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/cli/workload_argument.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Titles(const absl::StatusOr<std::vector<WorkloadArgument>>& workloads) {
  EXPECT_THAT(workloads, IsOk());
  std::vector<std::string> titles;
  if (workloads.ok()) {
    for (const WorkloadArgument& workload : *workloads) titles.push_back(workload.title);
  }
  return titles;
}

class WorkloadListTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  const TemporaryFolder folder_;
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
  HONE_ASSERT_OK_AND_ASSIGN(const auto workloads,
                            ReadWorkloads({"matmul", "m=4", "n=4", "k=4", one_}));
  EXPECT_EQ(workloads[0].words, "matmul m=4 n=4 k=4");
  EXPECT_EQ(workloads[1].words, "'" + one_ + "'") << "the name has a blank";
}

TEST_F(WorkloadListTest, ErrorNamesTheWorkload) {
  GoldenOfTest golden;
  golden.Name(folder_.path(), "DIR");
  golden.Add(ReadWorkloads({"matmul", "m=4", "nn"}).status().message());
  golden.Add(ReadWorkloads({}).status().message());
}

TEST_F(WorkloadListTest, AFileHasOneWorkloadOnEachLine) {
  GoldenOfTest golden;
  golden.Name(folder_.path(), "DIR");
  EXPECT_THAT(Titles(ReadWorkloadList(
                  File("list.txt", "# of a network\n\n  matmul m=4  n=4 k=4\r\n" + one_ + "\n"))),
              ElementsAre("matmul m=4 n=4 k=4", one_));
  EXPECT_THAT(ReadWorkloadList(File("bad.txt", "matmul m=4 n=4 k=4\n\nmatmull\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("bad.txt:3: unknown operator 'matmull'")));
  golden.Add(ReadWorkloadList(File("empty.txt", "# none\n")).status().message());
  const std::string network = File("net.txt", "softmax m=8 n=8\nmodels/my net.onnx\n");
  golden.Add(ReadWorkloadList(network).status().message());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"net.onnx", "softmax", "m=8", "n=8"},
        {"softmax", "m=8", "n=8", "net.onnx"}}) {
    golden.Add(ReadWorkloads(words).status().message());
  }
}

TEST_F(WorkloadListTest, AWorkloadMayBeQuotedAsOneWord) {
  const std::vector<std::string> quoted = {"softmax m=8 n=8"};
  HONE_ASSERT_OK_AND_ASSIGN(const WorkloadArgument workload, ReadWorkloadArgument(quoted));
  EXPECT_EQ(workload.title, "softmax m=8 n=8");
  const std::vector<std::string> wrong = {"softmaxx m=8 n=8"};
  EXPECT_THAT(std::string(ReadWorkloadArgument(wrong).status().message()),
              HasSubstr("did you mean 'softmax'"));
}

TEST_F(WorkloadListTest, ALineMayEndWithAComment) {
  const std::string blank =
      File("odd #1.hone", "workload w\ninput A: f32[4]\noutput B[i: 4] = A[i]\n");
  const std::string list =
      File("commented.txt", "  # of a/b\nmatmul m=4 n=4 k=4 # in a/b.hone\nsoftmax m=8 n=8\t#\r\n" +
                                one_ + " # a file\n" + blank + "\n");
  EXPECT_THAT(Titles(ReadWorkloadList(list)),
              ElementsAre("matmul m=4 n=4 k=4", "softmax m=8 n=8", one_, blank));
}

TEST_F(WorkloadListTest, AListThatIsGivenAsAWorkloadIsRecognized) {
  GoldenOfTest golden;
  golden.Name(folder_.path(), "DIR");
  const auto error = [](const std::string& word) {
    return std::string(ReadWorkloads({word}).status().message());
  };
  const std::string list = File("net.txt", "# of a network\n\nmatmul m=4 n=4 k=4\nsoftmax\n");
  const std::string hint = " is a list of workloads; tune, best and export read it with --file ";
  EXPECT_EQ(error(list), list + hint + list) << "a path";
  golden.Add(error(File("of_files.txt", "\n" + one_ + "\n")));
  golden.Add(error(File("other.txt", "These are words.\n")));
  golden.Add(error(File("wrong.hone", "workload w\ninput A: f32[4\n")));
  golden.Add(error(File("empty.hone", "")));

  // Without a folder, the word could be an operator.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  EXPECT_EQ(error("net.txt"), "net.txt" + hint + "net.txt");
  golden.Add(error("other.txt"));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace hone::cli

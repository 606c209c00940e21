#include "client/cli/npy_argument.h"

#include <filesystem>

#include "client/cli/exit_code.h"
#include "client/cli/npy.h"
#include "common/base/file.h"
#include "common/ir/workload_parser.h"
#include "common/record/given_inputs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

TEST(CheckNpyResultsTest, LeavesFilesAndFoldersAsTheyAre) {
  const TemporaryFolder folder;
  const std::string file = folder / "y.npy";
  EXPECT_THAT(CheckNpyResults({file}), IsOk());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ASSERT_THAT(WriteFileAtomically(file, "old"), IsOk());
  EXPECT_THAT(CheckNpyResults({file}), IsOk());
  EXPECT_EQ(ReadFile(file).value_or(""), "old");
}

TEST(CheckNpyResultsTest, NamesThePathThatCannotBeWritten) {
  const TemporaryFolder folder;
  for (const std::string path : {"/nowhere/y.npy", "/proc/y.npy", "/tmp"}) {
    const absl::Status status = CheckNpyResults({folder / "x.npy", path});
    EXPECT_EQ(ExitCodeFor(status), kExitFailed) << status;
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
}

TEST(ReadGivenInputsTest, FilesAreNamedOrInOrder) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ir::ParseWorkload(
          "workload w\ninput A: f32[2]\ninput B: i32[2] < 5\noutput C[i: 2] = A[i] + f32(B[i])\n"));
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, ir::DType dtype, const void* data) {
    const std::string path = folder / name;
    EXPECT_THAT(WriteFileAtomically(path, client::NpyHeader(dtype, {2}) +
                                              std::string(static_cast<const char*>(data), 8)),
                IsOk());
    return path;
  };
  const float a[] = {1, 2};
  const int32_t b[] = {3, 4}, large[] = {3, 5};
  const std::string a_file = write("given=a.npy", ir::DType::kF32, a);
  const std::string b_file = write("given_b.npy", ir::DType::kI32, b);
  const std::string large_file = write("given_large.npy", ir::DType::kI32, large);
  EXPECT_EQ(ReadGivenInputs({}, workload).value(), "");
  const std::string both = ReadGivenInputs({a_file, "B=" + b_file}, workload).value();
  EXPECT_EQ(both, ReadGivenInputs({"B=" + b_file, "A=" + a_file}, workload).value());
  EXPECT_EQ(both, ReadGivenInputs({a_file, b_file}, workload).value());
  const std::string only = ReadGivenInputs({"B=" + b_file}, workload).value();
  HONE_ASSERT_OK_AND_ASSIGN(const auto inputs, record::DecodeGivenInputs(only));
  ASSERT_TRUE(inputs.size() == 1);
  EXPECT_EQ(inputs.at(1), std::string(reinterpret_cast<const char*>(b), 8));

  GoldenOfTest golden;
  golden.Name(folder.path(), "DIR");
  for (const std::vector<std::string>& words : {std::vector<std::string>{b_file},
                                                {"B=" + large_file},
                                                {"D=" + b_file},
                                                {a_file, b_file, b_file},
                                                {"A=" + a_file, a_file},
                                                {"nowhere.npy"}}) {
    golden.Add(ReadGivenInputs(words, workload).status().ToString());
  }
}

}  // namespace
}  // namespace hone::cli

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "client/network/onnx/tensor_proto.h"
#include "common/base/file.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::onnx {
namespace {

namespace fs = std::filesystem;

// A folder with a model's folder "m", in which "w" has 8 bytes, and a file "secret" outside of it.
class ExternalDataTest : public testing::Test {
 protected:
  ExternalDataTest() {
    fs::create_directories(root_ / "m/sub");
    EXPECT_THAT(WriteFileAtomically(root_ / "m/w", "01234567"), IsOk());
    EXPECT_THAT(WriteFileAtomically(root_ / "secret", "01234567"), IsOk());
  }

  absl::StatusOr<graph::ConstantData> Map(const ExternalRange& range) {
    ExternalData files(root_ / "m");
    return files.Map(range);  // the data outlives the files
  }

  const TemporaryFolder root_;
};

TEST_F(ExternalDataTest, MapsRanges) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto data, Map({"w", 2, 3}));
  EXPECT_EQ(data.bytes(), "234");
  EXPECT_THAT(Map({"w", 8, 0}), IsOk());
  fs::create_symlink("../w", root_ / "m/sub/link");
  EXPECT_THAT(Map({"sub/link", 0, 8}), IsOk());
}

TEST_F(ExternalDataTest, ReadsOnlyInsideTheFolder) {
  GoldenOfTest golden;
  fs::create_symlink("../secret", root_ / "m/link");
  fs::create_directory_symlink("..", root_ / "m/up");
  for (const char* location :
       {"../secret", "sub/../../secret", "/etc/passwd", "", "link", "up/secret"}) {
    golden.Add(Map({location, 0, 1}).status().ToString());
  }
}

TEST_F(ExternalDataTest, Errors) {
  GoldenOfTest golden;
  golden.Name(root_.path(), "DIR");
  ASSERT_EQ(::mkfifo((root_ / "m/pipe").c_str(), 0600), 0);
  for (const ExternalRange& range :
       {ExternalRange{"w", 0, 9}, ExternalRange{"w", 8, 1}, ExternalRange{"w", -1, 1},
        ExternalRange{"w", 9, 0}, ExternalRange{"w", INT64_MAX, 8}, ExternalRange{"absent", 0, 1},
        ExternalRange{"sub", 0, 1}, ExternalRange{"pipe", 0, 1}}) {
    golden.Add(Map(range).status().ToString());
  }
}

}  // namespace
}  // namespace hone::onnx

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "client/network/onnx/tensor_proto.h"
#include "common/base/file.h"
#include "tests/temporary_folder.h"

namespace hone::onnx {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder with a model's folder "m", in which "w" has 8 bytes, and a file "secret" outside of it.
class ExternalDataTest : public testing::Test {
 protected:
  ExternalDataTest() {
    fs::create_directories(root_ / "m/sub");
    EXPECT_TRUE(WriteFileAtomically(root_ / "m/w", "01234567").ok());
    EXPECT_TRUE(WriteFileAtomically(root_ / "secret", "01234567").ok());
  }

  absl::StatusOr<graph::ConstantData> Map(const ExternalRange& range) {
    ExternalData files(root_ / "m");
    return files.Map(range);  // the data outlives the files
  }

  const TemporaryFolder root_;
};

TEST_F(ExternalDataTest, MapsRanges) {
  const auto data = Map({"w", 2, 3});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->bytes(), "234");
  EXPECT_TRUE(Map({"w", 8, 0}).ok());
  fs::create_symlink("../w", root_ / "m/sub/link");
  EXPECT_TRUE(Map({"sub/link", 0, 8}).ok());
}

TEST_F(ExternalDataTest, ReadsOnlyInsideTheFolder) {
  for (const char* location : {"../secret", "sub/../../secret", "/etc/passwd", ""}) {
    const absl::Status status = Map({location, 0, 1}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << location << status;
    EXPECT_THAT(status.message(), HasSubstr("not a path inside the model's folder"));
  }
  fs::create_symlink("../secret", root_ / "m/link");
  fs::create_directory_symlink("..", root_ / "m/up");
  for (const char* location : {"link", "up/secret"}) {
    const absl::Status status = Map({location, 0, 1}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << location << status;
    EXPECT_THAT(status.message(), HasSubstr("outside of the model's folder"));
  }
}

TEST_F(ExternalDataTest, Errors) {
  for (const ExternalRange& range :
       {ExternalRange{"w", 0, 9}, ExternalRange{"w", 8, 1}, ExternalRange{"w", -1, 1},
        ExternalRange{"w", 9, 0}, ExternalRange{"w", INT64_MAX, 8}}) {
    EXPECT_THAT(Map(range).status().message(), HasSubstr("of the file 'w', which has 8 bytes"));
  }
  EXPECT_TRUE(absl::IsNotFound(Map({"absent", 0, 1}).status()));
  EXPECT_THAT(Map({"sub", 0, 1}).status().message(), HasSubstr("Is a directory"));
  ASSERT_EQ(::mkfifo((root_ / "m/pipe").c_str(), 0600), 0);
  EXPECT_THAT(Map({"pipe", 0, 1}).status().message(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace hone::onnx

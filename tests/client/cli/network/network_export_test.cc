#include "client/cli/network/network_export.h"

#include <string>

#include "client/cli/exit_code.h"
#include "client/cli/network/operator_export.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

// The file and the server do not exist, so nothing else was done before.
TEST(NetworkExportTest, NamesAreCheckedFirst) {
  Globals globals;
  globals.server = "unix:/no/such/socket";
  const auto refusal = [&](const std::string& file, const std::string& name) {
    const absl::Status status =
        ExportNetworkFiles(globals, {file, {}}, {}, {.folder = "/no/such/folder", .name = name});
    EXPECT_EQ(ExitCodeFor(status), kExitUsage) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("none.onnx", "float"), HasSubstr("'float' means something else in C"));
  EXPECT_THAT(refusal("int.onnx", ""), HasSubstr("give the network another name with --name"));
  EXPECT_THAT(refusal("none.onnx", "hone_x"), HasSubstr("does not begin with hone_"));
  EXPECT_THAT(refusal("none.onnx", "good"), HasSubstr("none.onnx"));
}

TEST(NetworkExportTest, NamesOfOperatorsForSeveralSizesAreCheckedFirst) {
  Globals globals;
  globals.server = "unix:/no/such/socket";
  HONE_ASSERT_OK_AND_ASSIGN(const auto sizes,
                            ReadOperatorSizes({"matmul", "m=1,4", "n=8", "k=16"}));
  ASSERT_TRUE(sizes.has_value());
  const absl::Status status = ExportOperatorSizes(globals, *sizes, /*tolerance=*/0,
                                                  {.folder = "/no/such/folder", .name = "float"});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("'float' means something else in C")));
}

}  // namespace
}  // namespace hone::cli

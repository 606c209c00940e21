// Commands about ONNX models that need no server.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using integration::Result;
using ::testing::HasSubstr;

constexpr char kMnist[] = "tests/client/network/onnx/testdata/mnist-8.onnx";

class ModelTest : public ::testing::Test {
 protected:
  Result Hone(std::vector<std::string> words) {
    words.insert(words.begin(), "hone");
    return integration::RunProgram(words, {{"XDG_DATA_HOME", "/proc/nowhere"}}, absl::Seconds(60));
  }
};

TEST_F(ModelTest, ShowPrintsTheGraph) {
  const Result result = Hone({"show", kMnist});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("input Input3: f32[1, 1, 28, 28]\n"));
  EXPECT_THAT(result.output, HasSubstr("= Conv("));
  const auto json = nlohmann::json::parse(Hone({"show", kMnist, "--json"}).output, nullptr, false);
  EXPECT_EQ(json["graph"].get<std::string>(), result.output);
}

TEST_F(ModelTest, OperatorsOfNetworks) {
  const Result result = Hone({"operators", "--onnx"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("\nConv "));
  const auto json =
      nlohmann::json::parse(Hone({"operators", "--onnx", "--json"}).output, nullptr, false);
  ASSERT_GT(json["operators"].size(), 20u);
  EXPECT_TRUE(json["operators"][0].contains("limits"));
  EXPECT_EQ(Hone({"operators", "matmul", "--onnx"}).code, 2);
}

}  // namespace
}  // namespace hone::cli

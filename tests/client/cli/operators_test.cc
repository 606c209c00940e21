// `hone operators`: the output for people and for scripts. No server is started.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

using integration::Result;

class OperatorsTest : public ::testing::Test {
 protected:
  // These commands must work even if the data folder cannot be created.
  Result Hone(std::vector<std::string> words) {
    words.insert(words.begin(), {"hone", "operators"});
    return integration::RunProgram(words, {{"XDG_DATA_HOME", "/proc/nowhere"}}, absl::Seconds(60));
  }
  nlohmann::json Json(std::vector<std::string> words) {
    words.push_back("--json");
    const Result result = Hone(words);
    EXPECT_EQ(result.code, 0) << result.errors;
    return nlohmann::json::parse(result.output, nullptr, false);
  }
};

// The notes say what the formula does not: the effect of NaN, and what an error is relative to.
TEST_F(OperatorsTest, DescribesSpecialValuesAndLimits) {
  const std::pair<const char*, const char*> kNotes[] = {
      {"reduce_max", "NaN elements are ignored, as numpy.fmax.reduce does."},
      {"argmax", "Index is -1 where all elements"},
      {"max_pool2d", "must be smaller than the kernel, as ONNX Runtime requires."},
      {"relu", "NaN stays NaN"},
      {"winograd_conv2d", "relative to the largest magnitude in its tile"},
  };
  for (const auto& [op, note] : kNotes) {
    const Result result = Hone({op});
    EXPECT_EQ(result.code, 0) << result.errors;
    std::string in_one_line = absl::StrReplaceAll(result.output, {{"\n ", ""}});
    EXPECT_THAT(in_one_line, HasSubstr(note)) << op;
    EXPECT_THAT(Json({op})["operators"][0]["note"].get<std::string>(), HasSubstr(note)) << op;
  }
  EXPECT_THAT(Hone({}).output, HasSubstr("leaves NaN out"));
}

TEST_F(OperatorsTest, JsonDescribesOperators) {
  const nlohmann::json all = Json({});
  ASSERT_TRUE(all["operators"].is_array());
  std::set<std::string> names;
  for (const auto& entry : all["operators"]) {
    names.insert(entry["name"].get<std::string>());
    EXPECT_FALSE(entry["keys"].empty() || entry["inputs"].empty() || entry["outputs"].empty())
        << entry;
  }
  EXPECT_GT(names.size(), 40u);
  for (const char* name :
       {"conv1d", "conv3d", "depthwise_conv2d", "conv2d_transpose", "capsule_conv2d", "norm",
        "softmax", "conv2d_bn_relu", "transpose_batch_matmul", "winograd_conv2d"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

}  // namespace
}  // namespace hone::cli

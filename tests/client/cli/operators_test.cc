// `hone operators`: the output for people and for scripts. No server is started.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

TEST_F(OperatorsTest, ListsInputsAndOutputsOfEveryOperator) {
  const Result result = Hone({});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output,
              HasSubstr("conv2d n h w ci co k [s=1] [p=0] [dil=1] [groups=1] [kh=k] [kw=k] [sh=s] "
                        "[sw=s] [ph=p] [pw=p]\n  Y[n, oh, ow, co] = X[n, h, w, ci] * "
                        "W[kh, kw, ci/groups, co]; oh = (h + 2ph - (kh-1)*dil - 1) / sh + 1\n"
                        "  inputs   X  [n, h, w, ci]\n"
                        "           W  [kh, kw, ci/groups, co]  constant\n"
                        "  outputs  Y  [n, oh, ow, co]\n"));
  EXPECT_THAT(
      result.output,
      HasSubstr("  inputs   A  [m, k]  u8\n           B  [k, n]  i8\n  outputs  C  [m, n]  i32\n"));
}

TEST_F(OperatorsTest, ListsFunctionsAndReducers) {
  const Result all = Hone({});
  EXPECT_THAT(all.output, AllOf(HasSubstr("\n  select(condition, a, b)  any type "),
                                HasSubstr("\n  online_softmax(k: n) (x, 1.0) "),
                                HasSubstr("docs/language.md")));
  const Result reducer = Hone({"prod"});
  EXPECT_EQ(reducer.code, 0) << reducer.errors;
  EXPECT_THAT(reducer.output, AllOf(HasSubstr("  prod(k: n) x "), Not(HasSubstr("exp"))));
  // tanh is both an operator and a function.
  EXPECT_THAT(Hone({"tanh"}).output,
              AllOf(HasSubstr("  inputs   X"), HasSubstr("  tanh(x)   a float type")));
  const nlohmann::json both = Json({"max"});
  EXPECT_EQ(both["operators"].size(), 0u);
  EXPECT_EQ(both["functions"][0]["name"], "max");
  EXPECT_EQ(both["functions"][0]["usage"], "max(a, b)");
  EXPECT_EQ(both["reducers"][0]["usage"], "max(k: n) x");
}

TEST_F(OperatorsTest, DescribesTheKeysOfOneOperator) {
  const Result result = Hone({"attention"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("attention b h s d [t=s]\n"),
                    HasSubstr("  t      s        keys and values\n"),
                    HasSubstr("  dtype  f32      type of the inputs\n"), Not(HasSubstr("conv2d"))));
}

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

TEST_F(OperatorsTest, ShowsShapesForGivenKeys) {
  const Result result =
      Hone({"conv2d", "n=1", "h=56", "w=56", "ci=64", "co=128", "k=3", "s=2", "p=1", "groups=4"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("W  [kh, kw, ci/groups, co]  f32[3, 3, 16, 128] constant\n"),
                    HasSubstr("Y  [n, oh, ow, co]          f32[1, 28, 28, 128]\n"),
                    HasSubstr("workload conv2d\n")));
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
  const nlohmann::json one =
      Json({"matmul", "m=2", "n=3", "k=4", "dtype=bf16", "acc=f32"})["operators"][0];
  EXPECT_EQ(one["flops"], 48);
  EXPECT_EQ(one["inputs"][1].dump(),
            R"({"constant":false,"dtype":"bf16","layout":["k","n"],"name":"B","shape":[4,3]})");
  EXPECT_EQ(one["outputs"][0]["dtype"], "f32");
  const nlohmann::json pool = Json({"max_pool2d"})["operators"][0];
  std::vector<std::string> defaults;
  for (const auto& key : pool["keys"])
    defaults.push_back(absl::StrCat(key["name"].get<std::string>(), "=", key["default"].dump()));
  EXPECT_THAT(defaults,
              ::testing::IsSupersetOf({"n=null", "k=null", "s=\"k\"", "p=0", "dtype=\"f32\""}));
}

TEST_F(OperatorsTest, InvalidArgumentsAreUsageErrors) {
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {{"conv2"}, "unknown operator 'conv2' (did you mean 'conv2d'?); \"hone operators\" lists"},
      {{"softmax", "m=3", "k=4"}, "softmax takes m, n, dtype, acc"},
      {{"quantized_matmul", "dtype=f32"}, "quantized_matmul takes m, n, k"},
      {{"conv2d", "n=1"}, "conv2d needs key 'h'"},
      {{"--limit", "3"}, "unknown option --limit"},
  };
  for (const auto& [words, message] : kCases) {
    const Result result = Hone(words);
    EXPECT_EQ(result.code, 2) << words[0];
    EXPECT_THAT(result.errors, HasSubstr(message));
    EXPECT_THAT(result.output, IsEmpty());
  }
}

}  // namespace
}  // namespace hone::cli

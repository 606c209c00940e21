// `hone show --draft` and `--code`: schedules and code for targets that need not exist here.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using integration::Result;
using integration::With;
using integration::Words;

constexpr char kCodeTrace[] =
    "workload matmul\n"
    "input A: f32[8, 32]\n"
    "input B: f32[32, 64]\n"
    "output C[i: 8, j: 64] = sum(k: 32) A[i, k] * B[k, j]\n"
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "l3, l4, l5 = register_tile(b0, l0, l1, l2, 4, 2, 8, 1)\n";

class CodeTest : public ::testing::Test {
 protected:
  CodeTest() { std::ofstream(trace_) << kCodeTrace; }
  // argv[0] is a path or the name of a program.
  Result Run(const Words& words) {
    return integration::RunProgram(words, {{"XDG_DATA_HOME", data_.path()}}, absl::Seconds(240));
  }
  Result Hone(const Words& words) { return Run(With({"hone"}, words)); }
  // The keys and values of the object that a successful command printed.
  nlohmann::ordered_json Object(const Words& words) {
    const Result result = Hone(With(words, {"--json"}));
    EXPECT_EQ(result.code, 0) << result.errors;
    auto object = nlohmann::ordered_json::parse(result.output, nullptr, /*exceptions=*/false);
    EXPECT_TRUE(object.is_object()) << result.output;
    return object;
  }

  TemporaryFolder data_;
  TemporaryFolder files_;
  const std::string trace_ = files_ / "mine.trace";
  const Words matmul_ = {"matmul", "m=64", "n=64", "k=64"};
};

std::vector<std::string> KeysOf(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST_F(CodeTest, TheCodeOfATraceIsThatOfTheTarget) {
  const struct {
    const char* target;
    const char* instruction;
  } cases[] = {{"x86-avx2", "%ymm"}, {"x86-avx512", "%ymm"}, {"arm-neon", "fmla"}};
  for (const auto& c : cases) {
    const auto shown = Object({"show", trace_, "--target", c.target, "--code"});
    EXPECT_THAT(KeysOf(shown), ElementsAre("program", "trace", "code"));
    EXPECT_THAT(shown["trace"].get<std::string>(), HasSubstr("register_tile"));
    EXPECT_THAT(shown["code"].get<std::string>(),
                AllOf(HasSubstr("hone_main:"), HasSubstr(c.instruction)))
        << c.target;
  }
  const Result text = Hone({"show", trace_, "--code"});
  EXPECT_EQ(text.code, 0) << text.errors;
  EXPECT_THAT(text.output,
              AllOf(HasSubstr("# program"), HasSubstr("# trace"), HasSubstr("# code")));
  EXPECT_THAT(KeysOf(Object({"show", trace_, "--workload", "--code"})),
              ElementsAre("workload", "code"));
  EXPECT_FALSE(std::filesystem::exists(data_ / "hone")) << "a trace needs no server";
}

TEST_F(CodeTest, AThinInstallationSaysWhatIsMissing) {
  std::filesystem::copy(integration::BinDir() + "/hone", files_ / "hone");
  const Result result = Run({files_ / "hone", "show", trace_, "--code"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.errors, HasSubstr("/hone-builder is missing"));
  EXPECT_EQ(Run({files_ / "hone", "show", trace_}).code, 0);
}

TEST_F(CodeTest, DraftsNeedNeitherADeviceNorAWorker) {
  const auto drafted = Object(With({"show", "--draft", "--target", "x86-avx512"}, matmul_));
  EXPECT_THAT(KeysOf(drafted), ElementsAre("workload", "program", "trace"));
  EXPECT_THAT(drafted["trace"].get<std::string>(), HasSubstr("register_tile"));
  const auto code = Object(With({"show", "--draft", "--code", "--target", "x86-avx512"}, matmul_));
  EXPECT_THAT(KeysOf(code), ElementsAre("program", "trace", "code"));
  EXPECT_EQ(code["trace"], drafted["trace"]);
  EXPECT_THAT(code["code"].get<std::string>(), HasSubstr("zmm"));
  const auto arm = Object(With({"show", "--draft", "--code", "--target", "arm-neon"}, matmul_));
  EXPECT_THAT(arm["code"].get<std::string>(), HasSubstr("fmla"));
  EXPECT_THAT(KeysOf(Object(With({"show", "--draft", "--program"}, matmul_))),
              ElementsAre("program"));
  EXPECT_FALSE(std::filesystem::exists(data_ / "hone/run/worker.log"));

  const Result nothing = Hone(With({"show", "--code"}, matmul_));
  EXPECT_EQ(nothing.code, 3) << nothing.errors;
  EXPECT_THAT(nothing.errors, AllOf(HasSubstr("no schedule is known"), HasSubstr("--draft")));
  const Result key =
      Hone(With({"show", "--draft", "--target", "x86_64-nothing-2c-01234567"}, matmul_));
  EXPECT_EQ(key.code, 1) << key.errors;
  EXPECT_THAT(key.errors, HasSubstr("no worker of 'x86_64-nothing-2c-01234567'"));
}

}  // namespace
}  // namespace hone::cli

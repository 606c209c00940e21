// `hone-builder code`: output, messages and exit codes.
// `hone-builder cost`: output, messages and exit codes.
// `hone-builder link`: output, messages and exit codes.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace hone::builder {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using integration::Result;
using integration::RunProgram;

constexpr char kTrace[] =
    "workload scale\n"
    "input A: f32[64]\n"
    "output B[i: 64] = A[i] * 2.0\n"
    "trace 1\n"
    "b0 = block(\"B\")\n"
    "l0 = loops(b0)\n"
    "vectorize(l0)\n";

class CodeCommandTest : public ::testing::Test {
 protected:
  Result Code(const integration::Words& words, const std::string& input = "") {
    return RunProgram(integration::With({"hone-builder", "--lock", files_ / "lock", "code"}, words),
                      {}, absl::Seconds(120), input);
  }
  void ExpectUsageError(const integration::Words& words, const std::string& message,
                        const std::string& input = "") {
    const Result result = Code(words, input);
    EXPECT_EQ(result.code, 2) << result.errors;
    EXPECT_THAT(result.errors, AllOf(HasSubstr("hone-builder: "), HasSubstr(message)));
    EXPECT_THAT(result.output, IsEmpty());
  }

  TemporaryFolder files_;
};

TEST_F(CodeCommandTest, PrintsAssembly) {
  std::ofstream(files_ / "scale.trace") << kTrace;
  const Result file = Code({"--target", "x86-avx2", files_ / "scale.trace"});
  EXPECT_EQ(file.code, 0) << file.errors;
  EXPECT_THAT(file.output, AllOf(HasSubstr("hone_main:"), HasSubstr("%ymm")));
  const Result input = Code({"--target", "x86-avx2", "-"}, kTrace);
  EXPECT_EQ(input.output, file.output);
  const Result native = Code({"-"}, kTrace);
  EXPECT_EQ(native.code, 0) << native.errors;
  EXPECT_THAT(native.output, HasSubstr("hone_main:"));
}

TEST_F(CodeCommandTest, MistakesAreUsageErrors) {
  ExpectUsageError({"--target", "pdp11", "-"}, "x86-avx2, x86-avx512, arm-neon", kTrace);
  ExpectUsageError({"-"}, "2:1: ", "nonsense");
  ExpectUsageError({"/nowhere/mine.trace"}, "/nowhere/mine.trace");
  ExpectUsageError({}, "file is required");
}

class CostCommandTest : public ::testing::Test {
 protected:
  Result Cost(const integration::Words& words, const std::string& input = "") {
    return RunProgram(integration::With({"hone-builder", "--lock", files_ / "lock", "cost"}, words),
                      {}, absl::Seconds(120), input);
  }
  static std::string Line(const std::string& trace) {
    return nlohmann::json{{"trace", trace}}.dump() + "\n";
  }

  TemporaryFolder files_;
};

TEST_F(CostCommandTest, PrintsTheCostOfASchedule) {
  const Result result = Cost({"--target", "arm/neoverse-v1", "-"}, kTrace);
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr(" cycles, modelled for neoverse-v1 with 64 cores\n"),
                                   HasSubstr("hone_main/entry")));
}

TEST_F(CostCommandTest, AnswersEachLine) {
  const Result result = Cost({"--target", "arm/cortex-a76", "--lines", "-"},
                             Line(kTrace) + Line("nonsense") + Line(kTrace));
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, testing::MatchesRegex("(\\{\"cycles\":[0-9.]+\\})\n"
                                                   "\\{\"error\":\"2:1: .*\"\\}\n"
                                                   "(\\{\"cycles\":[0-9.]+\\})\n"));
}

TEST_F(CostCommandTest, MistakesAreUsageErrors) {
  const auto refused = [&](const integration::Words& words, const std::string& input,
                           const std::string& why) {
    const Result result = Cost(words, input);
    EXPECT_EQ(result.code, 2) << result.errors;
    EXPECT_THAT(result.errors, AllOf(HasSubstr("hone-builder: "), HasSubstr(why)));
    EXPECT_THAT(result.output, IsEmpty());
  };
  refused({"--target", "pdp11", "-"}, kTrace, "x86-avx2, x86-avx512, arm-neon");
  refused({"--target", "generic/opencl", "-"}, kTrace, "only costs of CPUs can be modelled");
  refused({"--lines", "-"}, Line(kTrace) + "cheap\n", "-:2: not an object with the text");
  refused({"/nowhere/mine.trace"}, "", "/nowhere/mine.trace");
}

TEST_F(CodeCommandTest, OutputErrorsAreFailures) {
  std::ofstream(files_ / "scale.trace") << kTrace;
  const Result full =
      RunProgram({"/bin/sh", "-c",
                  integration::BinDir() + "/hone-builder --lock " + (files_ / "lock") + " code " +
                      (files_ / "scale.trace") + " >/dev/full"});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.errors, HasSubstr("standard output could not be written"));
}

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

integration::Result Link(const integration::Words& words) {
  return integration::RunProgram(integration::With({"hone-builder", "link"}, words));
}

TEST(LinkCommandTest, WritesASharedObject) {
  const integration::Result linked = Link({"--visible", "caller_", CALLER_OBJECT, CALLEE_OBJECT});
  EXPECT_EQ(linked.code, 0) << linked.errors;
  EXPECT_THAT(linked.output, AllOf(StartsWith("\x7f"
                                              "ELF"),
                                   HasSubstr("caller_run")));
}

TEST(LinkCommandTest, TellsWhatTheLinkerRefuses) {
  const integration::Result undefined = Link({"--visible", "caller_", CALLER_OBJECT});
  EXPECT_EQ(undefined.code, 2);
  EXPECT_THAT(undefined.errors, AllOf(StartsWith("hone-builder: "), HasSubstr("callee_value")));
  EXPECT_THAT(undefined.output, IsEmpty());
  const integration::Result missing = Link({"--visible", "caller_", "/no/such/file"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("/no/such/file"));
  EXPECT_EQ(Link({CALLEE_OBJECT}).code, 2);  // without a prefix
  const integration::Result text = Link({"--visible", "caller_", "/proc/self/status"});
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.errors, HasSubstr("not an ELF object file"));
}

}  // namespace

}  // namespace hone::builder

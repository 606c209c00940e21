// `hone schedule`, `hone run` and `--space` without a server: their output, and their errors for
// wrong input.

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using integration::Result;

constexpr char kTrace[] =
    "workload matmul\n"
    "input A: f32[32, 16]\n"
    "input B: f32[16, 24]\n"
    "output C[i: 32, j: 24] = sum(k: 16) A[i, k] * B[k, j]\n"
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "l3, l4 = split(l0, 8, 4)\n"
    "parallel(l3)\n";

class ByHandTest : public ::testing::Test {
 protected:
  Result Hone(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), "hone");
    return integration::RunProgram(words, {{"XDG_DATA_HOME", data_.path()}}, absl::Seconds(60),
                                   input);
  }
  std::string File(const std::string& name, const std::string& content) {
    std::ofstream(files_ / name) << content;
    return files_ / name;
  }
  std::string Array(const std::string& name, ir::DType dtype, const ir::Shape& shape) {
    return File(name, client::NpyHeader(dtype, shape) +
                          std::string(ir::ElementsOf(shape) * ir::DTypeBytes(dtype), '\0'));
  }
  void ExpectUsageError(const std::vector<std::string>& words,
                        const ::testing::Matcher<std::string>& message) {
    const Result result = Hone(words);
    EXPECT_EQ(result.code, 2) << result.errors;
    EXPECT_THAT(result.errors, message);
    EXPECT_THAT(result.output, IsEmpty());
  }

  TemporaryFolder data_;
  TemporaryFolder files_;
};

TEST_F(ByHandTest, HelpHasExamples) {
  for (const char* command : {"schedule", "run"}) {
    const Result result = Hone({command, "--help"});
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("Examples:"), HasSubstr("--json"), HasSubstr("--tolerance")));
  }
}

TEST_F(ByHandTest, ScheduleShowsTheProgram) {
  const std::string file = File("mine.trace", kTrace);
  const Result plain = Hone({"schedule", file});
  EXPECT_EQ(plain.code, 0) << plain.errors;
  EXPECT_THAT(plain.output, AllOf(StartsWith("input A: f32[32, 16] global\n"),
                                  HasSubstr("\n  parallel i_0 in 8\n")));
  EXPECT_EQ(Hone({"schedule", "-"}, kTrace).output, plain.output);

  const Result printed = Hone({"schedule", file, "--print"});
  EXPECT_EQ(printed.code, 0) << printed.errors;
  EXPECT_THAT(printed.output,
              AllOf(StartsWith("# unscheduled\n"), HasSubstr(":8  l3, l4 = split(l0, 8, 4)\n"),
                    HasSubstr(":9  parallel(l3)\n"), HasSubstr(plain.output)));

  const Result json = Hone({"schedule", file, "--print", "--json"});
  EXPECT_EQ(json.code, 0) << json.errors;
  const nlohmann::json object = nlohmann::json::parse(json.output, nullptr, false);
  ASSERT_TRUE(object.is_object()) << json.output;
  ASSERT_EQ(object["steps"].size(), 5u);
  EXPECT_EQ(object["steps"][3]["line"], 8);
  EXPECT_EQ(object["program"], plain.output);
  EXPECT_EQ(object["trace"], kTrace);
}

TEST_F(ByHandTest, TraceErrorsNameTheLocation) {
  ExpectUsageError({"schedule"}, HasSubstr("file"));
  ExpectUsageError({"schedule", files_ / "none.trace"}, HasSubstr("none.trace"));
  const std::string refused = File("refused.trace", absl::StrCat(kTrace, "parallel(l2)\n"));
  ExpectUsageError({"schedule", refused, "--check"},
                   AllOf(HasSubstr("refused.trace:10:1: instruction 5 (parallel)"),
                         HasSubstr("\n>"), HasSubstr("k in 16")));
  const std::string malformed =
      File("malformed.trace", absl::StrReplaceAll(kTrace, {{"split", "spilt"}}));
  ExpectUsageError({"schedule", malformed}, HasSubstr("malformed.trace:8:"));
  ExpectUsageError({"schedule", File("w.hone", std::string(kTrace, 100))},
                   HasSubstr("'trace 1' must follow"));
}

TEST_F(ByHandTest, SpaceErrorsNameTheLocation) {
  ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "--space", "magic"},
                   HasSubstr("rules, templates"));
  ExpectUsageError({"tune", "--space", "trace:" + (files_ / "none.trace")},
                   HasSubstr("none.trace"));
  const std::string malformed =
      File("malformed.trace", absl::StrReplaceAll(kTrace, {{"split", "spilt"}}));
  ExpectUsageError({"tune", "--space", "trace:" + malformed}, HasSubstr("malformed.trace:8:"));
  ExpectUsageError({"tune"}, HasSubstr("a workload is missing"));
}

TEST_F(ByHandTest, MismatchedFilesAreRejectedBeforeStarting) {
  const std::string a = Array("a.npy", ir::DType::kF32, {32, 16});
  const std::string b = Array("b.npy", ir::DType::kF32, {16, 24});
  const std::string out = files_ / "c.npy";
  const std::vector<std::string> matmul = {"run", "matmul", "m=32", "n=24", "k=16"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), matmul.begin(), matmul.end());
    return more;
  };
  ExpectUsageError(
      with({"--in", a, "--out", out}),
      AllOf(HasSubstr("takes 2 inputs"), HasSubstr("f32[16, 24]"), HasSubstr("1 is given")));
  ExpectUsageError(with({"--in", a, "--in", b, "--out", out, "--out", out}),
                   HasSubstr("gives 1 output,"));
  ExpectUsageError(with({"--in", b, "--in", a, "--out", out}),
                   AllOf(HasSubstr("b.npy, the input A: it is f32[16, 24], expected f32[32, 16]")));
  ExpectUsageError(with({"--in", a, "--in", files_ / "none.npy", "--out", out}),
                   HasSubstr("none.npy"));
  ExpectUsageError(
      with({"--in", a, "--in", Array("d.npy", ir::DType::kF64, {16, 24}), "--out", out}),
      HasSubstr("it is f64[16, 24], expected f32[16, 24]"));
  const std::string cut = File("cut.npy", std::string("\x93NUMPY\x01\x00\x10\x00{'desc", 16));
  ExpectUsageError(with({"--in", a, "--in", cut, "--out", out}),
                   AllOf(HasSubstr("cut.npy: "), HasSubstr("truncated")));
  EXPECT_FALSE(std::ifstream(out).good());
  const Result unwritable = Hone(with({"--in", a, "--in", b, "--out", files_ / "none/c.npy"}));
  EXPECT_EQ(unwritable.code, 1) << unwritable.errors;
  EXPECT_THAT(unwritable.errors, HasSubstr("none/c.npy: No such file"));
}

}  // namespace
}  // namespace hone::cli

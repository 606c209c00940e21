// Invalid workloads and programs: each error has a reason and a place, and marks the place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/ir/token_reader.h"
#include "common/ir/workload_parser.h"
#include "tests/oracles/program_parser.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Expects an error for the text after "workload w\n": its place, its reason, the line shown and the
// mark under its column.
void ExpectMarked(const std::string& text, absl::string_view place, absl::string_view reason,
                  absl::string_view line) {
  const auto workload = ParseWorkload(absl::StrCat("workload w\n", text));
  ASSERT_FALSE(workload.ok()) << text;
  EXPECT_THAT(workload, StatusIs(absl::StatusCode::kInvalidArgument));
  const std::string message(workload.status().message());
  EXPECT_THAT(message, StartsWith(absl::StrCat(place, ": ")));
  EXPECT_THAT(message, HasSubstr(std::string(reason)));
  const int column = std::atoi(std::string(place.substr(place.find(':') + 1)).c_str());
  EXPECT_THAT(message,
              HasSubstr(absl::StrCat("\n  ", line, "\n  ", std::string(column - 1, ' '), "^")));
}

TEST(BadWorkloadTest, ShapesThatOverflow64Bits) {
  ExpectMarked("input A: f32[99999999999999999999]\noutput B[i: 4] = A[i]\n", "2:14",
               "not a whole number that fits in 64 bits", "input A: f32[99999999999999999999]");
  ExpectMarked("input A: f32[4294967296, 4294967296, 4294967296]\noutput B[i: 4] = A[i, i, i]\n",
               "2:7", "has more than 8589934592 elements",
               "input A: f32[4294967296, 4294967296, 4294967296]");
  ExpectMarked("output B[i: 4294967296, j: 4294967296] = 1.0\n", "2:8",
               "has more than 8589934592 elements", "output B[i: 4294967296, j: 4294967296] = 1.0");
  ExpectMarked("output B[i: 8] = sum(j: 8589934592, k: 8589934592) 1.0\n", "2:8",
               "at most 1125899906842624 are supported",
               "output B[i: 8] = sum(j: 8589934592, k: 8589934592) 1.0");
}

TEST(BadWorkloadTest, Rank0) {
  ExpectMarked("input A: f32[]\noutput B[i: 4] = 1.0\n", "2:7", "rank 0; 1 to 8 are supported",
               "input A: f32[]");
  ExpectMarked("input A: f32[4]\noutput B[] = sum(k: 4) A[k]\n", "3:10", "expected an axis",
               "output B[] = sum(k: 4) A[k]");
}

TEST(BadWorkloadTest, Rank12) {
  ExpectMarked("input A: f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n", "2:7",
               "rank 12; 1 to 8 are supported", "input A: f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]");
  ExpectMarked(
      "output B[a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, l: 1] = 1.0\n",
      "2:8", "rank 12; 1 to 8 are supported",
      "output B[a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1");
}

TEST(BadWorkloadTest, ZeroExtents) {
  ExpectMarked("input A: f32[4, 0]\n", "2:17", "extent 0 is not between 1 and",
               "input A: f32[4, 0]");
  ExpectMarked("output B[i: 0] = 1.0\n", "2:13", "extent 0 is not between 1 and",
               "output B[i: 0] = 1.0");
  ExpectMarked("output B[i: -3] = 1.0\n", "2:13", "extent -3 is not between 1 and",
               "output B[i: -3] = 1.0");
}

TEST(BadWorkloadTest, ReductionsOverEmptyAxes) {
  ExpectMarked("input A: f32[4]\noutput B[i: 4] = sum(k: 0) A[i]\n", "3:25",
               "extent 0 is not between 1 and", "output B[i: 4] = sum(k: 0) A[i]");
  ExpectMarked("input A: f32[4]\noutput B[i: 4] = sum() A[i]\n", "3:18",
               "'sum' reduces over axes; name them, as in sum(k: 8)",
               "output B[i: 4] = sum() A[i]");
}

TEST(BadWorkloadTest, CyclicStages) {
  ExpectMarked("input A: f32[4]\nB[i: 4] = C[i] + A[i]\noutput C[i: 4] = B[i]\n", "3:11",
               "unknown tensor 'C': it is computed by a later stage", "B[i: 4] = C[i] + A[i]");
  ExpectMarked("output B[i: 4] = B[i] + 1.0\n", "2:18", "there are no recurrences; a running sum",
               "output B[i: 4] = B[i] + 1.0");
}

TEST(BadWorkloadTest, DanglingStages) {
  ExpectMarked("input A: f32[4]\nB[i: 4] = A[i] + 1.0\noutput C[i: 4] = A[i]\n", "3:1",
               "stage B is unused", "B[i: 4] = A[i] + 1.0");
  // The same through another tensor.
  ExpectMarked("input A: f32[4]\nB[i: 4] = A[i] + 1.0\nD[i: 4] = B[i]\noutput C[i: 4] = A[i]\n",
               "4:1", "stage D is unused", "D[i: 4] = B[i]");
  ExpectMarked("input A: f32[4]\nB[i: 4] = A[i]\n", "4:1", "has no output", "");
  ExpectMarked("output C[i: 4] = nowhere[i]\n", "2:18", "unknown tensor 'nowhere'",
               "output C[i: 4] = nowhere[i]");
  // One component of a tuple is enough.
  EXPECT_THAT(ParseWorkload("workload w\ninput A: i32[4]\n(V, I)[i: 1] = argmax(k: 4) (A[k], "
                            "index(k))\noutput C[i: 1] = I[i]\n"),
              IsOk());
}

TEST(BadWorkloadTest, IndicesThatAreNotAffine) {
  ExpectMarked("input A: f32[4]\noutput B[i: 4] = A[i * i]\n", "3:22",
               "a product of two axes is not affine", "output B[i: 4] = A[i * i]");
  ExpectMarked("input A: f32[4]\noutput B[i: 4, j: 4] = A[i / j]\n", "3:28",
               "the divisor must be a positive number", "output B[i: 4, j: 4] = A[i / j]");
  ExpectMarked("input A: f32[4]\ninput I: i32[4]\noutput B[i: 4] = A[I[i]]\n", "4:20",
               "that reads 'I'", "output B[i: 4] = A[I[i]]");
}

TEST(BadWorkloadTest, AliasingTensors) {
  ExpectMarked("input A: f32[4]\ninput A: f32[4]\n", "3:7", "tensor A is declared twice",
               "input A: f32[4]");
  ExpectMarked("input A: f32[4]\noutput A[i: 4] = A[i] + 1.0\n", "3:8",
               "tensor A is declared twice", "output A[i: 4] = A[i] + 1.0");
  ExpectMarked("input A: i32[4]\noutput (V, V)[i: 1] = argmax(k: 4) (A[k], index(k))\n", "3:8",
               "tensor V is declared twice", "output (V, V)[i: 1] = argmax(k: 4) (A[k], index(k))");
}

TEST(BadProgramTest, AliasingBuffers) {
  const auto workload = std::make_shared<const Workload>(
      ParseWorkload("workload w\ninput A: f32[4]\noutput B[i: 4] = A[i] + 1.0\n").value());
  const std::string text = Program::FromWorkload(workload).ToText();
  const auto error = [&](const std::string& changed) {
    return std::string(ParseProgram(workload, changed).status().message());
  };
  EXPECT_THAT(error("input A: f32[4] global\n" + text),
              AllOf(StartsWith("2:1: buffer A is declared twice"),
                    HasSubstr("\n  input A: f32[4] global\n  ^")));
  std::string writes_input = text;
  writes_input.replace(writes_input.rfind("B[i]"), 4, "A[i]");
  EXPECT_THAT(error(writes_input), AllOf(HasSubstr(": A is an input: no block writes it"),
                                         HasSubstr("\n        A[i] = A[i] + 1.0\n        ^")));
}

TEST(MarkTextTest, ShowsThePartOfALongLine) {
  const std::string line = std::string(500, 'a') + "X" + std::string(500, 'b');
  const absl::Status marked =
      MarkText(absl::InvalidArgumentError("1:501: here"), line + "\nnext\n");
  EXPECT_EQ(marked.message(),
            absl::StrCat("1:501: here\n  ", std::string(60, 'a'), "X", std::string(59, 'b'), "\n  ",
                         std::string(60, ' '), "^"));
}

TEST(MarkTextTest, KeepsUtf8) {
  EXPECT_EQ(MarkText(absl::InvalidArgumentError("1:15: here"), "# größe ö ?\n").message(),
            "1:15: here\n  # größe ö ?\n             ^");
}

TEST(MarkTextTest, LeavesOtherErrorsUnchanged) {
  EXPECT_EQ(MarkText(absl::InvalidArgumentError("no place"), "text").message(), "no place");
  EXPECT_EQ(MarkText(absl::InvalidArgumentError("9:1: behind the end"), "text").message(),
            "9:1: behind the end");
  EXPECT_THAT(MarkText(absl::OkStatus(), "text"), IsOk());
  EXPECT_EQ(MarkText(absl::InvalidArgumentError("3:2: later"), "one\ntwo", 2).message(),
            "3:2: later\n  two\n   ^");
}

}  // namespace
}  // namespace hone::ir

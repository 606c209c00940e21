// Invalid workloads and schedules on the command line: exit code 2, the file with line and column,
// and the line or loop marked. No server is started.

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BadInputTest : public ::testing::Test {
 protected:
  // Expects that the command fails with exit code 2 and this message.
  void ExpectRefused(std::vector<std::string> words,
                     const ::testing::Matcher<std::string>& message) {
    words.insert(words.begin(), "hone");
    const integration::Result result =
        integration::RunProgram(words, {{"XDG_DATA_HOME", folder_.path()}}, absl::Seconds(60), "");
    EXPECT_EQ(result.code, 2) << result.errors;
    EXPECT_THAT(result.errors, message);
    EXPECT_THAT(result.output, IsEmpty());
  }
  std::string File(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // Runs `hone tune` and `hone schedule` on a workload; the mark is under the column of `place` in
  // `line`.
  void ExpectBadWorkload(const std::string& body, const std::string& place,
                         const std::string& reason, const std::string& line) {
    const std::string text = absl::StrCat("workload bad\n", body);
    const int column = std::atoi(place.substr(place.find(':') + 1).c_str());
    const std::string mark = absl::StrCat("\n  ", line, "\n  ", std::string(column - 1, ' '), "^");
    ExpectRefused({"tune", File("bad.hone", text)},
                  AllOf(HasSubstr("bad.hone:" + place + ": "), HasSubstr(reason), HasSubstr(mark)));
    ExpectRefused(
        {"schedule", File("bad.trace", text + "trace 1\n")},
        AllOf(HasSubstr("bad.trace:" + place + ": "), HasSubstr(reason), HasSubstr(mark)));
  }
  // Runs `hone schedule` with instructions on a matmul. The first instruction is in line 7.
  void ExpectBadSchedule(const std::string& instructions, const std::string& place,
                         const ::testing::Matcher<std::string>& message) {
    ExpectRefused(
        {"schedule",
         File("bad.trace", absl::StrCat("workload matmul\ninput A: f32[2048, 64]\n"
                                        "input B: f32[64, 256]\n"
                                        "output C[i: 2048, j: 256] = sum(k: 64) A[i, k] * B[k, j]\n"
                                        "trace 1\nb0 = block(\"C\")\n",
                                        instructions))},
        AllOf(HasSubstr("bad.trace:" + place + ": "), message));
  }

  TemporaryFolder folder_;
};

// What users of other programs type is understood well enough to say what to type instead.
TEST_F(BadInputTest, NamesWhatIsWrongWithAWord) {
  ExpectRefused({"tune", "matmul", "64", "64", "64"},
                HasSubstr("'64' has no key; perhaps matmul m=64 n=64 k=64"));
  ExpectRefused({"tune", "matmul", "64x32x16", "dtype=f16"},
                HasSubstr("perhaps matmul m=64 n=32 k=16 dtype=f16"));
  ExpectRefused({"tune", "matmul", "m=64,n=64,k=64"},
                HasSubstr("is one word; separate the keys with blanks, as in m=64 n=64 k=64"));
  ExpectRefused({"tune", "matmul", "m", "64", "n=64", "k=64"},
                HasSubstr("'m' has no value; write m=VALUE"));
  for (const char* const unit : {"minutes", "min", "s", "hours"}) {
    ExpectRefused({"tune", "matmul", "m=64", "n=64", "k=64", "--time", "5", unit},
                  AllOf(HasSubstr(absl::StrCat("'", unit, "'")), HasSubstr("as in --time 5m")));
  }
  for (const auto& [given, known] : {std::pair{"float32", "f32"}, std::pair{"fp16", "f16"},
                                     std::pair{"bfloat16", "bf16"}, std::pair{"INT8", "i8"}}) {
    ExpectRefused({"tune", "matmul", "m=64", "n=64", "k=64", absl::StrCat("dtype=", given)},
                  HasSubstr(absl::StrCat("'", given, "'; Hone calls it ", known)));
  }
  ExpectRefused({"show", "matmul", "m=64", "n=64", "k=64", "--draft", "--target", "gpu"},
                AllOf(HasSubstr("--target gpu"), HasSubstr("give cuda")));
  for (const char* const model : {"model.pt", "models/model.pth", "net.tflite"}) {
    ExpectRefused({"tune", model}, AllOf(HasSubstr(model), HasSubstr("Hone reads ONNX")));
  }
  ExpectRefused({"tune", File("norm.hone",
                              "workload t\ninput X: f32[4, 8]\n"
                              "output Y[i: 4, j: 8] = layer_norm(X)\n")},
                AllOf(HasSubstr("norm.hone:3:24: 'layer_norm' is an operator"),
                      HasSubstr("hone show layer_norm KEY=VALUE… --workload"), HasSubstr("^")));
}

TEST_F(BadInputTest, RejectsShapesThatOverflow64Bits) {
  ExpectBadWorkload("input A: f32[99999999999999999999]\n", "2:14", "64 bits",
                    "input A: f32[99999999999999999999]");
  ExpectBadWorkload("input A: f32[4294967296, 4294967296]\n", "2:7", "elements",
                    "input A: f32[4294967296, 4294967296]");
}

TEST_F(BadInputTest, RejectsRanks0And12) {
  ExpectBadWorkload("input A: f32[]\n", "2:7", "rank 0", "input A: f32[]");
  ExpectBadWorkload("input A: f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n", "2:7", "rank 12",
                    "input A: f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]");
}

TEST_F(BadInputTest, RejectsZeroExtentsAndEmptyReductions) {
  ExpectBadWorkload("input A: f32[0]\n", "2:14", "extent 0", "input A: f32[0]");
  ExpectBadWorkload("input A: f32[4]\noutput B[i: 4] = sum(k: 0) A[i]\n", "3:25", "extent 0",
                    "output B[i: 4] = sum(k: 0) A[i]");
}

TEST_F(BadInputTest, RejectsCyclicAndDanglingStages) {
  ExpectBadWorkload("B[i: 4] = C[i]\noutput C[i: 4] = B[i]\n", "2:11", "later stage",
                    "B[i: 4] = C[i]");
  ExpectBadWorkload("input A: f32[4]\nB[i: 4] = A[i]\noutput C[i: 4] = A[i]\n", "3:1",
                    "stage B is unused", "B[i: 4] = A[i]");
}

TEST_F(BadInputTest, RejectsNonAffineIndices) {
  ExpectBadWorkload("input A: f32[4]\noutput B[i: 4] = A[i * i]\n", "3:22", "not affine",
                    "output B[i: 4] = A[i * i]");
}

TEST_F(BadInputTest, RejectsAliasingTensors) {
  ExpectBadWorkload("input A: f32[4]\noutput A[i: 4] = A[i]\n", "3:8", "declared twice",
                    "output A[i: 4] = A[i]");
}

TEST_F(BadInputTest, HugeUnrollErrorShowsTheLoop) {
  ExpectBadSchedule(
      "l0, l1, l2 = loops(b0)\nunroll(l0)\n", "8:1",
      AllOf(HasSubstr("2048 iterations; at most 1024 (loop i)"), HasSubstr("\n> for i in 2048")));
  ExpectBadSchedule("l0, l1, l2 = loops(b0)\nvectorize(l1)\n", "8:1", HasSubstr("(loop j)"));
  ExpectBadSchedule(
      "l0, l1, l2 = loops(b0)\nl3, l4, l5 = register_tile(b0, l0, l1, l2, 64, 4, 16, 1)\n", "8:1",
      AllOf(HasSubstr("64 x 4 vectors; at most 64"), HasSubstr("block C")));
}

TEST_F(BadInputTest, InstructionErrorsShowTheLine) {
  ExpectBadSchedule("l0, l1, l2 = loops(b1)\n", "7:20",
                    HasSubstr("\n  l0, l1, l2 = loops(b1)\n                     ^"));
  ExpectBadSchedule("explode(b0)\n", "7:8", HasSubstr("\n  explode(b0)\n         ^"));
}

}  // namespace
}  // namespace hone::cli

// Every dtype can be tuned. Candidates are checked against a reference with the semantics of the
// workload: integers wrap, casts round, and booleans are stored.

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"

namespace hone::integration {
namespace {

class DTypesTest : public ::testing::Test {
 protected:
  // Expects that every trial is correct.
  void ExpectMeasured(const std::vector<std::string>& workload) const {
    std::vector<std::string> words = {"tune", "--trials", "2", "--seed", "1", "--json"};
    words.insert(words.end(), workload.begin(), workload.end());
    const Result tuned = home_.Hone(words);
    ASSERT_EQ(tuned.code, 0) << workload[0] << ": " << tuned.errors << tuned.output;
    const nlohmann::json run = OneLineOfJson(tuned.output);
    ASSERT_TRUE(run.is_object()) << tuned.output;
    // Small spaces may have a single candidate.
    EXPECT_GE(run["trials"], 1) << workload[0];
    EXPECT_EQ(run["outcomes"], nlohmann::json({{"ok", run["trials"]}}))
        << workload[0] << ": " << tuned.errors;
  }
  std::string File(const std::string& name, const std::string& text) const {
    std::ofstream(files_ / name) << text;
    return files_ / name;
  }

  HoneHome home_;
  TemporaryFolder files_;
};

TEST_F(DTypesTest, MeasuresWrappingIntegers) {
  ExpectMeasured({"matmul", "m=17", "n=17", "k=64", "dtype=i8"});
  ExpectMeasured({"reduce_sum", "m=62", "n=120", "dtype=u8"});
}

TEST_F(DTypesTest, MeasuresRoundedOutputs) {
  ExpectMeasured({File("half.hone",
                       "workload half\n"
                       "input A: f16[33, 40]\n"
                       "input B: f16[40, 48]\n"
                       "C[i: 33, j: 48] = sum(k: 40) f32(A[i, k]) * f32(B[k, j])\n"
                       "output D[i: 33, j: 48] = f16(C[i, j])\n")});
}

// No machine has the memory; the message says how much it takes.
TEST_F(DTypesTest, RejectsTensorsBeyondTheMemory) {
  std::string text = "workload huge\n", sum = "A0[i]";
  for (int i = 0; i < 8; ++i) absl::StrAppend(&text, "input A", i, ": f64[8589934592]\n");
  for (int i = 1; i < 8; ++i) absl::StrAppend(&sum, " + A", i, "[i]");
  absl::StrAppend(&text, "output B[i: 8589934592] = ", sum, "\n");
  const Result tuned = home_.Hone({"tune", File("huge.hone", text), "--trials", "2"});
  EXPECT_EQ(tuned.code, 1) << tuned.errors;
  EXPECT_THAT(tuned.errors, ::testing::HasSubstr("the workload's tensors and their reference need "
                                                 "1114112 MiB"));
  // A schedule can be shown, because nothing is measured.
  const Result drafted = home_.Hone({"show", "relu", "m=1", "n=8589934592", "--draft"});
  EXPECT_EQ(drafted.code, 0) << drafted.errors;
}

// Sums with cancellation, which are inaccurate in f32, in a denominator.
TEST_F(DTypesTest, MeasuresQuotientsOfSums) {
  const std::string sums =
      "workload quotient\n"
      "input A: f32[100, 100]\n"
      "input B: f32[100, 100]\n"
      "S[i: 100, j: 100] = sum(k: 100) A[i, k] * B[k, j]\n"
      "output Y[i: 100, j: 100] = ";
  ExpectMeasured({File("reciprocal.hone", sums + "1.0 / S[i, j]\n")});
  ExpectMeasured({File("sigmoid.hone", sums + "1.0 / (1.0 + exp(-S[i, j]))\n")});
}

TEST_F(DTypesTest, MeasuresMasksAndDivisorSums) {
  ExpectMeasured(
      {File("masked.hone",
            "workload masked\n"
            "input M: bool[33, 50]\n"
            "input A: f32[33, 40]\n"
            "input B: f32[40, 50]\n"
            "S[i: 33, j: 50] = sum(k: 40) A[i, k] * B[k, j]\n"
            "output Y[i: 33, j: 50] = select(M[i, j], 1.0 / (1.0 + exp(-S[i, j])), 0.0)\n"
            "output N[i: 33, j: 50] = not (M[i, j])\n")});
  ExpectMeasured({"attention", "b=1", "h=2", "s=100", "d=16"});
}

}  // namespace
}  // namespace hone::integration

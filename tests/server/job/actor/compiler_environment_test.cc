#include "server/job/actor/compiler_environment.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::job {
namespace {

double FixedFlopsOf(const std::string& workload) {
  const auto described = MakeCompilerEnvironment(1)->Describe("workload w\n" + workload);
  EXPECT_THAT(described, IsOk());
  return described.ok() ? described->fixed_flops : -1;
}

TEST(CheckSpaceTest, ASpaceWithOpenDecisionsIsSearched) {
  const std::string workload = "workload relu\ninput A: f32[8]\noutput C[i: 8] = max(A[i], 0)\n";
  const auto environment = MakeCompilerEnvironment(1);
  const auto is_check = [&](const std::string& space) {
    const absl::StatusOr<bool> decided = environment->CheckSpace(workload, space);
    EXPECT_THAT(decided, IsOk());
    return decided.ok() && *decided;
  };
  const std::string loops = workload + "trace 1\nb0 = block(\"C\")\nl0 = loops(b0)\n";
  EXPECT_FALSE(is_check("rules"));
  EXPECT_TRUE(is_check(loops));
  EXPECT_TRUE(is_check(loops + "x0, x1 = sample_perfect_tile(l0, parts=2) = [4, 2]\n"));
  EXPECT_FALSE(is_check(loops + "x0, x1 = sample_perfect_tile(l0, parts=2)\n"));
}

TEST(FixedFlopsTest, ContractionCountsAllMultiplyAdds) {
  EXPECT_EQ(FixedFlopsOf("input A: f32[64, 32]\n"
                         "input B: f32[32, 48]\n"
                         "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n"),
            2.0 * 64 * 48 * 32);
  EXPECT_EQ(
      FixedFlopsOf(
          "input X: f32[16, 12, 12]\n"
          "input W: f32[8, 16, 3, 3]\n"
          "output Y[o: 8, y: 10, x: 10] = sum(c: 16, r: 3, s: 3) X[c, y + r, x + s] * W[o, c, r, "
          "s]\n"),
      2.0 * 8 * 100 * 16 * 9);
}

TEST(FixedFlopsTest, AvoidableOperationsAreNotCounted) {
  EXPECT_EQ(FixedFlopsOf("input X: f32[12, 12]\n"
                         "output Y[y: 10, x: 10] = sum(r: 3, s: 3) X[y + r, x + s]\n"),
            0)
      << "sums may share partial sums";
  EXPECT_EQ(FixedFlopsOf("input X: f32[12, 64]\n"
                         "input S: f32[12]\n"
                         "output Y[y: 12] = sum(k: 64) X[y, k] * S[y]\n"),
            0)
      << "a factor may be moved out of a sum";
  EXPECT_EQ(FixedFlopsOf("input A: f32[64, 32]\n"
                         "input B: f32[32]\n"
                         "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k]\n"),
            0)
      << "a result may be computed once and copied";
  EXPECT_EQ(FixedFlopsOf("input A: i8[64, 32]\n"
                         "input B: i8[32, 48]\n"
                         "output C[i: 64, j: 48] = sum(k: 32) i32(A[i, k]) * i32(B[k, j])\n"),
            0)
      << "narrow types can exceed the peak, which is measured in f32";
}

bool HasFmaPeak(const std::string& body) {
  const auto described = MakeCompilerEnvironment(1)->Describe("workload x\n" + body);
  EXPECT_THAT(described, IsOk());
  return described.ok() && described->has_fma_peak;
}

std::string Matmul(const std::string& a, const std::string& b, const std::string& product) {
  return "input A: " + a + "[64, 32]\ninput B: " + b +
         "[32, 48]\noutput C[i: 64, j: 48] = sum(k: 32) " + product + "\n";
}

TEST(FmaPeakTest, OnlyWideFloatsHaveIt) {
  EXPECT_TRUE(HasFmaPeak(Matmul("f32", "f32", "A[i, k] * B[k, j]")));
  EXPECT_TRUE(HasFmaPeak(Matmul("f64", "f64", "A[i, k] * B[k, j]")));
  EXPECT_TRUE(HasFmaPeak(Matmul("f32", "i8", "A[i, k] * f32(B[k, j])"))) << "one factor is f32";
  EXPECT_FALSE(HasFmaPeak(Matmul("u8", "i8", "i32(A[i, k]) * i32(B[k, j])")));
  EXPECT_FALSE(HasFmaPeak(Matmul("bf16", "bf16", "f32(A[i, k]) * f32(B[k, j])")));
  EXPECT_FALSE(HasFmaPeak(Matmul("f16", "f16", "A[i, k] * B[k, j]")));
  EXPECT_TRUE(HasFmaPeak("input X: i8[9]\noutput Y[i: 9] = f32(X[i])\n")) << "computes nothing";
  EXPECT_FALSE(HasFmaPeak("input X: i32[9]\noutput Y[i: 9] = X[i] + X[i]\n"));
}

constexpr char kMatmul[] =
    "workload matmul\ninput A: f32[16, 16]\ninput B: f32[16, 16]\n"
    "output C[i: 16, j: 16] = sum(k: 16) A[i, k] * B[k, j]\n";

class ReadTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HONE_ASSERT_OK_AND_ASSIGN(
        spaces_,
        environment_->Open(kMatmul, target::TargetByName("x86-avx2")->ToText(), /*space=*/"",
                           /*tolerance=*/0));
  }
  GivenCandidate Read(const std::string& trace) { return spaces_->ReadTrace(trace, 0); }

  const std::unique_ptr<TaskEnvironment> environment_ = MakeCompilerEnvironment(1);
  std::unique_ptr<TaskSpaces> spaces_;
};

TEST_F(ReadTraceTest, ACandidateOfASpaceOfTheTaskIsThatCandidate) {
  const SpaceInfo& space = spaces_->spaces()[0];
  HONE_ASSERT_OK_AND_ASSIGN(const auto strategy,
                            spaces_->CreateStrategy("random", 1, /*quick_start=*/false));
  HONE_ASSERT_OK_AND_ASSIGN(const auto proposed, strategy->Propose(8, 0, nullptr));
  for (const record::Candidate& candidate : proposed) {
    std::string text;
    for (const SpaceInfo& each : spaces_->spaces()) {
      if (each.digest == candidate.space_digest) text = each.text;
    }
    HONE_ASSERT_OK_AND_ASSIGN(const std::string trace,
                              environment_->TraceText(text, candidate.decisions));
    const GivenCandidate read = Read(trace);
    EXPECT_EQ(read.refusal, Refusal::kNone) << read.why;
    EXPECT_EQ(read.candidate, candidate);
    EXPECT_EQ(read.space, text);
    // Another name of the workload is the same schedule.
    EXPECT_EQ(Read(absl::StrReplaceAll(trace, {{"workload matmul", "workload other"}})).candidate,
              candidate);
  }
  EXPECT_EQ(Read(space.text).refusal, Refusal::kOpen);
}

TEST_F(ReadTraceTest, AHandwrittenScheduleBecomesACandidate) {
  const std::string loops =
      absl::StrCat(kMatmul, "trace 1\nb0 = block(\"C\")\n", "l0, l1, l2 = loops(b0)\n");
  const GivenCandidate read =
      Read(loops +
           "x0, x1 = sample_perfect_tile(l0, parts=2) = [4, 4]\nl3, l4 = split(l0, x0, "
           "x1)\nparallel(l3)\n");
  EXPECT_EQ(read.refusal, Refusal::kNone) << read.why;
  EXPECT_EQ(read.candidate.decisions, (std::vector<int64_t>{4, 4}));
  EXPECT_FALSE(spaces_->IsSearched(read.candidate));
  EXPECT_THAT(read.space, testing::Not(testing::HasSubstr("[4, 4]")));
}

TEST_F(ReadTraceTest, OtherNamesOfAxesAreTheSameCandidate) {
  const std::string trace =
      absl::StrCat(kMatmul, "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nparallel(l0)\n");
  const GivenCandidate read = Read(trace);
  ASSERT_EQ(read.refusal, Refusal::kNone) << read.why;
  const GivenCandidate renamed = Read(absl::StrReplaceAll(
      trace, {{"i: 16", "row: 16"}, {"A[i, k]", "A[row, k]"}, {"workload matmul", "workload x"}}));
  ASSERT_EQ(renamed.refusal, Refusal::kNone) << renamed.why;
  EXPECT_EQ(renamed.candidate, read.candidate);
  // A trace names its stages, so that with other names it is another text.
  const GivenCandidate other = Read(absl::StrReplaceAll(trace, {{"C", "Y"}}));
  EXPECT_EQ(other.refusal, Refusal::kNone) << other.why;
}

TEST_F(ReadTraceTest, SaysWhatIsWrong) {
  const std::string loops =
      absl::StrCat(kMatmul, "trace 1\nb0 = block(\"C\")\n", "l0, l1, l2 = loops(b0)\n");
  struct Case {
    std::string trace;
    Refusal refusal;
    const char* why;
  };
  const Case cases[] = {
      {"nonsense", Refusal::kMalformed, "a line 'trace 1' must follow"},
      {"", Refusal::kMalformed, ""},
      {loops + "tile(l0)\n", Refusal::kMalformed, "tile"},
      {loops + "x0, x1 = sample_perfect_tile(l0, parts=2)\n", Refusal::kOpen, "2 decisions open"},
      {loops + "x0, x1 = sample_perfect_tile(l0, parts=2) = [3, 5]\n", Refusal::kIllegal,
       "not legal"},
      {loops + "parallel(l2)\n", Refusal::kIllegal, "parallel"},
      {absl::StrReplaceAll(loops, {{"16", "8"}}), Refusal::kOtherWorkload,
       "another computation than the job's matmul"},
  };
  for (const Case& c : cases) {
    const GivenCandidate read = Read(c.trace);
    EXPECT_EQ(read.refusal, c.refusal) << c.trace << read.why;
    EXPECT_THAT(read.why, testing::HasSubstr(c.why)) << c.trace;
  }
}

}  // namespace
}  // namespace hone::job

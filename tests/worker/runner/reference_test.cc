#include "worker/runner/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::runner {
namespace {

constexpr absl::string_view kReferenceMatmul =
    "workload matmul\n"
    "input A: f32[6, 5]\n"
    "input B: f32[5, 4]\n"
    "output C[i: 6, j: 4] = sum(k: 5) A[i, k] * B[k, j]\n";

class ReferenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HONE_ASSERT_OK_AND_ASSIGN(workload_, ir::ParseWorkload(kReferenceMatmul));
    digest_ = workload_.StructuralDigest().ToHex();
    signature_ = SignatureOf(workload_);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "reference";
  ir::Workload workload_;
  std::string digest_;
  Signature signature_;
};

TEST_F(ReferenceTest, SignatureDescribesBuffersAndTerms) {
  ASSERT_EQ(signature_.inputs.size(), 2u);
  EXPECT_EQ(signature_.inputs[0].name, "A");
  EXPECT_EQ(signature_.inputs[1].bytes(), 5 * 4 * 4);
  ASSERT_EQ(signature_.outputs.size(), 1u);
  EXPECT_EQ(signature_.outputs[0].elements, 24);
  EXPECT_GE(signature_.terms, 5);
  EXPECT_EQ(signature_.roundoff, 0x1p-24);
}

// The value of an f32 kernel before the cast may round to a neighbouring f16.
TEST_F(ReferenceTest, ACastInsideAnExpressionIsARoundingOfTheSignature) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto cast,
                            ir::ParseWorkload("workload rounded\n"
                                              "input A: f32[6]\n"
                                              "output C[i: 6] = f32(f16(A[i] * A[i]))\n"));
  EXPECT_EQ(SignatureOf(cast).rounding, 0x1p-11);
  EXPECT_EQ(SignatureOf(cast).roundoff, 0x1p-24);
}

TEST_F(ReferenceTest, SmallWorkloadsUseTheInterpreter) {
  ASSERT_THAT(MakeReference(workload_, Inputs::Seeded(digest_), nullptr, path_), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, Reference::Open(path_, digest_, signature_));
  for (const Filling filling : {Filling::kReal, Filling::kInteger}) {
    float a[30], b[20];
    FillTensor(signature_.inputs[0], filling, InputSeed(digest_), 0, a);
    FillTensor(signature_.inputs[1], filling, InputSeed(digest_), 1, b);
    const Expected expected = reference->Of(filling, 0);
    for (int i = 0; i < 6; ++i) {
      for (int j = 0; j < 4; ++j) {
        double sum = 0, magnitude = 0;
        for (int k = 0; k < 5; ++k) {
          const double product = static_cast<double>(a[i * 5 + k]) * b[k * 4 + j];
          sum += product;
          magnitude += std::fabs(product);
        }
        EXPECT_FLOAT_EQ(expected.Value(i * 4 + j).real(), sum);
        EXPECT_FLOAT_EQ(expected.Magnitude(i * 4 + j), magnitude);
        EXPECT_GE(expected.Magnitude(i * 4 + j), magnitude * (1 - 1e-15));
      }
    }
  }
  EXPECT_TRUE(IsExact(signature_.outputs[0], reference->Of(Filling::kInteger, 0), signature_));
  EXPECT_FALSE(IsExact(signature_.outputs[0], reference->Of(Filling::kReal, 0), signature_));
}

// Values of type i64 are stored exactly, and roundings follow the magnitudes.
TEST_F(ReferenceTest, HoldsLargeIntegersAndRoundings) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload,
                            ir::ParseWorkload("workload two\n"
                                              "input A: i64[6]\n"
                                              "input B: i8[6]\n"
                                              "T[i: 6] = i32(f32(B[i]) * 0.5)\n"
                                              "output C[i: 6] = A[i] + 9007199254740993\n"
                                              "output D[i: 6] = T[i] + T[i]\n"));
  const std::string digest = workload.StructuralDigest().ToHex();
  const Signature signature = SignatureOf(workload);
  ASSERT_THAT(MakeReference(workload, Inputs::Seeded(digest), nullptr, path_), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, Reference::Open(path_, digest, signature));
  int64_t a[6];
  int8_t b[6];
  FillTensor(signature.inputs[0], Filling::kReal, InputSeed(digest), 0, a);
  FillTensor(signature.inputs[1], Filling::kReal, InputSeed(digest), 1, b);
  const Expected c = reference->Of(Filling::kReal, 0), d = reference->Of(Filling::kReal, 1);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(c.Value(i), a[i] + 9007199254740993);
    EXPECT_EQ(c.Rounding(i), 0);
    EXPECT_EQ(d.Value(i), b[i] / 2 * 2);
    // If a half is whole, it may have been computed slightly smaller.
    EXPECT_EQ(d.Rounding(i), b[i] % 2 == 0 && b[i] != 0 ? 2 : 0);
  }
}

TEST_F(ReferenceTest, ATruncatedFileOrOneOfAnotherWorkloadIsRefused) {
  ASSERT_THAT(MakeReference(workload_, Inputs::Seeded(digest_), nullptr, path_), IsOk());
  EXPECT_THAT(Reference::Open(path_, std::string(32, '0'), signature_),
              StatusIs(absl::StatusCode::kDataLoss));
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_THAT(Reference::Open(path_, digest_, signature_), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Reference::Open(folder_ / "none", digest_, signature_),
              StatusIs(absl::StatusCode::kNotFound));
}

// The check would accept any value: the divisor is 0 but for rounding errors.
TEST_F(ReferenceTest, AnOutputWithoutBoundsIsRefused) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ir::ParseWorkload("workload unbounded\n"
                        "input A: f32[6]\n"
                        "output B[i: 6] = A[i] + 1.0\n"
                        "output C[i: 6] = 1.0 / (exp(A[i]) * 3.0 - exp(A[i]) * 3.0 + 1e-30)\n"));
  const absl::Status refused = MakeReference(workload, Inputs::Seeded(digest_), nullptr, path_);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("output C cannot be checked")));
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("of its 6 elements"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ReferenceTest, AFailedWriteLeavesNoFile) {
  EXPECT_FALSE(
      MakeReference(workload_, Inputs::Seeded(digest_), nullptr, folder_ / "no/folder").ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

// A computation of a million reads is interrupted many times, and may end at each of them.
TEST_F(ReferenceTest, GivesWayWhileItComputes) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload,
                            ir::ParseWorkload("workload matmul\n"
                                              "input A: f32[64, 128]\n"
                                              "input B: f32[128, 64]\n"
                                              "output C[i: 64, j: 64] = sum(k: 128) A[i, k] * "
                                              "B[k, j]\n"));
  const std::string digest = workload.StructuralDigest().ToHex();
  int calls = 0, last = 1'000'000;
  const auto make = [&] {
    calls = 0;
    return MakeReference(workload, Inputs::Seeded(digest), nullptr, path_, kWholeReferenceBytes,
                         [&]() -> absl::Status {
                           if (++calls < last) return absl::OkStatus();
                           return absl::DeadlineExceededError("enough");
                         });
  };
  EXPECT_THAT(make(), IsOk());
  EXPECT_GE(calls, 32);
  std::filesystem::remove(path_);
  const int all = calls;
  for (const int end : {1, 2, all / 2, all}) {
    last = end;
    EXPECT_THAT(make(), StatusIs(absl::StatusCode::kDeadlineExceeded)) << last;
    EXPECT_EQ(calls, last) << "it goes on after an error";
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  }
}

TEST_F(ReferenceTest, TheRestOfAnAbortedRunIsReplaced) {
  std::ofstream(path_ + ".new") << std::string(100'000, 'x');
  ASSERT_THAT(MakeReference(workload_, Inputs::Seeded(digest_), nullptr, path_), IsOk());
  EXPECT_THAT(Reference::Open(path_, digest_, signature_), IsOk());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

// Numbers take four bytes unless they need eight.
TEST_F(ReferenceTest, NumbersAreKeptInTheOutputsType) {
  const std::string texts[] = {
      "workload a\ninput A: f32[4000]\noutput B[i: 4000] = A[i] + A[i]\n",
      "workload b\ninput A: i8[4000]\noutput B[i: 4000] = i32(A[i]) * -3\n",
      "workload c\ninput A: f64[4000]\noutput B[i: 4000] = A[i] + A[i]\n",
      "workload d\ninput A: f32[4000]\noutput B[i: 4000] = A[i] * 1e38 + 1e38\n"};
  const int64_t bytes[] = {16, 16, 32, 24};  // the sums on small integers exceed f32
  for (int w = 0; w < 4; ++w) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(texts[w]));
    const std::string digest = workload.StructuralDigest().ToHex();
    const Signature signature = SignatureOf(workload);
    ASSERT_THAT(MakeReference(workload, Inputs::Seeded(digest), nullptr, path_), IsOk());
    EXPECT_EQ(std::filesystem::file_size(path_), 4096 + 4000 * bytes[w]) << texts[w];
    HONE_ASSERT_OK_AND_ASSIGN(const auto reference, Reference::Open(path_, digest, signature));
    const Expected expected = reference->Of(Filling::kInteger, 0);
    EXPECT_EQ(expected.positions, nullptr);
    int finite = 0, large = 0;
    for (int i = 0; i < 4000; ++i) {
      finite += std::isfinite(expected.Value(i).real());
      large += expected.Value(i).real() > 3.5e38;
      EXPECT_GE(expected.Magnitude(i), std::fabs(expected.Value(i).real()) * (1 - 1e-6));
    }
    EXPECT_EQ(finite, 4000);
    EXPECT_EQ(large > 0, w == 3) << "values beyond f32 keep their range";
  }
}

TEST_F(ReferenceTest, ALargeReferenceIsSampled) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ir::ParseWorkload("workload large\n"
                        "input A: f32[300, 40]\n"
                        "input B: f32[40, 200]\n"
                        "output C[i: 300, j: 200] = sum(k: 40) A[i, k] * B[k, j]\n"
                        "output D[i: 300] = sum(k: 40) A[i, k]\n"));
  const std::string digest = workload.StructuralDigest().ToHex();
  const Signature signature = SignatureOf(workload);
  const Inputs inputs = Inputs::Seeded(digest);
  const std::string whole_path = path_ + ".whole";
  ASSERT_THAT(MakeReference(workload, inputs, nullptr, whole_path), IsOk());
  ASSERT_THAT(MakeReference(workload, inputs, nullptr, path_, /*whole_bytes=*/100000), IsOk());
  EXPECT_LT(std::filesystem::file_size(path_), std::filesystem::file_size(whole_path));
  HONE_ASSERT_OK_AND_ASSIGN(const auto whole, Reference::Open(whole_path, digest, signature));
  HONE_ASSERT_OK_AND_ASSIGN(const auto sampled, Reference::Open(path_, digest, signature));
  EXPECT_EQ(whole->sampled(), "");
  EXPECT_THAT(sampled->sampled(), ::testing::HasSubstr(" of 60000 elements of C"));
  for (const Filling filling : {Filling::kReal, Filling::kInteger}) {
    const Expected all = whole->Of(filling, 0), some = sampled->Of(filling, 0);
    ASSERT_GT(some.sampled, 16000);
    std::vector<float> output(60000);
    for (int i = 0; i < 60000; ++i) output[i] = static_cast<float>(all.Value(i).real());
    int64_t previous = -1;
    int64_t gap = 0;
    for (int64_t i = 0; i < some.sampled; ++i) {
      const int64_t at = some.Position(i);
      gap = std::max(gap, at - previous);
      previous = at;
      ASSERT_EQ(some.Value(i), all.Value(at));
      ASSERT_EQ(some.Magnitude(i), all.Magnitude(at));
    }
    EXPECT_LE(gap, 2 * 60000 / 16000 + 2) << "every part of the output is compared";
    for (const int64_t corner : {0, 199, 59800, 59999}) {
      const bool found = std::binary_search(some.positions, some.positions + some.sampled, corner);
      EXPECT_TRUE(found) << corner;
    }
    const TensorSpec& spec = signature.outputs[0];
    const auto check = [&] {
      return filling == Filling::kReal ? CheckOutput(spec, output.data(), some, signature, 0)
                                       : CheckExact(spec, output.data(), some, signature);
    };
    EXPECT_TRUE(IsExact(spec, some, signature) || filling == Filling::kReal);
    EXPECT_TRUE(check().ok) << check().detail;
    EXPECT_TRUE(CheckWritten(spec, output.data(), some).ok);
    // A wrong element that is compared, and one that was not written and is not.
    const int64_t wrong = some.Position(some.sampled / 2);
    output[wrong] += 1;
    EXPECT_FALSE(check().ok);
    EXPECT_THAT(check().detail, ::testing::HasSubstr(absl::StrCat("C: element ", wrong)));
    output[wrong] -= 1;
    int64_t unwritten = 0;
    while (std::binary_search(some.positions, some.positions + some.sampled, unwritten))
      ++unwritten;
    memset(&output[unwritten], 0xff, sizeof(float));
    EXPECT_TRUE(check().ok);
    EXPECT_EQ(CheckWritten(spec, output.data(), some).detail,
              absl::StrCat("C: element ", unwritten, " was not written"));
  }
}

// Each element would take half an hour.
TEST_F(ReferenceTest, AnOutputWhoseElementsTakeTooLongIsNotSampled) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload,
                            ir::ParseWorkload("workload deep\n"
                                              "input A: f32[1]\n"
                                              "output C[i: 3000] = sum(k: 1000000000) A[0]\n"));
  EXPECT_THAT(
      MakeReference(workload, Inputs::Seeded(digest_), nullptr, path_, /*whole_bytes=*/100),
      StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("output C is too large")));
}

TEST_F(ReferenceTest, ALargeWorkloadNeedsAKernel) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto large,
      ir::ParseWorkload("workload matmul\n"
                        "input A: f32[512, 512]\n"
                        "input B: f32[512, 512]\n"
                        "output C[i: 512, j: 512] = sum(k: 512) A[i, k] * B[k, j]\n"));
  EXPECT_THAT(MakeReference(large, Inputs::Seeded(digest_), nullptr, path_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::runner

#include "worker/runner/signature.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "worker/runner/reference.h"

namespace hone::runner {
namespace {

ir::Workload ParsedForRanges(const std::string& text) {
  auto workload = ir::ParseWorkload(text);
  EXPECT_THAT(workload, IsOk());
  return *std::move(workload);
}

// A normalized product with an activation, whose inputs in [−1, 1) gave operands of normal_cdf of
// some tens, and so denormals and zeros.
std::string NormalizedProduct(int m, int k, int n) {
  return absl::StrCat(
      "workload lnmg\n"
      "input X: f32[",
      m, ", ", k, "]\ninput Gamma: f32[", k, "] constant\ninput Beta: f32[", k,
      "] constant\ninput W: f32[", k, ", ", n, "] constant\n", "Sum[i: ", m, "] = sum(k: ", k,
      ") X[i, k]\nSq[i: ", m, "] = sum(k: ", k, ") (X[i, k] - Sum[i] / ", k,
      ") * (X[i, k] - Sum[i] / ", k, ")\nY[i: ", m, ", j: ", k, "] = (X[i, j] - Sum[i] / ", k,
      ") * rsqrt(Sq[i] / ", k, " + 1e-5) * Gamma[j] + Beta[j]\nZ[i: ", m, ", n: ", n,
      "] = sum(k: ", k, ") Y[i, k] * W[k, n]\noutput O[i: ", m, ", n: ", n,
      "] = Z[i, n] * normal_cdf(Z[i, n])\n");
}

std::string Products(int stages) {
  std::string text = "workload chain\ninput X0: f32[64, 1024]\n";
  for (int s = 1; s <= stages; ++s) absl::StrAppend(&text, "input W", s, ": f32[1024, 1024]\n");
  for (int s = 1; s <= stages; ++s) {
    absl::StrAppend(&text, s == stages ? "output " : "", "X", s,
                    "[i: 64, j: 1024] = sum(k: 1024) X", s - 1, "[i, k] * W", s, "[k, j]\n");
  }
  return text;
}

TEST(InputRangesTest, EveryStageHasMagnitudesNearOne) {
  const std::string workloads[] = {
      NormalizedProduct(128, 256, 512),
      Products(1),
      Products(12),
      "workload attention\n"
      "input Q: f32[128, 64]\ninput K: f32[512, 64]\ninput V: f32[512, 64]\n"
      "S[i: 128, j: 512] = sum(d: 64) Q[i, d] * K[j, d]\n"
      "M[i: 128] = max(j: 512) S[i, j]\n"
      "E[i: 128] = sum(j: 512) exp(S[i, j] - M[i])\n"
      "output O[i: 128, d: 64] = sum(j: 512) exp(S[i, j] - M[i]) / E[i] * V[j, d]\n",
      "workload softmax\ninput X: f32[64, 1000]\nM[i: 64] = max(j: 1000) X[i, j]\n"
      "E[i: 64] = sum(j: 1000) exp(X[i, j] - M[i])\n"
      "output Y[i: 64, j: 1000] = exp(X[i, j] - M[i]) / E[i]\n",
      "workload mean\ninput X: f32[64, 12544]\nS[i: 64] = sum(j: 12544) X[i, j]\n"
      "output Y[i: 64] = S[i] / 12544.0\n",
      "workload half\ninput A: f16[64, 4096]\ninput B: f16[4096, 64]\n"
      "C[i: 64, j: 64] = sum(k: 4096) f32(A[i, k]) * f32(B[k, j])\n"
      "output D[i: 64, j: 64] = f16(C[i, j])\n",
      // Of integers, which are not scaled, to a float scale, which is.
      "workload quantized\ninput A: u8[64, 512]\ninput B: i8[512, 64] constant\n"
      "input S: f32[64] constant\nC[i: 64, j: 64] = sum(k: 512) i32(A[i, k]) * i32(B[k, j])\n"
      "output D[i: 64, j: 64] = f32(C[i, j]) * S[j]\n",
      // Inputs whose negative values give NaN, or whose values near 0 give infinity.
      "workload norm\ninput X: f32[64, 32]\ninput Mean: f32[32]\ninput Var: f32[32]\n"
      "output Y[i: 64, j: 32] = (X[i, j] - Mean[j]) * rsqrt(Var[j] + 1e-5)\n",
      "workload logs\ninput X: f32[64]\ninput Y: f32[64]\n"
      "output Z[i: 64] = log(X[i]) / Y[i]\n",
      "workload later\ninput X: f32[64]\ninput Y: f32[64]\ninput Z: f32[64]\n"
      "S[i: 64] = X[i] + Y[i]\noutput R[i: 64] = sqrt(S[i]) * Z[i]\n",
      "workload power\ninput X: f32[64]\ninput P: f32[64]\noutput Y[i: 64] = pow(X[i], P[i])\n",
  };
  for (const std::string& text : workloads) {
    const ir::Workload workload = ParsedForRanges(text);
    const std::vector<InputRange> ranges = ChooseInputRanges(workload);
    for (const StageMagnitude& stage : EstimateMagnitudes(workload, ranges)) {
      const std::string name = workload.name + ", " + workload.tensors[stage.tensor].name;
      EXPECT_LT(stage.undefined, 0.1) << name;
      EXPECT_LT(stage.largest_argument, 8) << name;
      // A probability or a mean of many elements is small, and what divides it is large.
      EXPECT_GT(stage.rms, 1.0 / 2048) << name;
      EXPECT_LT(stage.rms, 2048) << name;
      EXPECT_LT(stage.of_term, 512) << name;
    }
    EXPECT_EQ(ranges, ChooseInputRanges(workload));
  }
}

TEST(InputRangesTest, OnlyWeightsOfAProductAreScaled) {
  const std::vector<InputRange> ranges = ChooseInputRanges(ParsedForRanges(Products(1)));
  EXPECT_EQ(ranges[0], InputRange());
  // The elements of inputs have a variance of 1/3, so a sum of 1024 products has 2^6.8.
  EXPECT_LE(ranges[1].exponent, -3);
  EXPECT_GE(ranges[1].exponent, -5);
}

TEST(InputRangesTest, InputsThatNeedNoScalingKeepTheirRange) {
  for (const char* const text :
       {"workload w\ninput X: f32[64]\ninput Y: f32[64]\noutput Z[i: 64] = X[i] + Y[i]\n",
        "workload w\ninput X: f32[64, 12544]\nS[i: 64] = sum(j: 12544) X[i, j]\n"
        "output Y[i: 64] = S[i] / 12544.0\n",
        "workload w\ninput X: i8[64]\noutput Z[i: 64] = max(X[i], 3)\n"}) {
    for (const InputRange& range : ChooseInputRanges(ParsedForRanges(text))) {
      EXPECT_EQ(range, InputRange());
    }
  }
}

// The estimate agrees with the outputs that the reference has for the chosen inputs.
TEST(InputRangesTest, TheReferenceHasTheseMagnitudes) {
  const ir::Workload workload = ParsedForRanges(NormalizedProduct(6, 256, 8));
  const std::string digest = workload.StructuralDigest().ToHex();
  const Signature signature = SignatureOf(workload);
  const TemporaryFolder folder;
  const std::string path = folder / "reference";
  ASSERT_THAT(MakeReference(workload, Inputs::Seeded(digest), nullptr, path), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, Reference::Open(path, digest, signature));
  const Expected expected = reference->Of(Filling::kReal, 0);
  double squares = 0;
  int negative = 0;
  for (int i = 0; i < 48; ++i) {
    const double value = expected.Value(i).real();
    squares += value * value;
    negative += value < 0;
    // gelu is this small only for operands below −5.
    EXPECT_GT(std::fabs(value), 1e-6);
  }
  EXPECT_GT(std::sqrt(squares / 48), 0.1);
  EXPECT_LT(std::sqrt(squares / 48), 4);
  EXPECT_GT(negative, 8);
}

TEST(InputRangesTest, FillingsUseTheRange) {
  TensorSpec spec = {"x", ir::DType::kF32, 1000};
  spec.range = {.exponent = -4};
  std::vector<float> data(1000);
  FillTensor(spec, Filling::kReal, 7, 0, data.data());
  for (const float value : data) EXPECT_LE(std::fabs(value), 1.0F / 16);
  spec.range = {.exponent = 3, .positive = true};
  FillTensor(spec, Filling::kReal, 7, 0, data.data());
  for (const float value : data) {
    EXPECT_GE(value, 4);
    EXPECT_LT(value, 12);
  }
  FillTensor(spec, Filling::kInteger, 7, 0, data.data());
  for (const float value : data) EXPECT_LE(std::fabs(value), 3);
}

TEST(InputsTest, GivenDataReplaceRealInputs) {
  const ir::Workload workload = ParsedForRanges(
      "workload w\ninput X: f32[4]\ninput I: i32[4] < 3\noutput Z[i: 4] = X[i] + "
      "f32(I[i])\n");
  const Signature signature = SignatureOf(workload);
  const std::string digest = workload.StructuralDigest().ToHex();
  const TemporaryFolder folder;
  const float x[] = {1, 20, 300, 4000};
  const auto open = [&](const std::map<int, std::string>& given) {
    const std::string bytes = record::EncodeGivenInputs(given);
    const std::string path = folder / "given";
    std::ofstream(path, std::ios::binary) << bytes;
    return Inputs::Given(digest, Sha256Of(bytes), path, signature);
  };
  const std::string bytes(reinterpret_cast<const char*>(x), sizeof x);
  HONE_ASSERT_OK_AND_ASSIGN(const auto inputs, open({{0, bytes}}));
  EXPECT_TRUE(record::AreGiven(inputs.name()));
  EXPECT_NE(inputs.key(), digest);
  float real[4], small[4];
  inputs.Fill(signature, Filling::kReal, 0, real);
  EXPECT_EQ(std::vector<float>(real, real + 4), std::vector<float>(x, x + 4));
  inputs.Fill(signature, Filling::kInteger, 0, small);
  for (const float value : small) EXPECT_LE(std::fabs(value), 3);
  // Their reference has the outputs of these inputs.
  const std::string path = folder / "reference";
  ASSERT_THAT(MakeReference(workload, inputs, nullptr, path), IsOk());
  EXPECT_FALSE(Reference::Open(path, digest, signature).ok());
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, Reference::Open(path, inputs.key(), signature));
  EXPECT_GE(reference->Of(Filling::kReal, 0).Value(3).real(), 4000);

  EXPECT_FALSE(open({{0, bytes.substr(1)}}).ok());
  EXPECT_FALSE(open({{2, bytes}}).ok());
  const int32_t beyond[] = {0, 1, 2, 3};
  const auto refused = open({{1, std::string(reinterpret_cast<const char*>(beyond), 16)}});
  EXPECT_NE(refused.status().message().find("3 as element 3 of I"), std::string::npos)
      << refused.status();
}

TEST(InputsTest, MalformedDataAreRefused) {
  const std::string bytes = record::EncodeGivenInputs({{0, "abcd"}, {3, "efgh"}});
  HONE_ASSERT_OK_AND_ASSIGN(const auto decoded, record::DecodeGivenInputs(bytes));
  EXPECT_EQ(decoded.at(3), "efgh");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(record::DecodeGivenInputs(bytes.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(record::DecodeGivenInputs(bytes + "x").ok());
  EXPECT_FALSE(record::AreGiven(record::kSeededInputs));
  EXPECT_FALSE(record::AreGiven(""));
}

}  // namespace
}  // namespace hone::runner

#include "server/task/least_operations.h"

#include "common/ir/workload_parser.h"
#include "gtest/gtest.h"

namespace hone::task {
namespace {

ir::Workload Parse(absl::string_view text) {
  auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

constexpr absl::string_view kMatmul =
    "workload matmul\n"
    "input A: f32[64, 32]\n"
    "input B: f32[32, 48]\n"
    "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n";

TEST(LeastOperationsTest, AMatmulTakesAllItsMultiplyAddsUnlessATolerancePermitsStrassen) {
  const ir::Workload matmul = Parse(kMatmul);
  EXPECT_EQ(LeastOperations(matmul, 0), 2.0 * 64 * 48 * 32);
  EXPECT_EQ(LeastOperations(matmul, 1e-3), 64.0 * 48 * 32);
}

TEST(LeastOperationsTest, AToleranceLeavesOneMultiplicationPerWindowAndChannel) {
  const ir::Workload conv = Parse(
      "workload conv\n"
      "input X: f32[16, 12, 12]\n"
      "input W: f32[8, 16, 3, 3]\n"
      "output Y[o: 8, y: 10, x: 10] = sum(c: 16, r: 3, s: 3) X[c, y + r, x + s] * W[o, c, r, s]\n");
  EXPECT_EQ(LeastOperations(conv, 0), 2.0 * 8 * 100 * 16 * 9);
  EXPECT_EQ(LeastOperations(conv, 1e-3), 8.0 * 100 * 16);
}

TEST(LeastOperationsTest, SumsMayShareTheirPartsAndFactorsMayBeTakenOut) {
  const ir::Workload pool = Parse(
      "workload pool\n"
      "input X: f32[12, 12]\n"
      "output Y[y: 10, x: 10] = sum(r: 3, s: 3) X[y + r, x + s]\n");
  EXPECT_LE(LeastOperations(pool, 0), 100);
  const ir::Workload scaled = Parse(
      "workload scaled\n"
      "input X: f32[12, 64]\n"
      "input S: f32[12]\n"
      "output Y[y: 12] = sum(k: 64) X[y, k] * S[y]\n");
  EXPECT_LE(LeastOperations(scaled, 0), 12);
}

TEST(LeastOperationsTest, WhatDoesNotDependOnAnAxisIsComputedOnce) {
  const ir::Workload repeated = Parse(
      "workload repeated\n"
      "input A: f32[64, 32]\n"
      "input B: f32[32]\n"
      "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k]\n");
  EXPECT_EQ(LeastOperations(repeated, 0), 2.0 * 64 * 32);
}

TEST(LeastOperationsTest, NarrowTypesCountForLess) {
  const ir::Workload bytes = Parse(
      "workload bytes\n"
      "input A: i8[64, 32]\n"
      "input B: i8[32, 48]\n"
      "output C[i: 64, j: 48] = sum(k: 32) i32(A[i, k]) * i32(B[k, j])\n");
  EXPECT_EQ(LeastOperations(bytes, 0), 2.0 * 64 * 48 * 32 / 4);
}

TEST(LeastOperationsTest, AMatrixTimesItsTransposeIsHalfTheWork) {
  const ir::Workload gram = Parse(
      "workload gram\n"
      "input A: f32[64, 32]\n"
      "output C[i: 64, j: 64] = sum(k: 32) A[i, k] * A[j, k]\n");
  EXPECT_EQ(LeastOperations(gram, 0), 64.0 * 64 * 32);
}

}  // namespace
}  // namespace hone::task

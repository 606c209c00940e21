// The last vector of a row may have fewer lanes than the others.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ir::Values;

// Small whole numbers, so that sums are exact.
Values Numbers(int64_t count, uint64_t seed) {
  Rng rng(seed, 1);
  Values values(count);
  for (double& value : values) value = static_cast<double>(rng.Below(9)) - 4;
  return values;
}

// Matrix products with 9 rows in tiles of 5 rows and two vectors of 16.
std::string Product(int columns, const std::string& dtype) {
  return absl::StrCat("workload w\ninput A: ", dtype, "[9, 7]\ninput B: ", dtype, "[7, ", columns,
                      "]\noutput C[i: 9, j: ", columns, "] = sum(k: 7) A[i, k] * B[k, j]\n",
                      "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n",
                      "l3, l4, l5 = register_tile(b0, l0, l1, l2, 5, 2, 16, 1)\n");
}

void ExpectRight(const std::string& text, const std::vector<Values>& inputs) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(text));
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(program.workload(), inputs));
  for (const target::Target& target : RunnableTargets()) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, RunTrace(target, text, inputs));
    EXPECT_EQ(actual, expected) << target.cpu << "\n" << text;
  }
}

TEST(PartialVectorTest, ProductsOfAnyWidth) {
  for (int columns = 1; columns <= 40; ++columns) {
    ExpectRight(Product(columns, "f32"), {Numbers(9 * 7, 1), Numbers(7 * columns, 2)});
  }
}

TEST(PartialVectorTest, OtherTypes) {
  for (const char* dtype : {"f64", "i32"}) {
    for (const int columns : {3, 17, 24, 28, 33})
      ExpectRight(Product(columns, dtype), {Numbers(9 * 7, 1), Numbers(7 * columns, 2)});
  }
}

// Packed panels are padded, and are read beyond the last column. The sums have remainders, too.
TEST(PartialVectorTest, ProductsWithPackedPanelsOfAnyWidth) {
  for (int columns = 1; columns <= 49; ++columns) {
    for (const int unroll : {2, 3}) {
      const std::string text = absl::StrCat(
          "workload w\ninput A: f32[9, 11]\ninput B: f32[11, ", columns,
          "] constant\noutput C[i: 9, j: ", columns, "] = sum(k: 11) A[i, k] * B[k, j]\n",
          "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n",
          "l3, l4, l5 = register_tile(b0, l0, l1, l2, 4, 2, 8, ", unroll, ")\n",
          "b1 = cache_read(b0, \"B\", \"global\")\n",
          "transform_layout(b1, \"a0, a1 -> a1 / 16, a0, a1 % 16\")\n");
      ExpectRight(text, {Numbers(9 * 11, 6), Numbers(11 * columns, 7)});
    }
  }
}

// The lanes of the padding must keep their sums: they are active at other steps.
TEST(PartialVectorTest, LanesInThePaddingKeepTheirSums) {
  for (const int width : {17, 18, 23, 24, 26}) {
    const std::string text =
        absl::StrCat("workload w\ninput X: f32[3, ", width, "]\ninput W: f32[5]\n",
                     "output Y[i: 3, j: ", width, "] = sum(s: 5 where 0 <= j + s - 2 < ", width,
                     ") X[i, j + s - 2] * W[s]\ntrace 1\nb0 = block(\"Y\")\n",
                     "l0, l1, l2 = loops(b0)\nl3, l4 = split(l1, 0, 16)\n",
                     "reorder(l0, l3, l2, l4)\nvectorize(l4)\n");
    ExpectRight(text, {Numbers(3 * width, 3), Numbers(5, 4)});
  }
}

// Elements past the end are neither read nor written.
TEST(PartialVectorTest, ElementwiseTails) {
  for (int length = 17; length <= 48; ++length) {
    const std::string text =
        absl::StrCat("workload w\ninput X: f32[", length, "]\noutput Y[i: ", length,
                     "] = 2.0 * X[i] + 1.0\ntrace 1\nb0 = block(\"Y\")\nl0 = loops(b0)\n",
                     "l1, l2 = split(l0, 0, 16)\nunroll(l1)\nvectorize(l2)\n");
    ExpectRight(text, {Numbers(length, 5)});
  }
}

}  // namespace
}  // namespace hone::codegen

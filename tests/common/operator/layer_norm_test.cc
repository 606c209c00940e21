// The accuracy of layer norm when a large offset is added to all elements of a row, or to one.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/program.h"
#include "common/schedule/default_schedule.h"
#include "tests/common/operator/arrays.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::op {
namespace {

constexpr int kRows = 4, kColumns = 1000;
// The default schedule adds a thousand elements sequentially; the order accounts for a few units.
constexpr double kMostUnits = 12;

// Normalizes the rows in long double.
std::vector<double> Normalized(const ir::Values& x) {
  std::vector<double> y;
  for (int i = 0; i < kRows; ++i) {
    const double* row = &x[static_cast<size_t>(i) * kColumns];
    long double sum = 0, squares = 0;
    for (int j = 0; j < kColumns; ++j) sum += row[j];
    const long double mean = sum / kColumns;
    for (int j = 0; j < kColumns; ++j) squares += (row[j] - mean) * (row[j] - mean);
    const long double scale = 1 / std::sqrt(squares / kColumns + 1e-5L);
    for (int j = 0; j < kColumns; ++j) y.push_back(static_cast<double>((row[j] - mean) * scale));
  }
  return y;
}

// The largest error of compiled code, in units in the last place of the largest result of a row.
double Error(const ir::Values& x, const target::Target& target) {
  const auto workload = std::make_shared<const ir::Workload>(
      Built(absl::StrCat("layer_norm m=", kRows, " n=", kColumns)));
  ir::Program program = ir::Program::FromWorkload(workload);
  EXPECT_THAT(schedule::ApplyDefaultSchedule(program, target.vector_bits / 32), IsOk());
  const auto compiled = codegen::CompiledProgram::Load(program, target);
  EXPECT_THAT(compiled, IsOk());
  if (!compiled.ok()) return INFINITY;
  const auto outputs = (*compiled)->Run({x, ir::Values(kColumns, 1), ir::Values(kColumns, 0)});
  EXPECT_THAT(outputs, IsOk());
  if (!outputs.ok()) return INFINITY;
  const std::vector<double> expected = Normalized(x);
  double worst = 0;
  for (size_t row = 0; row < expected.size(); row += kColumns) {
    double error = 0, largest = 0;
    for (size_t i = row; i < row + kColumns; ++i) {
      error = std::max(error, std::abs((*outputs)[0][i] - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    }
    worst = std::max(worst, error / largest * 0x1p23);
  }
  return worst;
}

ir::Values Spread(double offset, uint64_t seed) {
  Rng rng(seed, 0);
  ir::Values x;
  for (int i = 0; i < kRows * kColumns; ++i)
    x.push_back(static_cast<float>(offset + rng.Uniform() * 4 - 2));
  return x;
}

TEST(LayerNormTest, OffsetDoesNotLosePrecision) {
  for (const target::Target& target : codegen::RunnableTargets()) {
    for (const double offset : {0.0, 10.0, 1e4, -1e4, 1e6}) {
      EXPECT_LE(Error(Spread(offset, 3), target), kMostUnits)
          << "offset " << offset << " on " << target.cpu;
    }
  }
}

// Also if the row's first element, which the others are taken relative to, lies far from them.
TEST(LayerNormTest, OutlierDoesNotLosePrecision) {
  for (const target::Target& target : codegen::RunnableTargets()) {
    for (const int column : {0, 1, kColumns - 1}) {
      ir::Values x = Spread(0, 5);
      for (int row = 0; row < kRows; ++row) x[static_cast<size_t>(row) * kColumns + column] = 1e4;
      EXPECT_LE(Error(x, target), kMostUnits) << "outlier at " << column << " on " << target.cpu;
    }
  }
}

}  // namespace
}  // namespace hone::op

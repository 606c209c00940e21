// The features of two programs, kept as text in golden/. HONE_UPDATE_GOLDEN=1
// rewrites it; check the difference before you commit it.
#include "tests/golden.h"

#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_format.h"
#include "server/tuner/feature/feature_set.h"
#include "tests/server/tuner/feature/programs.h"
#include "tests/status.h"

namespace hone::feature {
namespace {

std::string Describe(const FeatureSet& set, const ir::Program& program,
                     const std::vector<int64_t>& decisions, const schedule::Trace& trace) {
  std::string text = program.ToText();
  std::vector<float> values;
  int rows = 0;
  EXPECT_THAT(set.ExtractCandidate(program, {0, decisions, &trace}, TestTarget(), values, rows),
              IsOk());
  for (int r = 0; r < rows; ++r) {
    absl::StrAppendFormat(&text, "\nrow %d\n", r);
    for (int c = 0; c < set.Columns(); ++c) {
      const float value = values[r * set.Columns() + c];
      if (value != 0) absl::StrAppendFormat(&text, "%s %.4f\n", set.ColumnNames()[c], value);
    }
  }
  return text;
}

// Compares with one file per feature set.
void CheckGolden(const std::string& name, absl::string_view trace,
                 const std::vector<int64_t>& decisions) {
  const ir::Program program = ProgramOf(TraceCalled(trace), decisions);
  for (const std::string& set : FeatureSetNames()) {
    const std::string path = "tests/server/tuner/feature/golden/" + name + "." + set + ".txt";
    ExpectGolden(path,
                 Describe(**FindFeatureSet(set), program, decisions, TraceOf(TraceCalled(trace))));
  }
}

TEST(FeaturesGoldenTest, PackedMatmul) {
  CheckGolden("matmul_packed", "packed", {8, 2, 2, 4, 64, 2, 128, 2, 128});
}

TEST(FeaturesGoldenTest, FusedDense) { CheckGolden("dense_fused", "fused", {12, 8, 8, 16}); }

}  // namespace
}  // namespace hone::feature

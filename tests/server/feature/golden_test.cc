// The features of one matmul, as text beside this file. After a deliberate change run the program
// with --regenerate.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"
#include "server/feature/statement_features.h"
#include "tests/server/feature/programs.h"

namespace hone::feature {
namespace {

bool regenerate = false;
constexpr char kFile[] = "tests/server/feature/golden/matmul_packed.txt";

std::string Describe(const ir::Program& program) {
  std::string text = program.ToText();
  for (const std::string& name : FeatureSetNames()) {
    const FeatureSet& set = **FindFeatureSet(name);
    std::vector<float> values;
    int rows = 0;
    EXPECT_TRUE(set.Extract(program, TestTarget(), values, rows).ok());
    for (int r = 0; r < rows; ++r) {
      absl::StrAppendFormat(&text, "\n%s, row %d\n", name, r);
      for (int c = 0; c < set.Columns(); ++c) {
        const float value = values[r * set.Columns() + c];
        if (value != 0) absl::StrAppendFormat(&text, "%s %.4f\n", set.ColumnNames()[c], value);
      }
    }
  }
  return text;
}

TEST(StatementFeaturesGoldenTest, PackedMatmul) {
  const std::string text =
      Describe(ProgramOf(TraceCalled("packed"), {8, 2, 2, 4, 64, 2, 128, 2, 128}));
  if (regenerate) {
    std::ofstream(kFile) << text;
    return;
  }
  std::ifstream file(kFile);
  std::stringstream kept;
  kept << file.rdbuf();
  EXPECT_EQ(text, kept.str()) << "run with --regenerate if this is meant";
}

}  // namespace
}  // namespace hone::feature

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    hone::feature::regenerate |= std::strcmp(argv[i], "--regenerate") == 0;
  return RUN_ALL_TESTS();
}

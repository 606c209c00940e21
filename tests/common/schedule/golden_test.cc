// Golden files of all primitives. A file in testdata/ holds a trace file, a line "program", and the
// program that results from the trace. HONE_UPDATE_GOLDEN=1 rewrites the programs; check the
// difference before you commit it.

#include "tests/golden.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "common/schedule/replay.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

constexpr char kFolder[] = "tests/common/schedule/testdata";

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, TraceGivesTheProgram) {
  const std::string path = absl::StrCat(kFolder, "/", GetParam(), ".txt");
  const std::string text = ReadGolden(path);
  const size_t end = text.find("\nprogram\n");
  const std::string input = end == std::string::npos ? text : text.substr(0, end + 1);
  HONE_ASSERT_OK_AND_ASSIGN(const auto file, ParseTraceFile(input));
  EXPECT_EQ(TraceFileText(file.workload, file.parsed.trace, file.parsed.decisions), input);
  const auto workload = std::make_shared<const ir::Workload>(file.workload);
  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            Replay(workload, file.parsed.trace, file.parsed.decisions));
  ExpectGolden(path, absl::StrCat(input, "program\n", program.ToText()));
  // Replaying the trace again gives the same program.
  EXPECT_EQ(Replay(workload, file.parsed.trace, file.parsed.decisions)->StructuralDigest(),
            program.StructuralDigest());
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, testing::ValuesIn(GoldenNames(kFolder)),
                         [](const auto& info) { return info.param; });

// Every primitive needs a golden that shows its effect.
TEST(GoldenCoverageTest, EveryPrimitiveHasAGolden) {
  std::string all;
  for (const std::string& name : GoldenNames(kFolder))
    all += ReadGolden(absl::StrCat(kFolder, "/", name, ".txt"));
  for (const Primitive& primitive : Primitives()) {
    EXPECT_NE(all.find(absl::StrCat(primitive.name, "(")), std::string::npos) << primitive.name;
  }
}

}  // namespace
}  // namespace hone::schedule

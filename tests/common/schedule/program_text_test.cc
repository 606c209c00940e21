// A program's text parses back to the same program, here for the goldens and in
// random_trace_test.cc for random schedules. A damaged text at worst fails to parse.
//
// HONE_DAMAGED: number of damaged programs. HONE_SEED: first seed.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/schedule/replay.h"
#include "tests/common/schedule/random_trace.h"
#include "tests/common/schedule/seed_range.h"
#include "tests/oracles/program_parser.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

// The goldens include rare states.
TEST(ProgramTextTest, EveryGoldenProgramReadsBack) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/common/schedule/testdata")) {
    std::stringstream content;
    content << std::ifstream(entry.path()).rdbuf();
    const std::string text = content.str();
    const auto file = ParseTraceFile(text.substr(0, text.find("\nprogram\n") + 1));
    ASSERT_THAT(file, IsOk()) << entry.path();
    const auto program = Replay(std::make_shared<const ir::Workload>(file->workload),
                                file->parsed.trace, file->parsed.decisions);
    ASSERT_THAT(program, IsOk()) << entry.path();
    const auto again = ir::ParseProgram(program->shared_workload(), program->ToText());
    ASSERT_THAT(again, IsOk()) << entry.path();
    EXPECT_EQ(again->ToText(), program->ToText()) << entry.path();
    EXPECT_EQ(again->StructuralDigest(), program->StructuralDigest()) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 10);
}

// Once S1 computes D_cache, its output does not determine one of its iteration variables. Inlining
// sets that variable to 0.
TEST(ProgramTextTest, NoVariableOfAnInlinedBlockIsLeft) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto file, ParseTraceFile(R"(workload w
input A: f16[1, 1]
input B: f16[1, 1]
S[i: 1, j: 1] = sum(k: 1) f32(A[i, k]) * f32(B[j, k])
output D[i: 1, j: 1] = f16(S[i, j]) + A[i, 0]
trace 1
b0 = block("D")
b1 = cache_write(b0, "local")
b2 = block("S")
transform_layout(b2, "d0, d1 -> d1 % $0, d0, d1 / $0", 1)
b3, b4 = pad_einsum(b2, 2, 1, 1)
b5 = block("D")
reverse_compute_inline(b5)
b6 = block("S1")
compute_inline(b6)
)"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            Replay(std::make_shared<const ir::Workload>(file.workload),
                                   file.parsed.trace, file.parsed.decisions));
  const std::string text = program.ToText();
  EXPECT_NE(text.find("S_pad[0, a0, a1]"), std::string::npos) << text;
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, ir::ParseProgram(program.shared_workload(), text));
  EXPECT_EQ(again.StructuralDigest(), program.StructuralDigest()) << text;
}

std::string Mutated(std::string text, Rng& rng) {
  static constexpr absl::string_view kPieces[] = {"0",    "-",          "9223372036854775807",
                                                  "(",    ")",          "[",
                                                  "]",    "kernel x\n", "block",
                                                  ":",    " in ",       " / ",
                                                  " % ",  "*",          ",",
                                                  "sum ", "\n",         "  ",
                                                  "max(", "if ",        "where ",
                                                  "f64(", "inf",        "index(",
                                                  " @",   ">",          "barrier\n",
                                                  "1e9",  "align",      " init",
                                                  "#",    "\xff"};
  const int edits = 1 + static_cast<int>(rng.Below(4));
  for (int e = 0; e < edits && !text.empty(); ++e) {
    const size_t at = rng.Below(text.size());
    switch (rng.Below(5)) {
      case 0:
        text[at] = static_cast<char>(rng.Below(256));
        break;
      case 1:
        text.erase(at, 1 + rng.Below(8));
        break;
      case 2: {
        const absl::string_view piece = kPieces[rng.Below(std::size(kPieces))];
        text.insert(at, piece.data(), piece.size());
        break;
      }
      case 3:  // move a piece elsewhere
        text.insert(at, text.substr(rng.Below(text.size()), rng.Below(40)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST(ProgramTextTest, DamagedTextIsRefusedOrReadsBack) {
  const SeedRange range = SeedRange::FromEnvironment("HONE_DAMAGED", 60);
  int64_t refused = 0, read = 0;
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    const RandomTrace random = MakeRandomTrace(static_cast<uint64_t>(seed), 16);
    const std::string text = random.program.ToText();
    for (int m = 0; m < 200; ++m) {
      Rng rng(static_cast<uint64_t>(seed), m);
      const std::string damaged = Mutated(text, rng);
      const absl::StatusOr<ir::Program> program = ir::ParseProgram(random.workload, damaged);
      if (!program.ok()) {
        ++refused;
        ASSERT_THAT(program, StatusIs(absl::StatusCode::kInvalidArgument))
            << "seed " << seed << ", " << m;
        const std::string message(program.status().message());
        ASSERT_NE(message.find_first_of("0123456789"), std::string::npos) << message;
        ASSERT_EQ(message.find_first_not_of("0123456789:"), message.find(' '))
            << "no line:column: " << message;
        continue;
      }
      ++read;
      const std::string printed = program->ToText();
      const absl::StatusOr<ir::Program> again = ir::ParseProgram(random.workload, printed);
      ASSERT_THAT(again, IsOk()) << "seed " << seed << ", " << m << "\n"
                                 << damaged << "\nprints\n"
                                 << printed;
      ASSERT_EQ(again->StructuralDigest(), program->StructuralDigest())
          << "seed " << seed << ", " << m << "\n"
          << printed;
    }
  }
  if (range.count < 60) return;
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace hone::schedule

// The text of a program in any state of its schedule reads back as the same program, and no damage
// to it makes the parser do more than refuse.
//
// HONE_TRACES: how many traces (default 1500). HONE_SEED: where the seeds begin (default 1), to
// repeat a failure.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/program_parser.h"
#include "common/schedule/replay.h"
#include "tests/common/schedule/random_trace.h"

namespace hone::schedule {
namespace {

int64_t FromEnv(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : fallback;
}

// "" or what is wrong.
std::string Problem(const RandomTrace& random) {
  const std::string text = random.program.ToText();
  const absl::StatusOr<ir::Program> again = ir::ParseProgram(random.workload, text);
  if (!again.ok()) return absl::StrCat("it does not parse: ", again.status().message());
  if (again->ToText() != text) return absl::StrCat("it reads back as\n", again->ToText());
  if (again->StructuralDigest() != random.program.StructuralDigest())
    return "it reads back with another digest";
  return "";
}

TEST(ProgramTextTest, EveryStateOfAScheduleReadsBack) {
  const int64_t first = FromEnv("HONE_SEED", 1), traces = FromEnv("HONE_TRACES", 1500);
  for (int64_t seed = first; seed < first + traces; ++seed) {
    const RandomTrace random = MakeRandomTrace(static_cast<uint64_t>(seed),
                                               /*attempts=*/8 + static_cast<int>(seed % 4) * 8);
    const std::string problem = Problem(random);
    if (problem.empty()) continue;
    const RandomTrace small =
        Shrink(random, [](const RandomTrace& r) { return !Problem(r).empty(); });
    FAIL() << "seed " << seed << ": " << Problem(small) << "\n" << Describe(small);
  }
}

// What each primitive makes of a program, the rarer states included.
TEST(ProgramTextTest, EveryGoldenProgramReadsBack) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/common/schedule/testdata")) {
    std::stringstream content;
    content << std::ifstream(entry.path()).rdbuf();
    const std::string text = content.str();
    const auto file = ParseTraceFile(text.substr(0, text.find("\nprogram\n") + 1));
    ASSERT_TRUE(file.ok()) << entry.path() << ": " << file.status();
    const auto program = Replay(std::make_shared<const ir::Workload>(file->workload),
                                file->parsed.trace, file->parsed.decisions);
    ASSERT_TRUE(program.ok()) << entry.path() << ": " << program.status();
    const auto again = ir::ParseProgram(program->shared_workload(), program->ToText());
    ASSERT_TRUE(again.ok()) << entry.path() << ": " << again.status();
    EXPECT_EQ(again->ToText(), program->ToText()) << entry.path();
    EXPECT_EQ(again->StructuralDigest(), program->StructuralDigest()) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 10);
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
      case 3:  // a piece of its own, elsewhere
        text.insert(at, text.substr(rng.Below(text.size()), rng.Below(40)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST(ProgramTextTest, DamagedTextIsRefusedOrReadsBack) {
  const int64_t first = FromEnv("HONE_SEED", 1);
  int64_t refused = 0, read = 0;
  for (int64_t seed = first; seed < first + 60; ++seed) {
    const RandomTrace random = MakeRandomTrace(static_cast<uint64_t>(seed), 16);
    const std::string text = random.program.ToText();
    for (int m = 0; m < 200; ++m) {
      Rng rng(static_cast<uint64_t>(seed), m);
      const std::string damaged = Mutated(text, rng);
      const absl::StatusOr<ir::Program> program = ir::ParseProgram(random.workload, damaged);
      if (!program.ok()) {
        ++refused;
        ASSERT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument)
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
      ASSERT_TRUE(again.ok()) << "seed " << seed << ", " << m << ": " << again.status() << "\n"
                              << damaged << "\nprints\n"
                              << printed;
      ASSERT_EQ(again->StructuralDigest(), program->StructuralDigest())
          << "seed " << seed << ", " << m << "\n"
          << printed;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace hone::schedule

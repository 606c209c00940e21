// Reads docs/language.md: its examples must be correct and complete, and its tables equal to the
// registries. HONE_UPDATE_GOLDEN=1 writes the tables; check the difference before you commit it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/ir/intrinsic.h"
#include "common/ir/vocabulary.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/replay.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

constexpr char kPage[] = "docs/language.md";

struct Example {
  std::string language;  // the word after ```
  int line = 0;          // of its first line in the page
  std::string text;
};

std::vector<Example> Examples() {
  std::vector<Example> examples;
  bool inside = false;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(ReadGolden(kPage), '\n')) {
    ++number;
    if (absl::StartsWith(line, "```")) {
      inside = !inside;
      if (inside) examples.push_back({std::string(line.substr(3)), number + 1, ""});
    } else if (inside) {
      absl::StrAppend(&examples.back().text, line, "\n");
    }
  }
  return examples;
}

std::string AllExamples() {
  std::string all;
  for (const Example& example : Examples()) {
    if (example.language != "text") all += example.text;  // which are grammars
  }
  return all;
}

TEST(LanguagePageTest, WorkloadsAreParsed) {
  int count = 0;
  for (const Example& example : Examples()) {
    if (example.language != "workload") continue;
    ++count;
    const auto workload = ir::ParseWorkload(example.text);
    ASSERT_THAT(workload, IsOk()) << kPage << ":" << example.line;
    HONE_ASSERT_OK_AND_ASSIGN(const auto again, ir::ParseWorkload(workload->ToText()));
    EXPECT_EQ(again.StructuralDigest(), workload->StructuralDigest());
  }
  EXPECT_GT(count, 5);
}

// A trace without a workload is for the workload of an earlier trace called matmul_relu.
TEST(LanguagePageTest, TracesAreApplied) {
  std::string shared;
  int count = 0;
  for (const Example& example : Examples()) {
    if (example.language != "trace") continue;
    ++count;
    const std::string text = absl::StrContains(example.text, "trace 1\n")
                                 ? example.text
                                 : absl::StrCat(shared, "trace 1\n", example.text);
    if (absl::StartsWith(text, "workload matmul_relu\n"))
      shared = text.substr(0, text.find("trace 1\n"));
    const auto file = ParseTraceFile(text);
    ASSERT_THAT(file, IsOk()) << kPage << ":" << example.line;
    const auto workload = std::make_shared<const ir::Workload>(file->workload);
    absl::Status status;
    if (file->parsed.decisions.empty()) {
      Rng rng(1);
      RandomDecider decider(rng);
      status = ReplayWith(workload, file->parsed.trace, decider).status();
    } else {
      status = Replay(workload, file->parsed.trace, file->parsed.decisions).status();
    }
    EXPECT_THAT(status, IsOk()) << kPage << ":" << example.line;
  }
  EXPECT_GT(count, 5);
}

TEST(LanguagePageTest, EveryWordHasAnExample) {
  const std::string all = AllExamples();
  for (const ir::Function& function : ir::Functions()) {
    if (!function.IsCalled()) continue;
    EXPECT_TRUE(absl::StrContains(all, absl::StrCat(function.name(), "("))) << function.usage;
  }
  for (const ir::ReducerInfo& reducer : ir::Reducers()) {
    EXPECT_TRUE(absl::StrContains(all, absl::StrCat("= ", reducer.name(), "("))) << reducer.usage;
  }
  for (const Primitive& primitive : Primitives()) {
    const bool begins = absl::StrContains(all, absl::StrCat("\n", primitive.name, "("));
    EXPECT_TRUE(begins || absl::StrContains(all, absl::StrCat("= ", primitive.name, "(")))
        << primitive.name;
  }
}

// A cell of a table. A bar would end it.
std::string Cell(absl::string_view text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string FunctionTable() {
  std::string table = "| form | operands | meaning |\n|---|---|---|\n";
  for (const ir::Function& function : ir::Functions()) {
    absl::StrAppend(&table, "| `", function.usage, "` | ", ir::TakesText(function.takes), " | ",
                    Cell(function.meaning), " |\n");
  }
  return table;
}

std::string ReducerTable() {
  std::string table = "| form | result |\n|---|---|\n";
  for (const ir::ReducerInfo& reducer : ir::Reducers()) {
    absl::StrAppend(&table, "| `", reducer.usage, "` | ", Cell(reducer.meaning), " |\n");
  }
  return table;
}

std::string PrimitiveTable() {
  std::string table = "| form | meaning | arguments |\n|---|---|---|\n";
  for (const Primitive& primitive : Primitives()) {
    std::string arguments;
    for (const Argument& argument : primitive.arguments) {
      if (argument.meaning.empty()) continue;
      absl::StrAppend(&arguments, arguments.empty() ? "" : "; ", "`", argument.name,
                      "`: ", Cell(argument.meaning));
    }
    absl::StrAppend(&table, "| `", primitive.Usage(), "` | ", Cell(primitive.meaning), " | ",
                    arguments, " |\n");
  }
  return table;
}

std::string InstructionTable() {
  std::string table = "| name | target | operands | result |\n|---|---|---|---|\n";
  for (const ir::Intrinsic& instruction : ir::Intrinsics()) {
    std::string operands, result;
    for (const absl::string_view line : absl::StrSplit(instruction.description, '\n')) {
      if (absl::StartsWith(line, "input "))
        absl::StrAppend(&operands, operands.empty() ? "" : ", ", line.substr(6));
      if (absl::StartsWith(line, "output ")) result = std::string(line.substr(7));
    }
    absl::StrAppend(&table, "| `", instruction.name, "` | ", instruction.arch, ", ",
                    instruction.feature, " | `", operands, "` | `", result, "` |\n");
  }
  return table;
}

TEST(LanguagePageTest, TablesMatchTheRegistries) {
  std::string page = ReadGolden(kPage);
  const std::pair<std::string, std::string> kTables[] = {{"functions", FunctionTable()},
                                                         {"reducers", ReducerTable()},
                                                         {"primitives", PrimitiveTable()},
                                                         {"instructions", InstructionTable()}};
  for (const auto& [name, table] : kTables) {
    const std::string mark = absl::StrCat("<!-- ", name, " -->\n");
    const size_t begin = page.find(mark), end = page.find("<!-- end -->", begin);
    ASSERT_NE(begin, std::string::npos) << mark;
    ASSERT_NE(end, std::string::npos) << mark;
    page = absl::StrCat(page.substr(0, begin + mark.size()), table, page.substr(end));
  }
  ExpectGolden(kPage, page);
}

}  // namespace
}  // namespace hone::schedule

#include "tests/integration/transcript.h"

#include <regex>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "tests/golden.h"

namespace hone::integration {

Transcript::~Transcript() {
  static const std::regex folder("/tmp/hone_test_[A-Za-z0-9]{6}");
  static const std::regex key("[a-z0-9_]+(-[a-z0-9_.]+)+-[0-9]+c-[0-9a-f]{8}");
  std::string text = absl::StrReplaceAll(text_, replaced_);
  text = std::regex_replace(std::regex_replace(text, folder, "DIR"), key, "TARGET");
  ExpectGolden(absl::StrCat("tests/integration/testdata/", name_, ".txt"), WithoutTimes(text));
}

void Transcript::Replace(const std::string& text, const std::string& word) {
  replaced_.emplace_back(text, word);
}

Result Transcript::Run(const Words& words) {
  const Words command = With(command_, words);
  const Result result = RunProgram(command, variables_, absl::Minutes(10));
  Add(absl::StrJoin(command, " "), result);
  return result;
}

void Transcript::Add(const std::string& command, const Result& result) {
  AddLines("$", command);
  AddLines("|", result.output);
  AddLines("!", result.errors);
  if (result.code != 0) AddLines("=", absl::StrCat(result.code));
}

void Transcript::AddLines(const std::string& mark, const std::string& text) {
  if (text.empty()) return;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    absl::StrAppend(&text_, absl::StripTrailingAsciiWhitespace(absl::StrCat(mark, " ", line)),
                    "\n");
  }
}

}  // namespace hone::integration

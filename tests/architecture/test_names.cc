#include "tests/architecture/test_names.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace hone::architecture {
namespace {

// "Suite.Name" of every match.
std::set<std::string> Find(const std::string& text, const char* pattern) {
  std::set<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.insert(absl::StrCat((*it)[1].str(), ".", (*it)[2].str()));
  }
  return found;
}

}  // namespace

std::set<std::string> AllTests() {
  std::set<std::string> tests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests")) {
    if (!entry.path().filename().string().ends_with("_test.cc")) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    tests.merge(Find(text.str(), R"(TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\))"));
  }
  return tests;
}

std::set<std::string> NamedTests(const std::string& text) {
  return Find(text, R"(`(\w+)\.(\w+)`)");
}

std::string TableRow(const std::string& document, absl::string_view first) {
  const size_t begin = document.find(absl::StrCat("\n| ", first, " "));
  if (begin == std::string::npos) return "";
  return document.substr(begin + 1, document.find('\n', begin + 1) - begin - 1);
}

}  // namespace hone::architecture

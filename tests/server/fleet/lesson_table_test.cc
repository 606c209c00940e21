// The table of lessons in server/fleet/README.md names tests that are there.

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace hone::fleet {
namespace {

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "Suite.Name" of every match.
std::set<std::string> Find(const std::string& text, const char* pattern) {
  std::set<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.insert((*it)[1].str() + "." + (*it)[2].str());
  }
  return found;
}

TEST(LessonTableTest, EachLessonHasTestsThatAreThere) {
  const std::string readme = Read("server/fleet/README.md");
  std::set<std::string> tests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests")) {
    const std::string name = entry.path().filename();
    if (!name.ends_with("_test.cc")) continue;
    tests.merge(Find(Read(entry.path()), R"(TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\))"));
  }
  for (int lesson = 1; lesson <= 15; ++lesson) {
    const size_t begin = readme.find("\n| " + std::to_string(lesson) + " ");
    ASSERT_NE(begin, std::string::npos) << "lesson " << lesson;
    const std::string row = readme.substr(begin + 1, readme.find('\n', begin + 1) - begin - 1);
    const std::set<std::string> named = Find(row, R"(`(\w+)\.(\w+)`)");
    EXPECT_FALSE(named.empty()) << row;
    for (const std::string& test : named) EXPECT_TRUE(tests.contains(test)) << test;
  }
}

}  // namespace
}  // namespace hone::fleet

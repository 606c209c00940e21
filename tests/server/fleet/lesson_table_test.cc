// The table of lessons names tests that exist.

#include <set>
#include <string>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/architecture/test_names.h"

namespace hone::fleet {
namespace {

TEST(LessonTableTest, EachLessonHasTestsThatAreThere) {
  const std::string table = ReadFile("tests/server/fleet/lessons.md").value_or("");
  const std::set<std::string> tests = architecture::AllTests();
  for (int lesson = 1; lesson <= 15; ++lesson) {
    const std::string row = architecture::TableRow(table, std::to_string(lesson));
    const std::set<std::string> named = architecture::NamedTests(row);
    EXPECT_FALSE(named.empty()) << "lesson " << lesson << ": " << row;
    for (const std::string& test : named) EXPECT_TRUE(tests.contains(test)) << test;
  }
}

}  // namespace
}  // namespace hone::fleet

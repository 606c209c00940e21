// The tables of bad input and of hostile kernels have a row for each kind and name tests that
// exist.

#include <set>
#include <string>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/architecture/test_names.h"

namespace hone::service {
namespace {

TEST(BadInputTableTest, EachKindHasTestsThatAreThere) {
  const std::string table = ReadFile("tests/server/service/bad_input.md").value_or("");
  const std::set<std::string> tests = architecture::AllTests();
  for (const char* const kind : {"a replayed lease",
                                 "a stale lease",
                                 "a forged worker id",
                                 "a wrong token",
                                 "a withdrawn token",
                                 "an expired certificate",
                                 "an unknown method",
                                 "an oversized message",
                                 "a deeply nested message",
                                 "invalid UTF-8",
                                 "a latency that is no number",
                                 "a negative latency",
                                 "an impossible latency",
                                 "wrong output claimed right",
                                 "a half-uploaded artifact",
                                 "uploads without end",
                                 "a digest mismatch",
                                 "SQL in names",
                                 "a damaged import",
                                 "calls in any order and of any bytes",
                                 "reads files",
                                 "forks",
                                 "opens sockets",
                                 "allocates without bound",
                                 "loops for ever",
                                 "writes out of bounds",
                                 "kills its parent",
                                 "fakes its timing"}) {
    const std::string row = architecture::TableRow(table, kind);
    ASSERT_FALSE(row.empty()) << "no row for: " << kind;
    const std::set<std::string> named = architecture::NamedTests(row);
    EXPECT_FALSE(named.empty()) << row;
    for (const std::string& test : named) EXPECT_TRUE(tests.contains(test)) << test;
  }
}

}  // namespace
}  // namespace hone::service

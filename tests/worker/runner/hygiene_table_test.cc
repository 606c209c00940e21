// The table of timing rules in worker/runner/README.md has a row for each, and names tests that are
// there.

#include <set>
#include <string>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/architecture/test_names.h"

namespace hone::runner {
namespace {

TEST(HygieneTableTest, EachRuleHasTestsThatAreThere) {
  const std::string readme = ReadFile("worker/runner/README.md").value_or("");
  const std::set<std::string> tests = architecture::AllTests();
  for (const char* const rule :
       {"governor, turbo, isolated cores, interrupts: show and advise",
        "stop when the deviation is small, with enough samples and time, under a cap",
        "throttling is seen beside the kernel", "caches are flushed, or said to be warm",
        "after a disturbance: wait, and measure again",
        "clocks, temperature, governor and dispersion with every measurement",
        "what is out of policy is quarantined, not discarded",
        "candidates are compared interleaved"}) {
    const std::string row = architecture::TableRow(readme, rule);
    const std::set<std::string> named = architecture::NamedTests(row);
    EXPECT_FALSE(named.empty()) << rule;
    for (const std::string& test : named) EXPECT_TRUE(tests.contains(test)) << test;
  }
}

}  // namespace
}  // namespace hone::runner

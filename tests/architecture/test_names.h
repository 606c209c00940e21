#ifndef HONE_TESTS_ARCHITECTURE_TEST_NAMES_H_
#define HONE_TESTS_ARCHITECTURE_TEST_NAMES_H_

#include <set>
#include <string>

#include "absl/strings/string_view.h"

// Documents that name the tests that hold what they say. Run in the source root.
namespace hone::architecture {

// "Suite.Name" of every test under tests/.
std::set<std::string> AllTests();

// Those that a text names between backquotes.
std::set<std::string> NamedTests(const std::string& text);

// The row of a table whose first cell is `first`; "" there is none.
std::string TableRow(const std::string& document, absl::string_view first);

}  // namespace hone::architecture

#endif  // HONE_TESTS_ARCHITECTURE_TEST_NAMES_H_

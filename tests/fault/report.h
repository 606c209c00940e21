#ifndef HONE_TESTS_FAULT_REPORT_H_
#define HONE_TESTS_FAULT_REPORT_H_

#include <string>

#include "tests/fault/chaos.h"

namespace hone::fault {

// What struck and whether everything held, in Markdown, for a person.
std::string ToMarkdown(const ChaosReport& report);

// The violations alone, a line each; "" everything held.
std::string Violations(const ChaosReport& report);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_REPORT_H_

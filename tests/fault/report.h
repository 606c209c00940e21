#ifndef HONE_TESTS_FAULT_REPORT_H_
#define HONE_TESTS_FAULT_REPORT_H_

#include <string>

#include "tests/fault/chaos.h"

namespace hone::fault {

// The faults and verdicts as Markdown.
std::string ToMarkdown(const ChaosReport& report);

// The violations, one per line; "" if everything holds.
std::string Violations(const ChaosReport& report);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_REPORT_H_

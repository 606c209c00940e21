#ifndef HONE_TESTS_SERVER_FEATURE_PROGRAMS_H_
#define HONE_TESTS_SERVER_FEATURE_PROGRAMS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/program.h"
#include "common/target/target.h"

namespace hone::feature {

// Schedules with open decisions, on workloads of the library. REQUIRES a name of the list below.
struct NamedTrace {
  absl::string_view name;
  absl::string_view op;
  std::vector<std::string> words;
  absl::string_view trace;  // the instructions
};
const std::vector<NamedTrace>& Traces();
const NamedTrace& TraceCalled(absl::string_view name);

// A program with decisions drawn from the seed; false when a primitive refused them.
bool DrawProgram(const NamedTrace& trace, uint64_t seed, ir::Program& program,
                 std::vector<int64_t>* decisions = nullptr);
// With given decisions; fails the process when they are refused.
ir::Program ProgramOf(const NamedTrace& trace, const std::vector<int64_t>& decisions);
// From the text form of a workload, unscheduled.
ir::Program ProgramOf(absl::string_view workload_text);

// Two cores with AVX-512 and fixed caches.
target::Target TestTarget();

}  // namespace hone::feature

#endif  // HONE_TESTS_SERVER_FEATURE_PROGRAMS_H_

#ifndef HONE_TESTS_SERVER_TUNER_FEATURE_PROGRAMS_H_
#define HONE_TESTS_SERVER_TUNER_FEATURE_PROGRAMS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"

namespace hone::feature {

// A schedule with open decisions, on a workload of the library.
struct NamedTrace {
  absl::string_view name;
  absl::string_view op;
  std::vector<std::string> words;
  absl::string_view trace;  // the instructions
};
const std::vector<NamedTrace>& Traces();
// REQUIRES: Traces() has this name.
const NamedTrace& TraceCalled(absl::string_view name);

// The parsed instructions.
schedule::Trace TraceOf(const NamedTrace& trace);
// A program with decisions drawn from the seed; false when a primitive refused them.
bool DrawProgram(const NamedTrace& trace, uint64_t seed, ir::Program& program,
                 std::vector<int64_t>* decisions = nullptr);
// The program with the given decisions. Aborts if a primitive refuses them.
ir::Program ProgramOf(const NamedTrace& trace, const std::vector<int64_t>& decisions);
// The unscheduled program of a workload given as text.
ir::Program ProgramOf(absl::string_view workload_text);

// Two cores with AVX-512 and fixed caches.
target::Target TestTarget();

}  // namespace hone::feature

#endif  // HONE_TESTS_SERVER_TUNER_FEATURE_PROGRAMS_H_

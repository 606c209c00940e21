#ifndef HONE_TESTS_WORKER_COMPILE_TRACE_CHECK_H_
#define HONE_TESTS_WORKER_COMPILE_TRACE_CHECK_H_

#include <string>

#include "common/target/target.h"
#include "tests/common/schedule/random_trace.h"
#include "tests/common/schedule/seed_range.h"

namespace hone::codegen {

// Compares the code of a trace for a target with the interpreter, on small integers. Some traces
// read and write slices of larger tensors. Returns "" or a description of the problem.
std::string TraceProblem(const schedule::RandomTrace& random, const target::Target& target);

// Draws a trace for each seed, checks it, and fails with the shortest trace that has a problem.
// Steps for which the target has no code, such as GPU axes and instructions of others, are left
// out. `count_name` names the variable that sets the number of traces, for the message.
void ExpectTracesMatch(const schedule::SeedRange& range, const target::Target& target,
                       const char* count_name);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_TRACE_CHECK_H_

#ifndef HONE_TESTS_BENCH_LOAD_USAGE_H_
#define HONE_TESTS_BENCH_LOAD_USAGE_H_

#include <sys/types.h>

#include <vector>

namespace hone::load {

// Returns the processor time of a process in seconds; 0 if it does not exist.
double CpuSeconds(pid_t pid);

// Returns how much the least-squares line through equally spaced values rises from the first to the
// last.
double Rise(const std::vector<double>& values);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_USAGE_H_

#ifndef HONE_TESTS_BENCH_LOAD_USAGE_H_
#define HONE_TESTS_BENCH_LOAD_USAGE_H_

#include <sys/types.h>

#include <vector>

namespace hone::load {

// Processor time that a process has used, in seconds; 0 when there is none.
double CpuSeconds(pid_t pid);

// Of values sampled at even distances: by how much the line of least squares through them rises
// from the first to the last.
double Rise(const std::vector<double>& values);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_USAGE_H_

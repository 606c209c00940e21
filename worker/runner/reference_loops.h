#ifndef HONE_WORKER_RUNNER_REFERENCE_LOOPS_H_
#define HONE_WORKER_RUNNER_REFERENCE_LOOPS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone::runner {

// Returns the time of a steady clock in nanoseconds.
inline double NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

// Loops of known cost. They measure the machine's peaks and show whether it is disturbed.

// Returns the widths of f32 vectors, in bits, for which this CPU has multiply-adds, ascending.
std::vector<int> FmaWidths();

// Runs multiply-adds in registers on the calling thread, with enough independent chains to fill
// every unit. Returns the number of floating-point operations done (two per lane and multiply-add).
// REQUIRES: width_bits is one of FmaWidths().
double RunFma(int width_bits, int64_t iterations);

// Reads `bytes` bytes. REQUIRES: `data` is 64-byte aligned and `bytes` is a multiple of 256.
// Returns a value that depends on all of them.
uint64_t RunStream(const void* data, size_t bytes);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_REFERENCE_LOOPS_H_

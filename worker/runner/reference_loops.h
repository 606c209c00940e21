#ifndef HONE_WORKER_RUNNER_REFERENCE_LOOPS_H_
#define HONE_WORKER_RUNNER_REFERENCE_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone::runner {

// Loops of known cost: the machine's peaks are read from them, and they show whether it is
// disturbed.

// Widths of f32 vectors, in bits, that this CPU multiplies and adds, ascending.
std::vector<int> FmaWidths();

// Multiply-adds in registers, on the calling thread: enough independent chains to fill every unit.
// Returns the number of floating-point operations done (two per lane and multiply-add). REQUIRES
// width_bits is one of FmaWidths().
double RunFma(int width_bits, int64_t iterations);

// Reads `bytes` bytes, 64-byte aligned, a multiple of 256. Returns a value that depends on all of
// them.
uint64_t RunStream(const void* data, size_t bytes);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_REFERENCE_LOOPS_H_

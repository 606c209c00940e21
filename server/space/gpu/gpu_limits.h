#ifndef HONE_SERVER_SPACE_GPU_GPU_LIMITS_H_
#define HONE_SERVER_SPACE_GPU_GPU_LIMITS_H_

#include <cstdint>
#include <vector>

#include "common/ir/dtype.h"
#include "common/target/target.h"

namespace hone::space {

// Limits of launches on a GPU, and the parameters of its rules.
struct GpuTileLimits {
  int64_t max_threads = 256;        // of a block
  int64_t shared_bytes = 32 << 10;  // of a block
  int64_t registers = 128;          // of a thread, 32 bits each
  int64_t sub_group = 1;            // threads that run in lockstep
  int64_t units = 1;                // compute units
  int64_t access_bytes = 16;        // of the widest load or store of a thread
  int64_t max_grid = 65535;         // blocks along y and z
  bool shared_memory = true;        // whether copies in shared memory can pay
  int64_t statements = 512;         // in an unrolled body: longer ones do not fit the code cache
  int64_t guarded_statements = 128;

  static GpuTileLimits Of(const target::Target& target);
};

// Returns numbers of threads along an axis of `extent` iterations: the powers of two from `least`
// to `most`, and small divisors of the extent. None exceeds the extent. Never empty.
std::vector<int64_t> ThreadCounts(int64_t extent, int64_t least, int64_t most);

// Returns the numbers of elements, up to `most`, that a thread computes along an axis: powers of
// two and divisors of the extent. Never empty.
std::vector<int64_t> RegisterSizes(int64_t extent, int64_t most);

// Returns vector widths for a contiguous axis of `extent` elements: 1, and powers of two that
// divide the extent and fit into an access.
std::vector<int64_t> VectorWidths(const GpuTileLimits& limits, int64_t extent, ir::DType dtype);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_GPU_GPU_LIMITS_H_

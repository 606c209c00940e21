#ifndef HONE_SERVER_TUNER_SPACE_GPU_GPU_LIMITS_H_
#define HONE_SERVER_TUNER_SPACE_GPU_GPU_LIMITS_H_

#include <cstdint>
#include <vector>

#include "common/ir/dtype.h"
#include "common/ir/intrinsic.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "server/tuner/space/block_kind.h"

namespace hone::space {

// Limits of kernels on a GPU, and parameters of the rules for GPUs.
struct GpuTileLimits {
  int64_t max_threads = 256;         // per block
  int64_t shared_bytes = 32 << 10;   // per block
  int64_t registers = 128;           // per thread, 32 bits each
  int64_t unit_registers = 0;        // of all threads of a block together; 0: not limited
  int64_t sub_group = 1;             // threads that run in lockstep
  int64_t units = 1;                 // compute units
  int64_t access_bytes = 16;         // widest load or store of a thread
  int64_t max_grid = 65535;          // maximum number of blocks along y and z
  bool shared_memory = true;         // whether shared memory is faster than the caches
  int64_t statements = 512;          // in an unrolled body; more do not fit into the code cache
  int64_t guarded_statements = 128;  // the same if the block has guards

  static constexpr int64_t kOtherRegisters = 20;  // of a thread, for addresses and loop counters

  static GpuTileLimits Of(const target::Target& target);
  // Whether `threads` threads can have so many registers each.
  bool HasRegisters(int64_t threads, int64_t each) const {
    return each <= registers && (unit_registers == 0 || threads * each <= unit_registers);
  }
};

// Returns `least` and its doubles up to `most`.
std::vector<int64_t> Doublings(int64_t least, int64_t most);

// Returns numbers of threads along an axis of `extent` iterations: the powers of two from `least`
// to `most`, and small divisors of the extent. None exceeds the extent. Never empty.
std::vector<int64_t> ThreadCounts(int64_t extent, int64_t least, int64_t most);

// Returns the numbers of elements, up to `most`, that a thread computes along an axis: powers of
// two and divisors of the extent. Never empty.
std::vector<int64_t> RegisterSizes(int64_t extent, int64_t most);

// Returns vector widths for a contiguous axis of `extent` elements: 1, and powers of two that
// divide the extent and fit into an access.
std::vector<int64_t> VectorWidths(const GpuTileLimits& limits, int64_t extent, ir::DType dtype);

// Returns the instruction of the target that adds several products of a contraction to one sum, as
// dp4a does. Returns nullptr if none computes with its types, if the innermost reduction is not a
// multiple of the instruction's terms, or if it is not a dimension of both operands.
const ir::Intrinsic* DotInstructionFor(const ir::Program& program, const ir::Block& block,
                                       const Contraction& contraction,
                                       const target::Target& target);
// The number of products that the instruction adds.
int64_t TermsOf(const ir::Intrinsic& dot);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_GPU_GPU_LIMITS_H_

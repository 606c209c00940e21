#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_ANNOTATE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_ANNOTATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Hints. They are printed and are part of the program's digest, but never change what is computed
// (common/ir/program.h). FailedPrecondition: illegal; the message prints the program with the
// node marked, and the program is unchanged.

// Hints that need only a loop or block:
//   omp_schedule   parallel loop: 0 for equal shares; n > 0: threads fetch n iterations at a time
//   prefetch       serial loop: prefetch the loads of its blocks this many iterations ahead, each
//                  cache line once, at its first read in the code; 0 for no prefetch
//   nontemporal    block that writes an output of the workload and does not reduce: its stores
//                  bypass the caches (whole aligned vectors; other stores stay ordinary)
// InvalidArgument: unknown key; the message lists the keys.
absl::Status Annotate(ir::Program& program, ir::NodeId node, absl::string_view key, int64_t value);

// Gives the block's output two buffers used alternately, so that one iteration can be produced
// while the previous one is consumed. Legal for a block under a loop if its only output is neither
// an input nor an output of the workload, has no other writer, and is read only under that loop.
// CPUs ignore it: their caches and out-of-order execution have the same effect.
absl::Status DoubleBuffer(ir::Program& program, ir::NodeId block);

// Overlaps `stages` iterations of a loop: producers run ahead of consumers. Legal for a serial loop
// that contains at least two nests of which an earlier one produces what a later one reads; 2 to 8
// stages. CPUs ignore it.
absl::Status SoftwarePipeline(ir::Program& program, ir::NodeId loop, int64_t stages);

// Runs the block's copies concurrently with the computation (cp.async, TMA). Legal for a block that
// copies one buffer to another of the same type in scope shared or local. CPUs ignore it.
absl::Status AsyncCopy(ir::Program& program, ir::NodeId block);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_ANNOTATE_H_

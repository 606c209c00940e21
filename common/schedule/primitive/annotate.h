#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_ANNOTATE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_ANNOTATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

// Hints: they are printed, part of the program's digest, and never change what is computed
// (common/ir/annotation.h). FailedPrecondition: with the program printed and the node marked; the
// program is unchanged.
namespace hone::schedule {

// Hints that need nothing but a loop or block:
//   omp_schedule   parallel loop: 0 equal shares, n > 0: threads fetch n iterations at a time
//   prefetch       serial loop: what its blocks load is prefetched that many iterations ahead,
//                  each cache line once, where the code reads it first; 0: none
//   nontemporal    block that writes an output of the workload and does not reduce: its stores pass
//                  the caches by (whole aligned vectors; others stay ordinary stores)
// InvalidArgument: an unknown key; the message lists them.
absl::Status Annotate(ir::Program& program, ir::NodeId node, absl::string_view key, int64_t value);

// What the block writes gets two places that are used in turn, so that the next iteration can be
// produced while this one is consumed. Legal for a block under a loop whose only output is neither
// input nor output of the workload, has no other writer, and is read under that loop alone. CPUs
// ignore it: their caches and reordering do this by themselves.
absl::Status DoubleBuffer(ir::Program& program, ir::NodeId block);

// `stages` iterations of a loop overlap: producers run ahead of consumers. Legal for a serial loop
// whose content is at least two nests of which an earlier one produces what a later one reads; 2 to
// 8 stages. CPUs ignore it, as above.
absl::Status SoftwarePipeline(ir::Program& program, ir::NodeId loop, int64_t stages);

// The block's copies run beside the computation (cp.async, TMA). Legal for a block that copies one
// buffer to another, of equal type, in scope shared or local. CPUs ignore it: they have no such
// engine.
absl::Status AsyncCopy(ir::Program& program, ir::NodeId block);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_ANNOTATE_H_

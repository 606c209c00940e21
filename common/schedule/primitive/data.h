#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_DATA_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_DATA_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

// Where data lies. Errors: FailedPrecondition, with the program printed and the node marked; the
// program is unchanged.
namespace hone::schedule {

// Lets the block read a copy of a buffer. Returns the block that copies, in a nest of its own
// before the reader's; for a constant input that is in the kernel "prepack", which runs ahead of
// time. Legal for a buffer that the block reads, that is complete before the block's nest begins
// (and was computed whole, not by compute_at), and whose layout has no padding; copies of constants
// are in scope global.
absl::StatusOr<ir::NodeId> CacheRead(ir::Program& program, ir::NodeId block,
                                     absl::string_view buffer, ir::Scope scope);

// Lets the block write to a buffer of its own, which a new block copies to the former one in a nest
// after the block's. Returns the block that copies. Legal for a block that is the only writer of
// its only output, before anything was moved under its loops or it was moved itself, and before the
// output's layout got padding.
absl::StatusOr<ir::NodeId> CacheWrite(ir::Program& program, ir::NodeId block, ir::Scope scope);

// Stores a buffer in another order: `map` is text like "i, k -> i / $0, k, i % $0", where $n is a
// number of `numbers` and a*b a product ("$0*16"). Every access is rewritten; a dimension that does
// not divide is padded. The block names the buffer: the one it writes. Legal for buffers that are
// neither input nor output, and for maps that send every element to a place of its own: each
// variable appears whole or cut into pieces by / and %.
absl::Status TransformLayout(ir::Program& program, ir::NodeId block, absl::string_view map,
                             absl::Span<const int64_t> numbers);

// Places the buffer that the block writes in another scope. Legal for buffers that are neither
// input nor output nor computed ahead of time. On CPUs every scope is memory; those of GPUs come
// with their code.
absl::Status SetScope(ir::Program& program, ir::NodeId block, ir::Scope scope);

// Pads the stride of a dimension of the buffer that the block writes: it becomes the smallest
// number of elements that is `offset` modulo `factor` (so rows of 1024 floats stop to meet in the
// same cache sets). What is computed does not depend on it. Legal for every axis but the last, of
// buffers that are neither input nor output; factor from 1 to 2^20, offset below it.
absl::Status AlignStorage(ir::Program& program, ir::NodeId block, ir::StorageAlign align);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_DATA_H_

#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_DATA_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_DATA_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Primitives for the placement of data. FailedPrecondition: illegal; the message prints the program
// with the node marked, and the program is unchanged.

// Makes the block read a copy of a buffer. Returns the block that copies, in its own nest before
// the reader's nest. To scope global, a constant input is copied in the kernel "prepack", ahead of
// time. Legal if the block reads the buffer, the buffer is complete before the block's nest begins
// (and compute_at was not applied to its writer), and its layout has no padding. In the kernel
// "prepack", only copies to scope global are legal.
absl::StatusOr<ir::NodeId> CacheRead(ir::Program& program, ir::NodeId block,
                                     absl::string_view buffer, ir::Scope scope);

// Makes the block write to a new buffer, which a new block copies to the old one in a nest after
// the block's nest. Returns the block that copies. Legal if the block is the only writer of its
// only output, nothing was moved under its loops, it was not moved itself, and the output's layout
// has no padding.
absl::StatusOr<ir::NodeId> CacheWrite(ir::Program& program, ir::NodeId block, ir::Scope scope);

// Changes the layout of the buffer that the block writes. `map` is e.g. "i, k -> i / $0, k, i %
// $0", where $n is an element of `numbers` and "$0*16" a product. Every access is rewritten; a
// dimension that does not divide evenly is padded. Legal for buffers that are neither input nor
// output, and for maps that send every element to a different place: each variable appears
// undivided or split by / and %.
absl::Status TransformLayout(ir::Program& program, ir::NodeId block, absl::string_view map,
                             absl::Span<const int64_t> numbers);

// Moves the buffer that the block writes to another scope. Legal for buffers that are neither input
// nor output nor computed ahead of time. On CPUs every scope is ordinary memory.
absl::Status SetScope(ir::Program& program, ir::NodeId block, ir::Scope scope);

// Pads the stride of a dimension of the buffer that the block writes to the smallest number of
// elements that is `offset` modulo `factor`. Rows of 1024 floats, for example, then no longer
// compete for the same cache sets. The results do not change. Legal for every axis but the last, in
// buffers that are neither input nor output; factor from 1 to 2^20, offset below factor.
absl::Status AlignStorage(ir::Program& program, ir::NodeId block, ir::StorageAlign align);

// The position of a nest that copies data for a reader: before the reader's nest or, if `ahead`, in
// the kernel ir::kPrepackKernel (created if necessary).
struct CopyPlace {
  ir::NodeId parent;
  size_t position;
};
CopyPlace PlaceOfCopy(ir::Program& program, ir::NodeId reader_nest, bool ahead);

// Adds a nest under `parent` at `position` that copies all of `to` from the same indices of `from`,
// which must be at least as large, with a cast if the dtypes differ. Returns its block.
ir::NodeId AddCopyNest(ir::Program& program, ir::BufferId from, ir::BufferId to, ir::NodeId parent,
                       size_t position);

// InvalidArgument: unknown scope; the message lists the names.
absl::StatusOr<ir::Scope> ScopeFromName(absl::string_view name);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_DATA_H_

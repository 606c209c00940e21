#ifndef HONE_SERVER_TUNER_SPACE_CHAIN_GROUP_H_
#define HONE_SERVER_TUNER_SPACE_CHAIN_GROUP_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/ir/program.h"
#include "server/tuner/space/block_kind.h"

namespace hone::space {

// A chain of contractions: one reads another's result at the same rows, directly or through other
// stages. Examples are attention, and two dense layers with an activation between them. To compute
// a block of rows of the last stage, only the same rows of every other member are needed.
struct ChainGroup {
  struct Member {
    ir::NodeId block = ir::kNoNode;
    // Set if the member is a contraction; its rows are then the group's last row axis. All other
    // reductions reduce rows (ReducesRows).
    std::optional<Contraction> contraction;
  };
  std::vector<Member> members;  // in program order; the last one is the result
  int rows = 1;                 // number of row axes: the first spatial axes of every member
  int64_t batch = 1;            // iterations of all row axes except the last
  int64_t height = 1;           // iterations of the last row axis
  int64_t row_bytes = 0;        // bytes that all members except the last write per row
  // Bytes of the contractions' vector operands for one iteration of the batch. Every block of rows
  // reads them again.
  int64_t vector_bytes = 0;

  // The contraction that is computed first.
  const Member& first() const;
};

// Finds the group that ends in `last`, using only blocks of `open`. Returns nullopt if no
// contraction follows another one, or if a member writes several tensors, has a predicate or a
// guard, is a reduction of another kind, or is a contraction whose vectors are not contiguous and
// cannot be copied into panels.
std::optional<ChainGroup> FindChainGroup(const ir::Program& program, ir::NodeId last,
                                         absl::Span<const ir::NodeId> open);

// Whether the vectors of a contraction can be copied into panels before its nest runs.
bool HasPanels(const ir::Program& program, const Contraction& contraction);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_CHAIN_GROUP_H_

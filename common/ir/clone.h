#ifndef HONE_COMMON_IR_CLONE_H_
#define HONE_COMMON_IR_CLONE_H_

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::ir {

// Maps loop variables of the original to their replacements in the copy.
using Replacements = std::vector<std::pair<AtomId, Index>>;

// Copies a subtree with new loops and blocks and returns its root, which has no parent yet. The
// names of blocks end with `suffix` and are fresh. Adds the copied loops' variables to `replaced`.
NodeId Clone(Program& program, NodeId id, absl::string_view suffix, Replacements& replaced);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_CLONE_H_

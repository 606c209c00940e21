#ifndef HONE_COMMON_IR_ATOM_PLAN_H_
#define HONE_COMMON_IR_ATOM_PLAN_H_

#include <vector>

#include "absl/types/span.h"
#include "common/ir/index.h"

namespace hone::ir {

// Atoms made in an order such that indices print their terms as a text had them: terms are sorted
// by atom.
struct AtomPlan {
  AtomTable atoms;
  std::vector<AtomId> vars;  // those that were given, as atoms of this table
};

// Orders the atoms of a table that was filled as a text was read. `sums`: the atoms of every sum of
// that text, in its order. What stands before something in a sum, or inside a floordiv or mod,
// comes before it. Where the text has no such order (no printer wrote it), the atoms keep the one
// they have.
AtomPlan PlanAtoms(const AtomTable& atoms, absl::Span<const AtomId> vars,
                   const std::vector<std::vector<AtomId>>& sums);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ATOM_PLAN_H_

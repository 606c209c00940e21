#ifndef HONE_COMMON_IR_ATOM_PLAN_H_
#define HONE_COMMON_IR_ATOM_PLAN_H_

#include <vector>

#include "absl/types/span.h"
#include "common/ir/index.h"

namespace hone::ir {

// An atom table ordered so that indices print their terms in the same order as a given text. (An
// index sorts its terms by atom.)
struct AtomPlan {
  AtomTable atoms;
  std::vector<AtomId> vars;  // the given variables as atoms of this table
};

// Reorders the atoms of a table that was filled while parsing a text. `sums` lists the atoms of
// each sum, in textual order. An atom comes before those to its right in a sum and before any
// floordiv or mod that contains it. If no such order exists, because Hone did not print the text,
// the atoms that cannot be ordered come last, in their old order.
AtomPlan PlanAtoms(const AtomTable& atoms, absl::Span<const AtomId> vars,
                   const std::vector<std::vector<AtomId>>& sums);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ATOM_PLAN_H_

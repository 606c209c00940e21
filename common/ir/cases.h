#ifndef HONE_COMMON_IR_CASES_H_
#define HONE_COMMON_IR_CASES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"

namespace hone::ir {

// The values that indices can have at a place of a workload or program, according to the domains of
// variables and to conditions that hold at this place. Bounds follow from intervals and
// congruences: i < 22 bounds 3·i, (i + 1) / 2 and i mod 8, and i / 2 < 22 bounds i. A pass that
// visits a program adds a condition when it enters a branch, and removes it when it leaves.
class IndexValues {
 public:
  // The table outlives this object.
  explicit IndexValues(const AtomTable& atoms) : atoms_(atoms) {}

  // Adds that an index is within a range.
  void Add(Index index, Range range);
  int size() const { return static_cast<int>(known_.size()); }
  // Removes the latest conditions until `size` are left.
  void Shrink(int size);

  // Whether no point fulfills the conditions, as far as the bounds of indices show.
  bool AreContradictory() const { return !known_.empty() && Implied().contradictory; }
  // Returns bounds of the index. Empty (min > max) if the conditions contradict each other. Exact
  // for one condition on one variable, otherwise possibly too wide.
  Range RangeOf(const Index& index) const;
  // Returns the values of the index in ascending order, and possibly some more. Returns nullopt if
  // there are too many.
  std::optional<std::vector<int64_t>> Of(const Index& index) const;

 private:
  struct Known {
    Index index;
    Range range;
  };
  // What the conditions imply.
  struct Facts {
    bool contradictory = false;
    std::vector<Known> known;  // the conditions, then what they say of operands
    std::vector<std::pair<AtomId, Range>> of_atoms;  // of the atoms that the conditions restrict
  };

  // Writes index = factor · known + rest. Returns false if it has no such form with a factor other
  // than 0.
  static bool Contains(const Index& index, const Index& known, int64_t& factor, Index& rest);
  std::optional<std::vector<int64_t>> Enumerate(const Index& index) const;

  const Facts& Implied() const;
  // Restricts the atoms of one condition. Returns whether anything changed.
  bool Propagate(Facts& facts, size_t condition) const;
  bool RestrictAtom(Facts& facts, AtomId atom, Range range) const;
  void RestrictOperand(Facts& facts, AtomId atom, Range range) const;
  // Bounds of the sum of the atoms, and of one atom. Operands of floordiv and mod are bounded by up
  // to `depth` conditions together.
  Range ByAtoms(const Facts& facts, const Index& index, int depth) const;
  Range RangeOfAtom(const Facts& facts, AtomId atom, int depth) const;
  // The same, and bounds the sum itself by up to `depth` conditions together.
  Range ByConditions(const Facts& facts, const Index& index, int depth) const;

  const AtomTable& atoms_;
  std::vector<Known> known_;
  mutable std::optional<Facts> implied_;  // by known_; made when it is needed
};

// Limit on the cases of one stage or block.
inline constexpr size_t kMaxCases = 32;

// The values of a stage or block at the points where `conditions` hold. Each guarded value,
// (a where … else b), is replaced by the operand that it chooses at these points.
struct Case {
  std::vector<Condition> conditions;
  absl::InlinedVector<ExprId, 2> values;  // without guarded values inside
};

bool HasGuardedValue(const ExprPool& pool, absl::Span<const ExprId> values);

// Divides the points into cases, of which exactly one holds at each point. Values without guarded
// values have one case without conditions. nullopt: there are more than kMaxCases.
std::optional<std::vector<Case>> CasesOf(ExprPool& pool, const AtomTable& atoms,
                                         absl::Span<const ExprId> values);

// Converts conditions to indices that must be at least 0, the form that Op::kWhere uses. Conditions
// that always hold are left out.
IndexList NonNegative(const AtomTable& atoms, absl::Span<const Condition> conditions);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_CASES_H_

#ifndef HONE_COMMON_IR_CASES_H_
#define HONE_COMMON_IR_CASES_H_

#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"

namespace hone::ir {

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

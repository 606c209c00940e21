#include "common/ir/cases.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace hone::ir {
namespace {

// The opposite of "index ≥ 0".
Index Opposite(const Index& index) { return Index(-1) - index; }

// The points where every index in `holding` is at least 0, and the values there. Guarded values
// that these conditions decide are already replaced.
struct Part {
  IndexList holding;
  absl::InlinedVector<ExprId, 2> values;
};

class Divider {
 public:
  Divider(ExprPool& pool, const AtomTable& atoms) : pool_(pool), atoms_(atoms) {}

  std::optional<std::vector<Case>> Run(absl::Span<const ExprId> values) {
    std::vector<Part> open = {{{}, {values.begin(), values.end()}}};
    std::vector<Case> cases;
    while (!open.empty()) {
      Part part = std::move(open.back());
      open.pop_back();
      // Drop contradictory parts at once: each further guarded value would double their number.
      std::optional<std::vector<Condition>> conditions = ConditionsOf(part.holding);
      if (!conditions.has_value()) continue;
      Resolve(part);
      const ExprId guarded = FirstGuarded(part.values);
      if (guarded == kNoExpr) {
        cases.push_back({*std::move(conditions), std::move(part.values)});
      } else {
        Divide(part, guarded, open);
      }
      if (cases.size() + open.size() > kMaxCases) return std::nullopt;
    }
    return cases;
  }

 private:
  bool Implies(const IndexList& holding, const Index& index) const {
    if (atoms_.RangeOf(index).min >= 0) return true;
    return std::any_of(holding.begin(), holding.end(), [&](const Index& known) {
      const Index difference = index - known;
      return difference.IsConstant() && difference.constant() >= 0;
    });
  }

  // Pushes the part where the value's guards hold last, so that it is processed first.
  void Divide(const Part& part, ExprId guarded, std::vector<Part>& open) const {
    Part holds = part;
    std::vector<Part> others;
    for (const Index& index : pool_.IndicesOf(pool_[guarded])) {
      if (Implies(holds.holding, index)) continue;
      Part fails = holds;
      fails.holding.push_back(Opposite(index));
      others.push_back(std::move(fails));
      holds.holding.push_back(index);
    }
    open.insert(open.end(), others.rbegin(), others.rend());
    open.push_back(std::move(holds));
  }

  void Resolve(Part& part) {
    std::map<ExprId, ExprId> resolved;
    for (ExprId& value : part.values) value = Resolved(value, part.holding, resolved);
  }

  ExprId Resolved(ExprId id, const IndexList& holding, std::map<ExprId, ExprId>& resolved) {
    if (const auto known = resolved.find(id); known != resolved.end()) return known->second;
    const Expr expr = pool_[id];
    ExprId result = id;
    const std::optional<bool> decided =
        expr.op == Op::kWhere ? Decided(holding, pool_.IndicesOf(expr)) : std::nullopt;
    if (decided.has_value()) {
      result = Resolved(*decided ? expr.a : expr.b, holding, resolved);
    } else {
      const auto operand = [&](ExprId of) {
        return of == kNoExpr ? kNoExpr : Resolved(of, holding, resolved);
      };
      const ExprId a = operand(expr.a), b = operand(expr.b), c = operand(expr.c);
      if (a != expr.a || b != expr.b || c != expr.c) result = pool_.WithOperands(id, a, b, c);
    }
    resolved[id] = result;
    return result;
  }

  std::optional<bool> Decided(const IndexList& holding, const IndexList& guards) const {
    bool all = true;
    for (const Index& guard : guards) {
      if (Implies(holding, Opposite(guard))) return false;
      all &= Implies(holding, guard);
    }
    return all ? std::optional<bool>(true) : std::nullopt;
  }

  // The first guarded value, outermost first.
  ExprId FirstGuarded(absl::Span<const ExprId> values) const {
    for (const ExprId value : values) {
      if (const ExprId found = FirstGuarded(value); found != kNoExpr) return found;
    }
    return kNoExpr;
  }
  ExprId FirstGuarded(ExprId id) const {
    if (id == kNoExpr || pool_[id].op == Op::kWhere) return id;
    const Expr& expr = pool_[id];
    return FirstGuarded(absl::Span<const ExprId>({expr.a, expr.b, expr.c}));
  }

  // Merges each pair of indices whose sum is constant into one condition. nullopt if they
  // contradict each other.
  std::optional<std::vector<Condition>> ConditionsOf(const IndexList& holding) const {
    std::vector<Condition> conditions;
    std::vector<bool> joined(holding.size());
    for (size_t i = 0; i < holding.size(); ++i) {
      if (joined[i]) continue;
      int64_t most = atoms_.RangeOf(holding[i]).max;
      for (size_t j = i + 1; j < holding.size(); ++j) {
        const Index sum = holding[i] + holding[j];
        if (!sum.IsConstant()) continue;
        most = std::min(most, sum.constant());
        joined[j] = true;
      }
      if (most < 0) return std::nullopt;
      conditions.push_back({holding[i], most + 1});
    }
    return conditions;
  }

  ExprPool& pool_;
  const AtomTable& atoms_;
};

}  // namespace

bool HasGuardedValue(const ExprPool& pool, absl::Span<const ExprId> values) {
  bool found = false;
  for (const ExprId value : values) {
    pool.Visit(value, [&](const Expr& expr) { found |= expr.op == Op::kWhere; });
  }
  return found;
}

std::optional<std::vector<Case>> CasesOf(ExprPool& pool, const AtomTable& atoms,
                                         absl::Span<const ExprId> values) {
  return Divider(pool, atoms).Run(values);
}

IndexList NonNegative(const AtomTable& atoms, absl::Span<const Condition> conditions) {
  IndexList indices;
  for (const Condition& condition : conditions) {
    const Index last = Index(condition.extent - 1) - condition.index;
    for (const Index& index : {condition.index, last}) {
      if (atoms.RangeOf(index).min < 0) indices.push_back(index);
    }
  }
  return indices;
}

}  // namespace hone::ir

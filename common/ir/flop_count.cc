#include "common/ir/flop_count.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/ir/arithmetic.h"

namespace hone::ir {
namespace {

bool Reads(const ExprPool& pool, ExprId id) {
  bool reads = false;
  pool.VisitLoads(id, [&](const Expr&) { reads = true; });
  return reads;
}

// Number of arithmetic operations in one evaluation. A choice counts its more expensive branch. A
// choice that depends only on indices costs nothing, because the loops decide it.
double Operations(const ExprPool& pool, ExprId id) {
  const Expr& expr = pool[id];
  if (expr.op == Op::kSelect) {
    const double branch = std::max(Operations(pool, expr.b), Operations(pool, expr.c));
    return branch + (Reads(pool, expr.a) ? 1 + Operations(pool, expr.a) : 0);
  }
  if (expr.op == Op::kWhere) return std::max(Operations(pool, expr.a), Operations(pool, expr.b));
  double operations = expr.op != Op::kConst && expr.op != Op::kIndex && expr.op != Op::kLoad &&
                      expr.op != Op::kCast;
  for (const ExprId operand : {expr.a, expr.b, expr.c}) {
    if (operand != kNoExpr) operations += Operations(pool, operand);
  }
  return operations;
}

// Counts the points in the domain of `vars` where all guards hold: enumerates all variables but one
// and counts an interval of that one. Returns -1 if that takes more than `budget` points. The
// points used are subtracted from it.
double CountGroup(const AtomTable& atoms, const std::vector<const Condition*>& guards,
                  std::vector<AtomId> vars, const std::map<AtomId, int64_t>& extents,
                  int64_t& budget) {
  const auto linear = [&](AtomId var) {
    return std::all_of(guards.begin(), guards.end(), [&](const Condition* guard) {
      return !atoms.DependsOn(guard->index - Index::Of(var, guard->index.CoeffOf(var)), var);
    });
  };
  AtomId along = kNoAtom;
  for (AtomId var : vars) {
    if (linear(var) && (along == kNoAtom || extents.at(var) > extents.at(along))) along = var;
  }
  if (along != kNoAtom) vars.erase(std::find(vars.begin(), vars.end(), along));
  double points = 1;
  for (AtomId var : vars) points *= static_cast<double>(extents.at(var));
  if (points > static_cast<double>(budget)) return -1;
  budget -= static_cast<int64_t>(points);

  std::vector<int64_t> values(atoms.size(), 0);
  double holds = 0;
  for (int64_t point = 0; point < static_cast<int64_t>(points); ++point) {
    int64_t rest = point;
    for (AtomId var : vars) {
      values[var] = rest % extents.at(var);
      rest /= extents.at(var);
    }
    int64_t low = 0, high = along == kNoAtom ? 0 : extents.at(along) - 1;
    for (const Condition* guard : guards) {
      const int64_t base = atoms.Evaluate(guard->index, values);
      int64_t coeff = along == kNoAtom ? 0 : guard->index.CoeffOf(along);
      int64_t least = -base, most = guard->extent - 1 - base;  // of coeff·along
      if (coeff < 0) {
        coeff = -coeff;
        std::swap(least, most);
        least = -least;
        most = -most;
      }
      if (coeff == 0) {
        if (least > 0 || most < 0) high = low - 1;
      } else {
        low = std::max(low, CeilDivInt(least, coeff));
        high = std::min(high, FloorDivInt(most, coeff));
      }
    }
    holds += static_cast<double>(std::max<int64_t>(0, high - low + 1));
  }
  return holds;
}

// `budget` is the number of points that may be enumerated. The points used are subtracted from it.
double GuardedPointsWithin(const AtomTable& atoms, const Stage& stage, int64_t& budget) {
  // Axes that share a guard form a group that is counted together; the groups' counts multiply.
  std::map<AtomId, int64_t> extents;
  for (const auto* axes : {&stage.spatial, &stage.reduce}) {
    for (const Axis& axis : *axes) extents[axis.var] = axis.extent;
  }
  std::map<AtomId, AtomId> parent;
  for (const auto& [var, extent] : extents) parent[var] = var;
  const auto root = [&](AtomId var) {
    while (parent[var] != var) var = parent[var];
    return var;
  };
  std::map<const Condition*, AtomId> variable;  // one variable per guard
  for (const Condition& guard : stage.guards) {
    if (guard.index.IsConstant()) {
      if (guard.index.constant() < 0 || guard.index.constant() >= guard.extent) return 0;
      continue;
    }
    atoms.VisitVars(guard.index, [&](AtomId var) {
      const AtomId first = variable.emplace(&guard, var).first->second;
      parent[root(var)] = root(first);
    });
  }
  double points = 1;
  for (const auto& [group, unused] : extents) {
    if (root(group) != group) continue;
    std::vector<AtomId> vars;
    double total = 1;
    for (const auto& [var, extent] : extents) {
      if (root(var) != group) continue;
      vars.push_back(var);
      total *= static_cast<double>(extent);
    }
    std::vector<const Condition*> guards;
    for (const auto& [guard, var] : variable) {
      if (root(var) == group) guards.push_back(guard);
    }
    // For a group too large to count, assume that its guards always hold: an upper bound.
    const double holds =
        guards.empty() ? -1 : CountGroup(atoms, guards, std::move(vars), extents, budget);
    points *= holds < 0 ? total : holds;
  }
  return points;
}

// About 10 ms.
constexpr int64_t kCountingBudget = 100'000;

double StageFlops(const Workload& workload, const Stage& stage, int64_t& budget) {
  double per_point = stage.reducer == Reducer::kNone ? 0 : ReducerArity(stage.reducer);
  for (ExprId value : stage.values) per_point += Operations(workload.pool, value);
  return per_point * GuardedPointsWithin(workload.atoms, stage, budget);
}

}  // namespace

double GuardedPoints(const AtomTable& atoms, const Stage& stage) {
  int64_t budget = kCountingBudget;
  return GuardedPointsWithin(atoms, stage, budget);
}

double FlopCount(const Workload& workload) {
  double total = 0;
  // One budget for all stages, so that workloads with many stages stay fast.
  int64_t budget = kCountingBudget;
  for (const Stage& stage : workload.stages) total += StageFlops(workload, stage, budget);
  return total;
}

}  // namespace hone::ir

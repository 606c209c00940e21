#include "worker/compile/lower/domain_cases.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace hone::lower {
namespace {

using ir::AtomId;
using ir::Index;
using ir::Range;

// The points of the tile that are inside, by their numbers. All are if it has `points`.
struct Inside {
  int64_t first, end;
  friend bool operator==(const Inside&, const Inside&) = default;
};

class Divider {
 public:
  explicit Divider(const TileCondition& condition)
      : c_(condition), points_((c_.fixed.max - c_.fixed.min) / c_.step + 1) {}

  void Add(int64_t value) {
    const int64_t begin = value + c_.fixed.min;  // of point 0
    const Inside inside{std::max<int64_t>(0, ir::CeilDivInt(-begin, c_.step)),
                        std::min(points_, ir::CeilDivInt(c_.extent - begin, c_.step))};
    if (inside.first >= inside.end) {
      cases_.misses = true;
      last_.reset();
      return;
    }
    const bool continues = last_ == inside;
    last_ = inside;
    if (inside == Inside{0, points_}) {
      cases_.has_interior = true;
    } else if (continues) {
      cases_.partial.back().last = value;
    } else {
      const int64_t vectors = ir::CeilDivInt(inside.end - inside.first, c_.lanes);
      const int64_t all = ir::CeilDivInt(points_, c_.lanes);
      cases_.partial.push_back(
          {value, value, static_cast<double>(vectors) / static_cast<double>(all)});
    }
  }
  // Whether all points are inside for this value.
  bool IsInterior(int64_t value) const {
    return value + c_.fixed.min >= 0 && value + c_.fixed.max < c_.extent;
  }
  const DomainCases& cases() const { return cases_; }

 private:
  const TileCondition& c_;
  const int64_t points_;
  DomainCases cases_;
  std::optional<Inside> last_;
};

}  // namespace

DomainCases CasesOf(const TileCondition& condition, const ir::IndexValues& values) {
  Divider divider(condition);
  if (const auto all = values.Of(condition.runtime); all.has_value()) {
    for (const int64_t value : *all) divider.Add(value);
    return divider.cases();
  }
  // There are too many values. Takes all multiples of the greatest common divisor of the terms.
  const Range range = values.RangeOf(condition.runtime);
  int64_t step = 0;
  for (const ir::IndexTerm& term : condition.runtime.terms()) step = std::gcd(step, term.coeff);
  const int64_t least = condition.runtime.constant();
  const auto from = [&](int64_t value) {  // the first value that is not less
    return least + ir::CeilDivInt(value - least, step) * step;
  };
  const int64_t low = -condition.fixed.max, high = condition.extent - 1 - condition.fixed.min;
  if (range.min < low) divider.Add(range.min);
  for (int64_t value = from(std::max(range.min, low)); value <= std::min(range.max, high);
       value += step) {
    divider.Add(value);
    if (!divider.IsInterior(value)) continue;
    // Skips to the last value of the interior.
    const int64_t last = std::min(range.max, condition.extent - 1 - condition.fixed.max);
    value += (last - value) / step * step;
    divider.Add(value);
  }
  if (range.max > high) divider.Add(range.max);
  return divider.cases();
}

StaticParts::StaticParts(const LoweredProgram& program)
    : p_(program), kind_(program.atoms.size(), Kind::kUnknown) {
  for (const Stmt& stmt : p_.stmts) {
    if (stmt.kind != Stmt::Kind::kFor) continue;
    kind_[stmt.var] = stmt.loop == ir::LoopKind::kVectorized ? Kind::kLane
                      : LoweredProgram::IsStatic(stmt.loop)  ? Kind::kUnrolled
                                                             : Kind::kRuntime;
  }
}

StaticParts::Kind StaticParts::KindOf(AtomId var) const {
  return var < static_cast<AtomId>(kind_.size()) ? kind_[var] : Kind::kRuntime;
}

bool StaticParts::IsStatic(AtomId var) const {
  return KindOf(var) == Kind::kUnrolled || KindOf(var) == Kind::kLane;
}

StaticParts::Parts StaticParts::Of(const Index& index) const {
  Parts parts;
  parts.runtime += index.constant();
  for (const ir::IndexTerm& term : index.terms()) {
    bool any_static = false, any_runtime = false;
    p_.atoms.VisitVars(Index::Of(term.atom),
                       [&](AtomId var) { (IsStatic(var) ? any_static : any_runtime) = true; });
    parts.mixed |= any_static && any_runtime;
    (any_static ? parts.fixed : parts.runtime) += Index::Of(term.atom, term.coeff);
  }
  return parts;
}

TileCondition StaticParts::Of(const ir::Condition& condition) const {
  const Parts parts = Of(condition.index);
  int64_t step = 0;
  for (const ir::IndexTerm& term : parts.fixed.terms()) step = std::gcd(step, term.coeff);
  return {parts.runtime, p_.atoms.RangeOf(parts.fixed), std::max<int64_t>(step, 1),
          condition.extent, LanesOf(parts.fixed)};
}

int64_t StaticParts::LanesOf(const Index& index) const {
  int64_t lanes = 1;
  p_.atoms.VisitVars(index, [&](AtomId var) {
    if (KindOf(var) == Kind::kLane) lanes = p_.atoms[var].range.extent();
  });
  return lanes;
}

double StaticParts::StoresIn(StmtId id) const {
  if (id == kNoStmt) return 0;
  const Stmt& stmt = p_.stmts[id];
  if (stmt.kind == Stmt::Kind::kStore) {
    double stores = 1;
    for (const auto* list : {&stmt.conditions, &stmt.guards}) {
      for (const ir::Condition& condition : *list) {
        if (HasRuntimePart(condition.index)) continue;
        const ir::Range range = p_.atoms.RangeOf(condition.index);
        const int64_t inside =
            std::min(range.max, condition.extent - 1) - std::max<int64_t>(range.min, 0) + 1;
        const int64_t lanes = LanesOf(condition.index);
        stores *= static_cast<double>(ir::CeilDivInt(std::max<int64_t>(inside, 0), lanes)) /
                  static_cast<double>(ir::CeilDivInt(range.extent(), lanes));
      }
    }
    return stores;
  }
  double stores = 0;
  for (StmtId child : stmt.children) stores += StoresIn(child);
  const bool unrolled = stmt.kind == Stmt::Kind::kFor && stmt.loop == ir::LoopKind::kUnrolled;
  return unrolled ? stores * static_cast<double>(stmt.extent) : stores;
}

}  // namespace hone::lower

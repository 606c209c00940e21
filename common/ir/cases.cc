#include "common/ir/cases.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"

namespace hone::ir {
namespace {

using Numbers = std::vector<int64_t>;

constexpr int64_t kMaxSums = 1 << 14;
// Limits on the reasoning, far above what conditions in practice need.
constexpr int kMaxRounds = 8;
constexpr size_t kMaxKnown = 128;
constexpr int kMaxTogether = 2;
constexpr double kMaxSize = 1e18;  // of an index; keeps it within 64 bits

Range Intersection(Range a, Range b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

Range Scaled(Range range, int64_t factor) {
  if (factor < 0) std::swap(range.min, range.max);
  return {range.min * factor, range.max * factor};
}

// Leaves out the ends of the range that the common factor of the terms excludes.
Range Congruent(Range range, const Index& index) {
  int64_t step = 0;
  for (const IndexTerm& term : index.terms()) step = std::gcd(step, term.coeff);
  if (step <= 1) return range;
  return {range.min + FloorModInt(index.constant() - range.min, step),
          range.max - FloorModInt(range.max - index.constant(), step)};
}

// Returns the values factor · a + b. Returns nullopt if there are too many.
std::optional<Numbers> Sums(const Numbers& a, int64_t factor, const Numbers& b) {
  if (static_cast<int64_t>(a.size() * b.size()) > kMaxSums) return std::nullopt;
  Numbers sums;
  sums.reserve(a.size() * b.size());
  for (const int64_t x : a) {
    for (const int64_t y : b) sums.push_back(factor * x + y);
  }
  absl::c_sort(sums);
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  return sums;
}

// The largest absolute value that an index or a part of it can have.
double SizeOf(const AtomTable& atoms, const Index& index) {
  double size = std::abs(static_cast<double>(index.constant()));
  for (const IndexTerm& term : index.terms()) {
    const Range range = atoms.RangeOf(Index::Of(term.atom, term.coeff));
    size += std::max(std::abs(static_cast<double>(range.min)),
                     std::abs(static_cast<double>(range.max)));
  }
  return size;
}

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
    return absl::c_any_of(holding, [&](const Index& known) {
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

bool IndexValues::Contains(const Index& index, const Index& known, int64_t& factor, Index& rest) {
  if (known.IsConstant()) return false;
  const IndexTerm& first = known.terms()[0];
  const int64_t coeff = index.CoeffOf(first.atom);
  if (coeff == 0 || coeff % first.coeff != 0) return false;
  factor = coeff / first.coeff;
  rest = index;
  rest.AddScaled(known, -factor);
  return std::all_of(known.terms().begin(), known.terms().end(),
                     [&](const IndexTerm& term) { return rest.CoeffOf(term.atom) == 0; });
}

void IndexValues::Add(Index index, Range range) {
  known_.push_back({std::move(index), range});
  implied_.reset();
}

void IndexValues::Shrink(int size) {
  if (size == this->size()) return;
  known_.resize(size);
  implied_.reset();
}

Range IndexValues::RangeOfAtom(const Facts& facts, AtomId atom, int depth) const {
  Range range = atoms_[atom].range;
  if (const Atom& of = atoms_[atom]; of.kind != Atom::Kind::kVar) {
    const Range operand = ByConditions(facts, of.argument, depth);
    range = {FloorDivInt(operand.min, of.divisor), FloorDivInt(operand.max, of.divisor)};
    if (of.kind == Atom::Kind::kMod) {
      const bool one_period = range.min == range.max;
      range = one_period ? Range{FloorModInt(operand.min, of.divisor),
                                 FloorModInt(operand.max, of.divisor)}
                         : Range{0, of.divisor - 1};
    }
  }
  for (const auto& [restricted, to] : facts.of_atoms) {
    if (restricted == atom) range = Intersection(range, to);
  }
  return range;
}

Range IndexValues::ByAtoms(const Facts& facts, const Index& index, int depth) const {
  Range range{index.constant(), index.constant()};
  for (const IndexTerm& term : index.terms()) {
    const Range of_term = Scaled(RangeOfAtom(facts, term.atom, depth), term.coeff);
    range = {range.min + of_term.min, range.max + of_term.max};
  }
  return range;
}

// A condition `known` bounds an index that shares an atom with it: there are p and q > 0 such that
// q·index = p·known + rest, where the atom is not in the rest.
Range IndexValues::ByConditions(const Facts& facts, const Index& index, int depth) const {
  Range range = ByAtoms(facts, index, depth);
  if (depth == 0 || index.IsConstant()) return range;
  const double size = SizeOf(atoms_, index);
  for (const Known& known : facts.known) {
    for (const IndexTerm& term : known.index.terms()) {
      const int64_t coeff = index.CoeffOf(term.atom);
      const int64_t common = std::gcd(coeff, term.coeff);
      if (coeff == 0) continue;
      const int64_t sign = term.coeff < 0 ? -1 : 1;
      const int64_t p = sign * coeff / common, q = sign * term.coeff / common;
      const double of_rest = size * static_cast<double>(q) +
                             SizeOf(atoms_, known.index) * std::abs(static_cast<double>(p));
      if (of_rest > kMaxSize) continue;
      Index rest = index * q;
      rest.AddScaled(known.index, -p);
      const Range other = ByConditions(facts, rest, depth - 1), by = Scaled(known.range, p);
      range = Intersection(range,
                           {CeilDivInt(other.min + by.min, q), FloorDivInt(other.max + by.max, q)});
    }
  }
  return Congruent(range, index);
}

bool IndexValues::RestrictAtom(Facts& facts, AtomId atom, Range range) const {
  const Range before = RangeOfAtom(facts, atom, 1);
  if (range.min <= before.min && range.max >= before.max) return false;
  range = Intersection(range, before);
  facts.contradictory |= range.min > range.max;
  const auto known =
      absl::c_find_if(facts.of_atoms, [&](const auto& entry) { return entry.first == atom; });
  if (known == facts.of_atoms.end()) {
    facts.of_atoms.push_back({atom, range});
  } else {
    known->second = range;
  }
  if (!facts.contradictory && atoms_[atom].kind != Atom::Kind::kVar)
    RestrictOperand(facts, atom, range);
  return true;
}

// Adds what the range of a floordiv or mod says of its operand.
void IndexValues::RestrictOperand(Facts& facts, AtomId atom, Range range) const {
  const Atom& of = atoms_[atom];
  Range operand{range.min * of.divisor, range.max * of.divisor + of.divisor - 1};
  if (of.kind == Atom::Kind::kMod) {
    operand = ByConditions(facts, of.argument, 1);
    const int64_t period = FloorDivInt(operand.min, of.divisor);
    if (period == FloorDivInt(operand.max, of.divisor)) {
      operand = {period * of.divisor + range.min, period * of.divisor + range.max};
    } else if (range.min == range.max) {
      operand = {operand.min + FloorModInt(range.min - operand.min, of.divisor),
                 operand.max - FloorModInt(operand.max - range.max, of.divisor)};
    }
  }
  for (size_t c = known_.size(); c < facts.known.size(); ++c) {
    if (facts.known[c].index != of.argument) continue;
    facts.known[c].range = Intersection(facts.known[c].range, operand);
    return;
  }
  facts.known.push_back({of.argument, operand});
}

bool IndexValues::Propagate(Facts& facts, size_t condition) const {
  const Known known = facts.known[condition];
  const Range range = Congruent(known.range, known.index);
  facts.known[condition].range = range;
  bool changed = false;
  const Range all = ByAtoms(facts, known.index, 1);
  facts.contradictory |= all.min > range.max || all.max < range.min || range.min > range.max;
  for (const IndexTerm& term : known.index.terms()) {
    if (facts.contradictory) return true;
    const Range of_term = Scaled(RangeOfAtom(facts, term.atom, 1), term.coeff);
    const Range sum = ByAtoms(facts, known.index, 1);
    // term = index − the other terms
    const Range at{range.min - (sum.max - of_term.max), range.max - (sum.min - of_term.min)};
    const Range of_atom =
        term.coeff > 0 ? Range{CeilDivInt(at.min, term.coeff), FloorDivInt(at.max, term.coeff)}
                       : Range{CeilDivInt(-at.max, -term.coeff), FloorDivInt(-at.min, -term.coeff)};
    changed |= RestrictAtom(facts, term.atom, of_atom);
  }
  return changed;
}

const IndexValues::Facts& IndexValues::Implied() const {
  if (implied_.has_value()) return *implied_;
  Facts& facts = implied_.emplace();
  for (const Known& known : known_) {
    // A condition on a constant restricts nothing, but may never hold.
    const int64_t value = known.index.constant();
    if (known.index.IsConstant())
      facts.contradictory |= value < known.range.min || value > known.range.max;
    // Products with the ends of a far wider range could exceed 64 bits.
    facts.known.push_back({known.index, Intersection(known.range, atoms_.RangeOf(known.index))});
  }
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    for (size_t c = 0; c < facts.known.size() && c < kMaxKnown && !facts.contradictory; ++c)
      changed |= Propagate(facts, c);
  }
  return facts;
}

Range IndexValues::RangeOf(const Index& index) const {
  if (known_.empty()) return atoms_.RangeOf(index);
  const Facts& facts = Implied();
  if (facts.contradictory) return {1, 0};
  return ByConditions(facts, index, kMaxTogether);
}

std::optional<Numbers> IndexValues::Enumerate(const Index& index) const {
  std::optional<Numbers> values = Numbers{index.constant()};
  for (const IndexTerm& term : index.terms()) {
    const Range range = atoms_.RangeOf(Index::Of(term.atom));
    if (range.extent() > kMaxSums) return std::nullopt;
    Numbers steps;
    for (int64_t step = range.min; step <= range.max; ++step) steps.push_back(step);
    values = Sums(steps, term.coeff, *values);
    if (!values.has_value()) return std::nullopt;
  }
  return values;
}

std::optional<Numbers> IndexValues::Of(const Index& index) const {
  std::optional<Numbers> values = Enumerate(index);
  for (const Known& known : known_) {
    int64_t factor;
    Index rest;
    if (!Contains(index, known.index, factor, rest)) continue;
    std::optional<Numbers> part = Enumerate(known.index), other = Enumerate(rest);
    if (!part.has_value() || !other.has_value()) continue;
    std::erase_if(*part, [&](int64_t v) { return v < known.range.min || v > known.range.max; });
    const std::optional<Numbers> sums = Sums(*part, factor, *other);
    if (!sums.has_value()) continue;
    if (!values.has_value()) {
      values = sums;
      continue;
    }
    Numbers both;
    std::set_intersection(values->begin(), values->end(), sums->begin(), sums->end(),
                          std::back_inserter(both));
    values = std::move(both);
  }
  return values;
}

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

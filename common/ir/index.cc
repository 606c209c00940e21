#include "common/ir/index.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace hone::ir {
namespace {

constexpr int64_t kMaxDivisor = int64_t{1} << 50;  // keeps products of divisors within 64 bits

}  // namespace

int64_t FloorDivInt(int64_t a, int64_t b) {
  // 32-bit division is several times as fast, and most numbers here are small.
  if (((a | b) >> 31) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  const int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
int64_t FloorModInt(int64_t a, int64_t b) { return a - FloorDivInt(a, b) * b; }

int64_t Index::CoeffOf(AtomId atom) const {
  for (const IndexTerm& term : terms_) {
    if (term.atom == atom) return term.coeff;
  }
  return 0;
}

Index& Index::operator*=(int64_t factor) {
  if (factor == 0) {
    terms_.clear();
    constant_ = 0;
  }
  for (IndexTerm& term : terms_) term.coeff *= factor;
  constant_ *= factor;
  return *this;
}

Index& Index::AddScaled(const Index& other, int64_t factor) {
  if (factor == 0) return *this;
  constant_ += other.constant_ * factor;
  if (other.terms_.empty()) return *this;
  if (other.terms_.size() == 1)
    return AddTerm(other.terms_[0].atom, other.terms_[0].coeff * factor);
  if (terms_.empty() || terms_.back().atom < other.terms_.front().atom) {  // append all of it
    for (const IndexTerm& term : other.terms_) terms_.push_back({term.atom, term.coeff * factor});
    return *this;
  }
  Terms merged;
  auto a = terms_.begin();
  auto b = other.terms_.begin();
  while (a != terms_.end() || b != other.terms_.end()) {
    if (b == other.terms_.end() || (a != terms_.end() && a->atom < b->atom)) {
      merged.push_back(*a++);
    } else if (a == terms_.end() || b->atom < a->atom) {
      merged.push_back({b->atom, b->coeff * factor});
      ++b;
    } else {
      const int64_t coeff = a->coeff + b->coeff * factor;
      if (coeff != 0) merged.push_back({a->atom, coeff});
      ++a;
      ++b;
    }
  }
  terms_ = std::move(merged);
  return *this;
}

Index& Index::AddTerm(AtomId atom, int64_t coeff) {
  if (coeff == 0) return *this;
  if (terms_.empty() || terms_.back().atom < atom) {
    terms_.push_back({atom, coeff});
    return *this;
  }
  auto at = terms_.end() - 1;
  while (at != terms_.begin() && atom < at->atom) --at;
  if (at->atom == atom) {
    at->coeff += coeff;
    if (at->coeff == 0) terms_.erase(at);
  } else {
    terms_.insert(at + (at->atom < atom), {atom, coeff});
  }
  return *this;
}

AtomId AtomTable::AddVar(std::string name, int64_t extent) {
  if (atoms_.size() == atoms_.capacity()) atoms_.reserve(std::max<size_t>(64, 2 * atoms_.size()));
  Atom& atom = atoms_.emplace_back();
  atom.range = {0, extent - 1};
  atom.name = std::move(name);
  return size() - 1;
}

Index AtomTable::Intern(Atom::Kind kind, const Index& argument, int64_t divisor) {
  for (AtomId id : composites_) {
    const Atom& atom = atoms_[id];
    if (atom.kind == kind && atom.argument == argument && atom.divisor == divisor)
      return Index::Of(id);
  }
  Atom atom;
  atom.kind = kind;
  atom.argument = argument;
  atom.divisor = divisor;
  atoms_.push_back(std::move(atom));
  composites_.push_back(size() - 1);
  return Index::Of(size() - 1);
}

void AtomTable::Divide(const Index& index, int64_t divisor, Index& quotient, Index& remainder) {
  quotient = Index(FloorDivInt(index.constant(), divisor));
  remainder = Index(FloorModInt(index.constant(), divisor));
  for (const IndexTerm& term : index.terms()) {
    const bool multiple = term.coeff % divisor == 0;
    (multiple ? quotient : remainder)
        .AddTerm(term.atom, multiple ? term.coeff / divisor : term.coeff);
  }
}

int64_t AtomTable::SplitOff(const Index& index, int64_t divisor, Index& multiple) const {
  absl::InlinedVector<int64_t, 8> candidates;
  int64_t common = divisor;
  for (const IndexTerm& term : index.terms()) {
    candidates.push_back(std::gcd(term.coeff, divisor));
    common = std::gcd(common, term.coeff);
  }
  candidates.push_back(common);
  int64_t best = 1;
  for (const int64_t factor : candidates) {
    if (factor <= best || factor == divisor) continue;
    Index whole(FloorDivInt(index.constant(), factor));
    for (const IndexTerm& term : index.terms()) {
      if (term.coeff % factor == 0) whole.AddTerm(term.atom, term.coeff / factor);
    }
    const Range rest = RangeOf(index - whole * factor);
    if (rest.min < 0 || rest.max >= factor) continue;
    best = factor;
    multiple = std::move(whole);
  }
  return best;
}

Index AtomTable::FloorDiv(const Index& index, int64_t divisor) {
  if (divisor == 1) return index;
  Index quotient, remainder;
  Divide(index, divisor, quotient, remainder);
  if (remainder.IsConstant()) return quotient;
  const Range range = RangeOf(remainder);
  const int64_t low = FloorDivInt(range.min, divisor);
  if (low == FloorDivInt(range.max, divisor)) return quotient + low;
  // (g·x + r) / (g·d) = x / d for 0 ≤ r < g.
  Index multiple;
  if (const int64_t factor = SplitOff(remainder, divisor, multiple); factor > 1) {
    return Simplify(quotient + FloorDiv(multiple, divisor / factor));
  }
  // (x / a + k) / b = (x + a·k) / (a·b).
  if (remainder.terms().size() == 1 && remainder.terms()[0].coeff == 1) {
    const Atom inner = atoms_[remainder.terms()[0].atom];
    if (inner.kind == Atom::Kind::kFloorDiv &&
        remainder.constant() <= kMaxDivisor / inner.divisor &&
        inner.divisor <= kMaxDivisor / divisor) {
      return Simplify(quotient + FloorDiv(inner.argument + remainder.constant() * inner.divisor,
                                          inner.divisor * divisor));
    }
  }
  return Simplify(quotient + Intern(Atom::Kind::kFloorDiv, remainder, divisor));
}

Index AtomTable::Mod(const Index& index, int64_t divisor) {
  if (divisor == 1) return Index(0);
  Index quotient, remainder;
  Divide(index, divisor, quotient, remainder);
  if (remainder.IsConstant()) return remainder;
  const Range range = RangeOf(remainder);
  const int64_t low = FloorDivInt(range.min, divisor);
  if (low == FloorDivInt(range.max, divisor)) return Simplify(remainder + (-low * divisor));
  // (g·x + r) mod (g·d) = g·(x mod d) + r for 0 ≤ r < g.
  Index multiple;
  if (const int64_t factor = SplitOff(remainder, divisor, multiple); factor > 1) {
    const Index rest = remainder - multiple * factor;
    return Simplify(Mod(multiple, divisor / factor) * factor + rest);
  }
  // (c·(x mod m) + y) mod d = (c·x + y) mod d where d divides c·m.
  for (const IndexTerm& term : remainder.terms()) {
    const Atom inner = atoms_[term.atom];
    if (inner.kind != Atom::Kind::kMod || term.coeff * (inner.divisor % divisor) % divisor != 0)
      continue;
    return Mod(remainder - Index::Of(term.atom, term.coeff) + inner.argument * term.coeff, divisor);
  }
  return Intern(Atom::Kind::kMod, remainder, divisor);
}

Index AtomTable::Simplify(Index index) const {
  for (bool changed = true; changed;) {
    changed = false;
    for (const IndexTerm& div : index.terms()) {
      const Atom& d = atoms_[div.atom];
      if (d.kind != Atom::Kind::kFloorDiv) continue;
      for (const IndexTerm& mod : index.terms()) {
        const Atom& m = atoms_[mod.atom];
        if (m.kind != Atom::Kind::kMod || m.argument != d.argument || m.divisor != d.divisor)
          continue;
        if (div.coeff != mod.coeff * d.divisor) continue;
        const int64_t coeff = mod.coeff;
        Index next = index - Index::Of(div.atom, div.coeff) - Index::Of(mod.atom, mod.coeff);
        next.AddScaled(d.argument, coeff);
        index = std::move(next);
        changed = true;
        break;
      }
      if (changed) break;
    }
  }
  return index;
}

Range AtomTable::Divided(const Atom& atom, const Range& argument) {
  const Range quotient{FloorDivInt(argument.min, atom.divisor),
                       FloorDivInt(argument.max, atom.divisor)};
  if (atom.kind == Atom::Kind::kFloorDiv) return quotient;
  if (quotient.min != quotient.max) return {0, atom.divisor - 1};
  return {FloorModInt(argument.min, atom.divisor), FloorModInt(argument.max, atom.divisor)};
}

Range AtomTable::RangeOf(const Index& index) const {
  return RangeOf(index, [this](AtomId var) { return atoms_[var].range; });
}

Index AtomTable::Substitute(const Index& index,
                            absl::FunctionRef<const Index*(AtomId)> replacement) {
  Index result = index;
  SubstituteIn(result, replacement);
  return result;
}

void AtomTable::SubstituteIn(Index& index, absl::FunctionRef<const Index*(AtomId)> replacement) {
  const bool stays =
      std::all_of(index.terms().begin(), index.terms().end(), [&](const IndexTerm& term) {
        return atoms_[term.atom].kind == Atom::Kind::kVar && replacement(term.atom) == nullptr;
      });
  if (stays) return;
  Index result(index.constant());
  for (const IndexTerm& term : index.terms()) {
    const Atom::Kind kind = atoms_[term.atom].kind;
    if (kind == Atom::Kind::kVar) {
      if (const Index* with = replacement(term.atom)) {
        result.AddScaled(*with, term.coeff);
      } else {
        result.AddTerm(term.atom, term.coeff);
      }
      continue;
    }
    // a copy, because interning may reallocate the table
    const Index argument = atoms_[term.atom].argument;
    const int64_t divisor = atoms_[term.atom].divisor;
    const Index inner = Substitute(argument, replacement);
    result.AddScaled(kind == Atom::Kind::kFloorDiv ? FloorDiv(inner, divisor) : Mod(inner, divisor),
                     term.coeff);
  }
  index = Simplify(std::move(result));
}

Index AtomTable::Substitute(const Index& index,
                            absl::Span<const std::pair<AtomId, Index>> replaced) {
  return Substitute(index, [&](AtomId var) -> const Index* {
    const auto found = std::ranges::find(replaced, var, &std::pair<AtomId, Index>::first);
    return found == replaced.end() ? nullptr : &found->second;
  });
}

void AtomTable::VisitVars(const Index& index, absl::FunctionRef<void(AtomId)> visit) const {
  for (const IndexTerm& term : index.terms()) {
    if (atoms_[term.atom].kind == Atom::Kind::kVar) {
      visit(term.atom);
    } else {
      VisitVars(atoms_[term.atom].argument, visit);
    }
  }
}

int64_t AtomTable::Evaluate(const Index& index, absl::Span<const int64_t> values) const {
  int64_t total = index.constant();
  for (const IndexTerm& term : index.terms()) {
    const Atom& atom = atoms_[term.atom];
    int64_t value = 0;
    switch (atom.kind) {
      case Atom::Kind::kVar:
        value = values[term.atom];
        break;
      case Atom::Kind::kFloorDiv:
        value = FloorDivInt(Evaluate(atom.argument, values), atom.divisor);
        break;
      case Atom::Kind::kMod:
        value = FloorModInt(Evaluate(atom.argument, values), atom.divisor);
        break;
    }
    total += term.coeff * value;
  }
  return total;
}

std::string AtomTable::ToString(const Index& index) const {
  std::string text;
  for (const IndexTerm& term : index.terms()) {
    const Atom& atom = atoms_[term.atom];
    const bool negative = term.coeff < 0;
    absl::StrAppend(&text, text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + "));
    const int64_t magnitude = negative ? -term.coeff : term.coeff;
    if (magnitude != 1) absl::StrAppend(&text, magnitude, "*");
    if (atom.kind == Atom::Kind::kVar) {
      absl::StrAppend(&text, atom.name);
      continue;
    }
    const bool simple = atom.argument.SingleAtom() != kNoAtom &&
                        atoms_[atom.argument.SingleAtom()].kind == Atom::Kind::kVar;
    const std::string inner = ToString(atom.argument);
    const std::string operand = simple ? inner : absl::StrCat("(", inner, ")");
    absl::StrAppend(&text, magnitude != 1 ? "(" : "", operand,
                    atom.kind == Atom::Kind::kFloorDiv ? " / " : " % ", atom.divisor,
                    magnitude != 1 ? ")" : "");
  }
  if (text.empty()) return absl::StrCat(index.constant());
  if (index.constant() > 0) absl::StrAppend(&text, " + ", index.constant());
  if (index.constant() < 0) absl::StrAppend(&text, " - ", -index.constant());
  return text;
}

int64_t ExtentTable::NodeOf(Extent extent) {
  if (extent.derivation >= 0) return extent.derivation;
  nodes_.push_back({Kind::kConstant, extent.value, 0});
  return static_cast<int64_t>(nodes_.size()) - 1;
}

Extent ExtentTable::Combine(Kind kind, Extent a, Extent b, int64_t value) {
  if (a.derivation < 0 && b.derivation < 0) return Constant(value);
  if (nodes_.size() + 3 > nodes_.capacity()) nodes_.reserve(2 * nodes_.size() + 64);
  const int64_t left = NodeOf(a), right = NodeOf(b);
  nodes_.push_back({kind, left, right});
  return {value, static_cast<int32_t>(nodes_.size()) - 1};
}

Extent ExtentTable::Factor(int64_t value, int position) {
  nodes_.push_back({Kind::kFactor, position, 0});
  return {value, static_cast<int32_t>(nodes_.size()) - 1};
}
Extent ExtentTable::Add(Extent a, Extent b) { return Combine(Kind::kAdd, a, b, a.value + b.value); }
Extent ExtentTable::Mul(Extent a, Extent b) { return Combine(Kind::kMul, a, b, a.value * b.value); }
Extent ExtentTable::CeilDiv(Extent a, Extent b) {
  return Combine(Kind::kCeilDiv, a, b, CeilDivInt(a.value, b.value));
}

int64_t ExtentTable::Evaluate(Extent extent, absl::Span<const int64_t> decisions) const {
  return extent.derivation < 0 ? extent.value : EvaluateNode(extent.derivation, decisions);
}

int64_t ExtentTable::EvaluateNode(int64_t node, absl::Span<const int64_t> decisions) const {
  const Node& n = nodes_[static_cast<size_t>(node)];
  switch (n.kind) {
    case Kind::kConstant:
      return n.a;
    case Kind::kFactor:
      return decisions[static_cast<size_t>(n.a)];
    case Kind::kAdd:
      return EvaluateNode(n.a, decisions) + EvaluateNode(n.b, decisions);
    case Kind::kMul:
      return EvaluateNode(n.a, decisions) * EvaluateNode(n.b, decisions);
    case Kind::kCeilDiv:
      return CeilDivInt(EvaluateNode(n.a, decisions), EvaluateNode(n.b, decisions));
  }
  return 0;
}

}  // namespace hone::ir

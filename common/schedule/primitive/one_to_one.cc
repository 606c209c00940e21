#include "common/schedule/primitive/one_to_one.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"

namespace hone::schedule {
namespace {

using ir::Atom;
using ir::AtomId;
using ir::Index;
using ir::NodeId;

// A digit of a number `base`: floor(base / low) mod (high / low), or floor(base / low) if high is
// 0. The digits that the solver stores have known values.
struct Digit {
  Index base;
  int64_t low;
  int64_t high;
};

class Solver {
 public:
  Solver(ir::Program& program, std::vector<Known> known, absl::FunctionRef<bool(AtomId)> fixed)
      : atoms_(program.atoms), known_(std::move(known)), fixed_(fixed) {}

  // Ends as soon as it has found `wanted`.
  std::vector<AtomId> Run(AtomId wanted) {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t i = 0; i < known_.size(); ++i) {
        progress |= Peel(i);
        if (absl::c_linear_search(vars_, wanted)) return vars_;
      }
      progress |= JoinDigits();
    }
    return vars_;
  }

 private:
  bool IsKnown(AtomId atom) const {
    if (absl::c_linear_search(solved_, atom)) return true;
    if (atoms_[atom].kind == Atom::Kind::kVar) return fixed_(atom);
    bool all = true;
    atoms_.VisitVars(Index::Of(atom),
                     [&](AtomId var) { all &= fixed_(var) || absl::c_linear_search(vars_, var); });
    return all;
  }

  ir::Range RangeOf(AtomId id) const {
    const Atom& atom = atoms_[id];
    return atom.kind == Atom::Kind::kVar ? atom.range : atoms_.RangeOf(Index::Of(id));
  }

  // Finds atoms whose values follow from a known index, starting with the largest coefficient: an
  // atom is known if all smaller terms and the slack together cannot reach its coefficient. Returns
  // whether there is one.
  bool Peel(size_t i) {
    absl::InlinedVector<ir::IndexTerm, 8> terms;
    for (const ir::IndexTerm& term : known_[i].index.terms()) {
      // A term with only one value is known and must not hide a digit with the same coefficient.
      if (!IsKnown(term.atom) && RangeOf(term.atom).extent() > 1) terms.push_back(term);
    }
    absl::c_sort(
        terms, [](const auto& a, const auto& b) { return std::abs(a.coeff) > std::abs(b.coeff); });
    const auto width = [&](const ir::IndexTerm& term) {
      return std::abs(term.coeff) * (RangeOf(term.atom).extent() - 1);
    };
    int64_t rest = known_[i].slack;
    for (const ir::IndexTerm& term : terms) rest += width(term);
    bool progress = false;
    for (const ir::IndexTerm& term : terms) {
      rest -= width(term);
      if (std::abs(term.coeff) <= rest) break;
      progress = true;
      Solved(term.atom);
    }
    return progress;
  }

  void Solved(AtomId id) {
    solved_.push_back(id);
    const Atom atom = atoms_[id];
    if (atom.kind == Atom::Kind::kVar) {
      vars_.push_back(id);
    } else if (atom.kind == Atom::Kind::kFloorDiv) {
      AddDigit({atom.argument, atom.divisor, 0});
    } else {
      AddDigit({atom.argument, 1, atom.divisor});
    }
  }

  // Adds a digit. If its base is a quotient, also adds it as a digit of the dividend: for
  // base = a + g / c, floor(base / low) = floor((c·a + g) / (c·low)). Simplification leaves such
  // bases if only some terms of a divided index are multiples of the divisor. If its base is a
  // remainder, also adds it as a digit of the dividend, as for (x % 8) / 4 = x / 4 % 2.
  void AddDigit(Digit digit) {
    while (true) {
      digits_.push_back(digit);
      if (const AtomId single = digit.base.SingleAtom();
          single != ir::kNoAtom && atoms_[single].kind == Atom::Kind::kMod) {
        const Atom& rest = atoms_[single];
        const int64_t high = digit.high == 0 ? rest.divisor : digit.high;
        if (rest.divisor % digit.low != 0 || rest.divisor % high != 0) return;
        digit = {rest.argument, digit.low, high};
        continue;
      }
      const auto quotient = std::find_if(
          digit.base.terms().begin(), digit.base.terms().end(), [&](const ir::IndexTerm& term) {
            return term.coeff == 1 && atoms_[term.atom].kind == Atom::Kind::kFloorDiv;
          });
      if (quotient == digit.base.terms().end()) return;
      const Atom divided = atoms_[quotient->atom];
      Index base = digit.base;
      base -= Index::Of(quotient->atom);
      base *= divided.divisor;
      base += divided.argument;
      digit = {base, digit.low * divided.divisor, digit.high * divided.divisor};
    }
  }

  // Expresses a digit as a digit of `base`. This is possible if the bases differ by a multiple of
  // digit.high, or if base = m·digit.base + r with 0 ≤ r < m. Otherwise returns nullopt.
  std::optional<Digit> AsDigitOf(const Digit& digit, const Index& base) const {
    if (digit.base == base) return digit;
    const Index difference = base + Index(digit.base) * -1;
    const auto is_multiple = [&](int64_t number) { return number % digit.high == 0; };
    if (digit.high > 0 && is_multiple(difference.constant()) &&
        std::all_of(difference.terms().begin(), difference.terms().end(),
                    [&](const ir::IndexTerm& term) { return is_multiple(term.coeff); })) {
      return Digit{base, digit.low, digit.high};
    }
    if (digit.base.IsConstant()) return std::nullopt;
    const ir::IndexTerm& first = digit.base.terms()[0];
    const int64_t factor = base.CoeffOf(first.atom) / first.coeff;
    if (factor < 2) return std::nullopt;
    const ir::Range rest = atoms_.RangeOf(base + Index(digit.base) * -factor);
    if (rest.min < 0 || rest.max >= factor) return std::nullopt;
    return Digit{base, digit.low * factor, digit.high * factor};
  }

  // Looks for a base whose known digits together determine it, and adds the base to the known
  // indices. Returns whether there is one.
  bool JoinDigits() {
    for (size_t d = 0; d < digits_.size(); ++d) {
      const Index base = digits_[d].base;
      const ir::Range range = atoms_.RangeOf(base);
      if (range.min < 0 ||
          absl::c_any_of(known_, [&](const Known& k) { return k.slack == 0 && k.index == base; })) {
        continue;
      }
      int64_t covered = 1;
      bool whole = false;
      for (bool progress = true; progress && !whole;) {
        progress = false;
        for (const Digit& known : digits_) {
          const std::optional<Digit> digit = AsDigitOf(known, base);
          if (!digit.has_value()) continue;
          if (digit->high == 0 ? digit->low <= covered : digit->low == covered) {
            whole |= digit->high == 0 || digit->high > range.max;
            progress |= digit->high > covered;
            covered = std::max(covered, digit->high);
          }
        }
      }
      if (!whole) continue;
      known_.push_back({base, 0});
      return true;
    }
    return false;
  }

  ir::AtomTable& atoms_;
  std::vector<Known> known_;
  absl::FunctionRef<bool(AtomId)> fixed_;
  std::vector<AtomId> vars_;    // variables whose values are known
  std::vector<AtomId> solved_;  // atoms whose values are known: variables, floordivs and mods
  std::vector<Digit> digits_;
};

}  // namespace

std::vector<AtomId> Determined(ir::Program& program, std::vector<Known> known,
                               absl::FunctionRef<bool(AtomId)> fixed, AtomId wanted) {
  return Solver(program, std::move(known), fixed).Run(wanted);
}

bool OneToOneUnder(ir::Program& program, NodeId block, NodeId top) {
  const ir::Block& content = program.BlockOf(block);
  if (content.exact) return true;
  std::vector<Known> known;
  for (const ir::BlockIter& iter : content.iters) known.push_back({iter.binding});
  std::vector<AtomId> free;
  for (NodeId loop : program.LoopsAbove(block)) {
    if (program.IsUnder(loop, top)) free.push_back(program.node(loop).var);
  }
  const std::vector<AtomId> determined = Determined(
      program, std::move(known), [&](AtomId var) { return !absl::c_linear_search(free, var); });
  return absl::c_all_of(free, [&](AtomId var) {
    return program.atoms[var].range.extent() == 1 || absl::c_linear_search(determined, var);
  });
}

}  // namespace hone::schedule

#ifndef HONE_COMMON_IR_INDEX_H_
#define HONE_COMMON_IR_INDEX_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace hone::ir {

// Identifies an atom of an AtomTable: a variable, or a floordiv or mod of an index.
using AtomId = int32_t;
inline constexpr AtomId kNoAtom = -1;

struct IndexTerm {
  AtomId atom;
  int64_t coeff;  // never 0
  friend bool operator==(const IndexTerm&, const IndexTerm&) = default;
};

// An affine form Σ coeff·atom + constant. Terms are sorted by atom, so that equal indices compare
// equal. A value type; meaningful only with the AtomTable of its atoms.
class Index {
 public:
  using Terms = absl::InlinedVector<IndexTerm, 4>;

  Index() = default;
  explicit Index(int64_t constant) : constant_(constant) {}
  static Index Of(AtomId atom, int64_t coeff = 1) {
    Index index;
    if (coeff != 0) index.terms_.push_back({atom, coeff});
    return index;
  }

  const Terms& terms() const { return terms_; }
  int64_t constant() const { return constant_; }
  bool IsConstant() const { return terms_.empty(); }
  // The atom if the index is exactly 1·atom, else kNoAtom.
  AtomId SingleAtom() const {
    return constant_ == 0 && terms_.size() == 1 && terms_[0].coeff == 1 ? terms_[0].atom : kNoAtom;
  }
  // The coefficient of an atom; 0 if it does not occur at the top level.
  int64_t CoeffOf(AtomId atom) const;

  Index& operator+=(const Index& other) { return AddScaled(other, 1); }
  Index& operator-=(const Index& other) { return AddScaled(other, -1); }
  Index& operator+=(int64_t c) {
    constant_ += c;
    return *this;
  }
  Index& operator*=(int64_t factor);
  Index& AddScaled(const Index& other, int64_t factor);
  Index& AddTerm(AtomId atom, int64_t coeff);
  friend Index operator+(Index a, const Index& b) { return a += b; }
  friend Index operator-(Index a, const Index& b) { return a -= b; }
  friend Index operator+(Index a, int64_t c) { return a += c; }
  friend Index operator*(Index a, int64_t factor) { return a *= factor; }
  friend bool operator==(const Index&, const Index&) = default;

 private:
  Terms terms_;
  int64_t constant_ = 0;
};

// A closed interval.
struct Range {
  int64_t min = 0;
  int64_t max = 0;
  int64_t extent() const { return max - min + 1; }
  friend bool operator==(const Range&, const Range&) = default;
};

struct Atom {
  enum class Kind : uint8_t { kVar, kFloorDiv, kMod };
  Kind kind = Kind::kVar;
  Range range;       // variable: its domain
  std::string name;  // variable: its name
  Index argument;    // floordiv, mod: the operand
  int64_t divisor = 1;
};

// The variables of a workload or program, and the floordiv and mod terms over them, each stored
// once. Returned indices are simplified: (i·c + r) / (c·d) = i / d and (i·c + r) mod (c·d) = c·(i
// mod d) + r for 0 ≤ r < c; c·(x/c) + x mod c = x; nested divisions are merged. Divisions round
// down; divisors are positive. Copyable; IDs stay valid in a copy.
class AtomTable {
 public:
  // Adds a variable with the domain [0, extent).
  AtomId AddVar(std::string name, int64_t extent);
  void SetExtent(AtomId var, int64_t extent) { atoms_[var].range = {0, extent - 1}; }

  const Atom& operator[](AtomId id) const { return atoms_[id]; }
  int size() const { return static_cast<int>(atoms_.size()); }

  // REQUIRES divisor > 0.
  Index FloorDiv(const Index& index, int64_t divisor);
  Index Mod(const Index& index, int64_t divisor);
  // Returns the floordiv or mod without simplifying it. A printed program must parse back
  // unchanged.
  Index Intern(Atom::Kind kind, const Index& argument, int64_t divisor);

  // Bounds over the domains of the variables. Exact for affine forms without shared variables,
  // otherwise possibly too wide.
  Range RangeOf(const Index& index) const;
  // The same with some variables fixed or restricted: `range` returns the range of a variable.
  template <typename RangeOfVar>
  Range RangeOf(const Index& index, const RangeOfVar& range) const {
    Range total{index.constant(), index.constant()};
    for (const IndexTerm& term : index.terms()) {
      const Atom& atom = atoms_[term.atom];
      const Range r = atom.kind == Atom::Kind::kVar ? range(term.atom)
                                                    : Divided(atom, RangeOf(atom.argument, range));
      total.min += term.coeff * (term.coeff > 0 ? r.min : r.max);
      total.max += term.coeff * (term.coeff > 0 ? r.max : r.min);
    }
    return total;
  }

  // Replaces variables. `replacement` returns the index for a variable, or nullptr to keep it.
  Index Substitute(const Index& index, absl::FunctionRef<const Index*(AtomId)> replacement);
  // The same with the index of each replaced variable.
  Index Substitute(const Index& index, absl::Span<const std::pair<AtomId, Index>> replaced);
  // Replaces variables of `index`.
  void SubstituteIn(Index& index, absl::FunctionRef<const Index*(AtomId)> replacement);
  // Applies c·(x/c) + x mod c = x.
  Index Simplify(Index index) const;

  bool DependsOn(const Index& index, AtomId var) const {
    for (const IndexTerm& term : index.terms()) {
      const Atom& atom = atoms_[term.atom];
      if (atom.kind == Atom::Kind::kVar ? term.atom == var : DependsOn(atom.argument, var))
        return true;
    }
    return false;
  }
  // Calls `visit` for each occurrence of a variable, including those inside floordiv and mod.
  void VisitVars(const Index& index, absl::FunctionRef<void(AtomId)> visit) const;

  // Evaluates the index. REQUIRES values[var] for every variable that occurs.
  int64_t Evaluate(const Index& index, absl::Span<const int64_t> values) const;

  // "2*i0 + i1 % 4 - 1".
  std::string ToString(const Index& index) const;

 private:
  // Returns the range of a floordiv or mod whose operand has this range.
  static Range Divided(const Atom& atom, const Range& argument);

  // Splits index = divisor·quotient + remainder, with the multiples of the divisor in the quotient.
  static void Divide(const Index& index, int64_t divisor, Index& quotient, Index& remainder);

  // The largest proper factor of the divisor such that index = factor·multiple + r, 0 ≤ r < factor;
  // 1 if there is none.
  int64_t SplitOff(const Index& index, int64_t divisor, Index& multiple) const;

  std::vector<Atom> atoms_;
  std::vector<AtomId> composites_;
};

int64_t FloorDivInt(int64_t a, int64_t b);
int64_t FloorModInt(int64_t a, int64_t b);
inline int64_t CeilDivInt(int64_t a, int64_t b) { return -FloorDivInt(-a, b); }

// The extent of a loop, and how it was derived from the decisions of the trace. The derivation lets
// a design space compute the extent for other decisions without a replay.
struct Extent {
  int64_t value = 1;
  int32_t derivation = -1;  // a node of the program's ExtentTable; -1: a constant
};

// The derivations of one program: expressions over decision factors. Append-only. Copyable; IDs
// stay valid in a copy.
class ExtentTable {
 public:
  enum class Kind : uint8_t { kConstant, kFactor, kAdd, kMul, kCeilDiv };
  struct Node {
    Kind kind;
    // kConstant: the value; kFactor: the position in the decision vector; otherwise the left
    // operand.
    int64_t a = 0;
    int64_t b = 0;  // the right operand
  };

  static Extent Constant(int64_t value) { return {value, -1}; }
  // The decision at `position` of the decision vector.
  Extent Factor(int64_t value, int position);
  Extent Add(Extent a, Extent b);
  Extent Mul(Extent a, Extent b);
  Extent CeilDiv(Extent a, Extent b);

  // Returns the extent for other decisions. REQUIRES a decision for every factor.
  int64_t Evaluate(Extent extent, absl::Span<const int64_t> decisions) const;
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  Extent Combine(Kind kind, Extent a, Extent b, int64_t value);
  int64_t NodeOf(Extent extent);
  int64_t EvaluateNode(int64_t node, absl::Span<const int64_t> decisions) const;
  std::vector<Node> nodes_;
};

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_INDEX_H_

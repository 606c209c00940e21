#include "worker/compile/c/c_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_join.h"

namespace hone::codegen {
namespace {

using ir::AtomId;
using ir::Index;
using ir::IndexTerm;

constexpr double kLargestInt = std::numeric_limits<int32_t>::max();

int64_t Absolute(int64_t value) { return value < 0 ? -value : value; }

}  // namespace

CIndexPrinter::CIndexPrinter(const ir::AtomTable& atoms, CPrelude& prelude)
    : atoms_(atoms), prelude_(prelude), names_(atoms.size()) {}

void CIndexPrinter::Name(AtomId var, std::string name) {
  names_[var] = {std::move(name), ++named_, false};
}

double CIndexPrinter::Magnitude(const Index& index) const {
  double magnitude = std::abs(static_cast<double>(index.constant()));
  for (const IndexTerm& term : index.terms()) {
    const ir::Range range = atoms_.RangeOf(Index::Of(term.atom));
    const double largest = std::max(std::abs(static_cast<double>(range.min)),
                                    std::abs(static_cast<double>(range.max)));
    magnitude += std::abs(static_cast<double>(term.coeff)) * largest;
    const ir::Atom& atom = atoms_[term.atom];
    if (atom.kind == ir::Atom::Kind::kVar) continue;
    magnitude = std::max({magnitude, Magnitude(atom.argument), static_cast<double>(atom.divisor)});
  }
  return magnitude;
}

bool CIndexPrinter::IsInt(const Index& index) const { return Magnitude(index) <= kLargestInt; }

absl::string_view CIndexPrinter::TypeOf(int64_t largest) {
  return static_cast<double>(largest) <= kLargestInt ? "int" : "long";
}

int CIndexPrinter::OrderOf(AtomId atom) const {
  int order = std::numeric_limits<int>::max();
  atoms_.VisitVars(Index::Of(atom),
                   [&](AtomId var) { order = std::min(order, names_[var].order); });
  return order;
}

// `wide`: prints it as a long.
CText CIndexPrinter::Atom(AtomId id, bool wide) {
  const ir::Atom& atom = atoms_[id];
  if (atom.kind == ir::Atom::Kind::kVar) {
    names_[id].used = true;
    if (wide) return {absl::StrCat("(long)", names_[id].text), CBinding::kUnary};
    return {names_[id].text};
  }
  const bool is_mod = atom.kind == ir::Atom::Kind::kMod;
  const bool is_int = IsInt(atom.argument) && static_cast<double>(atom.divisor) <= kLargestInt;
  const CText argument = Print(atom.argument);
  CText text;
  if (atoms_.RangeOf(atom.argument).min >= 0) {
    text = {absl::StrCat(argument.Within(CBinding::kUnary), is_mod ? " % " : " / ", atom.divisor),
            CBinding::kProduct};
  } else {
    const std::string function =
        prelude_.Use(is_mod ? "floor_mod" : "floor_div", is_int ? "int" : "long");
    text = {absl::StrCat(function, "(", argument.text, ", ", atom.divisor, ")")};
  }
  if (!wide || !is_int) return text;
  return {absl::StrCat("(long)", text.Within(CBinding::kPrimary)), CBinding::kUnary};
}

CText CIndexPrinter::Print(const Index& index, absl::Span<const int64_t> strides) {
  return Sum({index.terms().begin(), index.terms().end()}, index.constant(), strides,
             !IsInt(index));
}

// Puts a positive item first, if there is one, and the constant last.
CText CIndexPrinter::Join(std::vector<Item> items, int64_t constant, CBinding single) {
  const auto positive =
      std::find_if(items.begin(), items.end(), [](const Item& item) { return !item.negative; });
  if (positive != items.end()) std::rotate(items.begin(), positive, positive + 1);
  std::string text;
  if (items.empty() || (items[0].negative && constant > 0)) {
    text = absl::StrCat(std::exchange(constant, 0));
    if (items.empty()) return {text, text[0] == '-' ? CBinding::kUnary : CBinding::kPrimary};
  }
  const bool one = items.size() == 1 && constant == 0 && text.empty() && !items[0].negative;
  for (const Item& item : items) {
    absl::StrAppend(&text,
                    text.empty()    ? item.negative ? "-" : ""
                    : item.negative ? " - "
                                    : " + ",
                    item.text);
  }
  if (constant != 0) {
    absl::StrAppend(
        &text, constant < 0 ? " - " : " + ",
        constant < 0 ? 0 - static_cast<uint64_t>(constant) : static_cast<uint64_t>(constant));
  }
  return {text, one ? single : CBinding::kSum};
}

CText CIndexPrinter::Sum(std::vector<IndexTerm> terms, int64_t constant,
                         absl::Span<const int64_t> strides, bool wide) {
  std::vector<Item> items;
  CBinding single = CBinding::kProduct;
  for (const int64_t stride : strides) {
    if (stride <= 1) continue;
    std::vector<IndexTerm> inside, rest;
    bool all_negative = true;
    for (const IndexTerm& term : terms) {
      if (term.coeff % stride != 0) {
        rest.push_back(term);
        continue;
      }
      inside.push_back({term.atom, term.coeff / stride});
      all_negative &= term.coeff < 0;
    }
    int64_t quotient = constant / stride;
    if (inside.empty() || inside.size() + (quotient != 0 ? 1 : 0) < 2) continue;
    all_negative &= quotient <= 0;
    if (all_negative) {
      for (IndexTerm& term : inside) term.coeff = -term.coeff;
    }
    const CText sum = Sum(std::move(inside), all_negative ? -quotient : quotient, {}, wide);
    items.push_back({all_negative, absl::StrCat("(", sum.text, ") * ", stride)});
    constant %= stride;
    terms = std::move(rest);
  }
  std::sort(terms.begin(), terms.end(), [this](const IndexTerm& a, const IndexTerm& b) {
    if (Absolute(a.coeff) != Absolute(b.coeff)) return Absolute(a.coeff) > Absolute(b.coeff);
    return OrderOf(a.atom) < OrderOf(b.atom);
  });
  for (const IndexTerm& term : terms) {
    const CText atom = Atom(term.atom, wide);
    const int64_t factor = Absolute(term.coeff);
    if (factor == 1) {
      single = atom.binding;
      items.push_back({term.coeff < 0, atom.Within(CBinding::kProduct)});
    } else {
      items.push_back({term.coeff < 0, absl::StrCat(atom.Within(CBinding::kUnary), " * ", factor)});
    }
  }
  return Join(std::move(items), constant, single);
}

CText CIndexPrinter::Print(absl::Span<const ir::Condition> conditions) {
  // Conditions on the same sum of terms are one interval: compilers warn of contradictions.
  struct Interval {
    Index sum;  // without a constant
    int64_t least, end;
  };
  std::vector<Interval> intervals;
  for (const ir::Condition& condition : conditions) {
    // Rewrites 0 <= sum + constant < extent with the constant on the other side and a positive term
    // first.
    const int64_t constant = condition.index.constant();
    Interval interval{condition.index + -constant, -constant, condition.extent - constant};
    if (!interval.sum.terms().empty() && interval.sum.terms()[0].coeff < 0) {
      interval = {interval.sum * -1, 1 - interval.end, 1 - interval.least};
    }
    const auto same = std::ranges::find(intervals, interval.sum, &Interval::sum);
    if (same == intervals.end()) {
      intervals.push_back(std::move(interval));
    } else {
      same->least = std::max(same->least, interval.least);
      same->end = std::min(same->end, interval.end);
    }
  }
  std::vector<std::string> parts;
  for (const Interval& interval : intervals) {
    const ir::Range range = atoms_.RangeOf(interval.sum);
    const int64_t least = std::max(interval.least, range.min);
    const int64_t end = std::min(interval.end, range.max + 1);
    if (least >= end) return {kNever};
    const bool may_be_less = least > range.min, may_be_more = end <= range.max;
    if (!may_be_less && !may_be_more) continue;
    const std::string sum = Print(interval.sum).text;
    if (least + 1 == end) {
      parts.push_back(absl::StrCat(sum, " == ", least));
      continue;
    }
    if (may_be_less) parts.push_back(absl::StrCat(sum, " >= ", least));
    if (may_be_more) parts.push_back(absl::StrCat(sum, " < ", end));
  }
  return {absl::StrJoin(parts, " && "), parts.size() > 1 ? CBinding::kAnd : CBinding::kComparison};
}

}  // namespace hone::codegen

#include "common/ir/index_parser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/cases.h"
#include "common/ir/foreign_comparison.h"

namespace hone::ir {
namespace {

bool IsComparison(const Token& token) {
  return token.kind == Token::kSymbol &&
         (token.text == "<" || token.text == "<=" || token.text == "==");
}

}  // namespace

absl::Status IndexParser::CountOperator(const Token& token) {
  if (++operators_ <= options_.max_operators) return absl::OkStatus();
  return TokenReader::Error(token,
                            absl::StrCat("more than ", options_.max_operators, " operators"));
}

// Rejects indices that could overflow: coefficients times domains must stay far below 64 bits.
absl::Status IndexParser::CheckSize(const Token& token, const Index& index, int64_t factor) const {
  double size = std::abs(static_cast<double>(index.constant()));
  for (const IndexTerm& term : index.terms()) {
    const Range range = atoms_.RangeOf(Index::Of(term.atom));
    size += std::abs(static_cast<double>(term.coeff)) *
            static_cast<double>(std::max<int64_t>({1, std::abs(range.min), std::abs(range.max)}));
  }
  if (size * std::abs(static_cast<double>(factor)) <= static_cast<double>(options_.max_index))
    return absl::OkStatus();
  return TokenReader::Error(token, absl::StrCat("this index can exceed ", options_.max_index));
}

// index := term (('+' | '-') term)*
absl::StatusOr<Index> IndexParser::Sum(int depth) {
  Index sum;
  std::vector<AtomId> order;
  int sign = reader_.Accept("-") ? -1 : 1;
  while (true) {
    const Token token = reader_.Peek();
    HONE_RETURN_IF_ERROR(CountOperator(token));
    HONE_ASSIGN_OR_RETURN(const Index term, Term(depth));
    sum.AddScaled(term, sign);
    HONE_RETURN_IF_ERROR(CheckSize(token, sum, 1));
    if (options_.as_written) {
      for (const IndexTerm& part : term.terms()) order.push_back(part.atom);
    }
    if (reader_.Accept("+")) {
      sign = 1;
    } else if (reader_.Accept("-")) {
      sign = -1;
    } else if (!options_.as_written) {
      return atoms_.Simplify(std::move(sum));
    } else {
      sums_.push_back(std::move(order));
      return sum;
    }
  }
}

absl::StatusOr<Index> IndexParser::Factor(int depth) {
  const Token token = reader_.Peek();
  if (depth > kMaxExprDepth)
    return TokenReader::Error(token, absl::StrCat("nested deeper than ", kMaxExprDepth));
  if (reader_.Accept("(")) {
    HONE_ASSIGN_OR_RETURN(Index inner, Sum(depth + 1));
    HONE_RETURN_IF_ERROR(reader_.Expect(")"));
    return inner;
  }
  if (token.kind == Token::kNumber) {
    HONE_ASSIGN_OR_RETURN(const int64_t value, reader_.Integer("a number"));
    const int64_t limit = options_.as_written ? options_.max_index : kMaxElements;
    if (value <= limit) return Index(value);
    return TokenReader::Error(token,
                              absl::StrCat("index constant ", value, " is larger than ", limit));
  }
  HONE_ASSIGN_OR_RETURN(const std::string name, reader_.Name("an axis or a number"));
  const AtomId axis = names_.FindAxis(name);
  if (axis == kNoAtom) {
    const bool load = reader_.Peek().text == "[";
    if (name == "at" && reader_.Peek().text == "(") return TokenReader::Error(token, kAtIsWhole);
    return TokenReader::Error(
        token,
        load ? absl::StrCat("an index is affine in the axes; write at(…) for an index that reads '",
                            name, "'")
             : absl::StrCat("unknown axis '", name, "'"));
  }
  return Index::Of(axis);
}

absl::StatusOr<Index> IndexParser::Term(int depth) {
  HONE_ASSIGN_OR_RETURN(Index value, Factor(depth));
  while (true) {
    const Token token = reader_.Peek();
    const std::string op = token.text;
    if (token.kind != Token::kSymbol || (op != "*" && op != "/" && op != "%")) return value;
    reader_.Next();
    HONE_RETURN_IF_ERROR(CountOperator(token));
    HONE_ASSIGN_OR_RETURN(Index factor, Factor(depth));
    if (op == "*") {
      if (value.IsConstant()) std::swap(value, factor);
      if (!factor.IsConstant())
        return TokenReader::Error(token, "a product of two axes is not affine");
      HONE_RETURN_IF_ERROR(CheckSize(token, value, factor.constant()));
      value *= factor.constant();
      continue;
    }
    if (!factor.IsConstant() || factor.constant() < 1) {
      return TokenReader::Error(token, "the divisor must be a positive number");
    }
    if (options_.as_written) {
      value = atoms_.Intern(op == "/" ? Atom::Kind::kFloorDiv : Atom::Kind::kMod, value,
                            factor.constant());
    } else {
      value = op == "/" ? atoms_.FloorDiv(value, factor.constant())
                        : atoms_.Mod(value, factor.constant());
    }
  }
}

absl::StatusOr<IndexList> IndexParser::ParseIndices(const Token& token, const std::string& name,
                                                    const ExprNames::Element& element) {
  IndexList indices;
  if (!element.shape->empty() || !reader_.Accept("]")) {
    do {
      HONE_ASSIGN_OR_RETURN(Index index, Sum(0));
      indices.push_back(std::move(index));
    } while (reader_.Accept(","));
    HONE_RETURN_IF_ERROR(reader_.Expect("]"));
  }
  HONE_RETURN_IF_ERROR(CheckRank(token, name, element, indices));
  return indices;
}

absl::Status IndexParser::CheckRank(const Token& token, const std::string& name,
                                    const ExprNames::Element& element, const IndexList& indices) {
  if (indices.size() == element.shape->size()) return absl::OkStatus();
  return TokenReader::Error(
      token, absl::StrCat(name, " is ", TypeText(element.dtype, *element.shape), ", but has ",
                          indices.size(), indices.size() == 1 ? " index here" : " indices here"));
}

absl::StatusOr<Condition> IndexParser::ParseCondition() {
  const Token token = reader_.Peek();
  HONE_ASSIGN_OR_RETURN(const int64_t zero, reader_.Integer("'0 <= … < extent'"));
  if (zero != 0) return TokenReader::Error(token, "a guard has the form 0 <= index < extent");
  HONE_RETURN_IF_ERROR(reader_.Expect("<="));
  Condition condition;
  HONE_ASSIGN_OR_RETURN(condition.index, Sum(0));
  HONE_RETURN_IF_ERROR(reader_.Expect("<"));
  HONE_ASSIGN_OR_RETURN(condition.extent,
                        reader_.Extent(options_.as_written ? options_.max_index : kMaxElements));
  return condition;
}

absl::StatusOr<Condition> IndexParser::ParseGuard() {
  const Token token = reader_.Peek();
  const size_t begin = reader_.position();
  HONE_ASSIGN_OR_RETURN(const Index left, Sum(0));
  const Token comparison = reader_.Peek();
  const size_t symbol = reader_.position();
  if (const ForeignComparison* foreign = FindForeignComparison(comparison)) {
    reader_.Next();
    HONE_RETURN_IF_ERROR(Sum(0).status());
    return MisspelledComparison(reader_, comparison, foreign->guard, begin, symbol);
  }
  if (!IsComparison(comparison)) return reader_.Unexpected("'<', '<=' or '=='");
  reader_.Next();
  const size_t middle = reader_.position();
  HONE_ASSIGN_OR_RETURN(Index right, Sum(0));
  if (!IsComparison(reader_.Peek())) return Compare(token, comparison.text, left, right);
  const bool from_zero = comparison.text == "<=" && left == Index(0);
  const Token second = reader_.Next();
  if (from_zero && second.text == "<" && reader_.Peek().kind == Token::kNumber) {
    HONE_ASSIGN_OR_RETURN(const int64_t extent, reader_.Extent(kMaxElements));
    return Condition{std::move(right), extent};
  }
  const size_t last = reader_.position();
  HONE_RETURN_IF_ERROR(Sum(0).status());
  return TokenReader::Error(
      token,
      absl::StrCat("a guard has the form 0 <= index < extent or compares two indices; "
                   "write two guards: ",
                   reader_.Text(begin, last - 1), ", ", reader_.Text(middle, reader_.position())));
}

// Converts left < right, left <= right or left == right to 0 <= index < extent, with the smallest
// extent that excludes no point.
absl::StatusOr<Condition> IndexParser::Compare(const Token& token, absl::string_view symbol,
                                               const Index& left, const Index& right) {
  Index index = atoms_.Simplify(right - left);
  if (symbol == "<") index += -1;
  HONE_RETURN_IF_ERROR(CheckSize(token, index, 1));
  const int64_t extent = symbol == "==" ? 1 : std::max<int64_t>(1, atoms_.RangeOf(index).max + 1);
  if (extent <= kMaxElements) return Condition{std::move(index), extent};
  return TokenReader::Error(
      token, absl::StrCat("the sides of this comparison can differ by more than ", kMaxElements));
}

// The indices that a guard requires to be at least 0.
absl::StatusOr<IndexList> IndexParser::ParseNonNegative() {
  if (!options_.as_written) {
    HONE_ASSIGN_OR_RETURN(const Condition guard, ParseGuard());
    return NonNegative(atoms_, {guard});
  }
  HONE_RETURN_IF_ERROR(reader_.Expect("0"));
  HONE_RETURN_IF_ERROR(reader_.Expect("<="));
  IndexList indices;
  HONE_ASSIGN_OR_RETURN(indices.emplace_back(), Sum(0));
  if (reader_.Accept("<")) {
    HONE_ASSIGN_OR_RETURN(const int64_t extent, reader_.Extent(options_.max_index));
    indices.push_back(Index(extent - 1) - indices[0]);
  }
  return indices;
}

}  // namespace hone::ir

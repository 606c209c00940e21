#include "common/ir/expr_parser.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/cases.h"
#include "common/ir/expr.h"
#include "common/ir/token_reader.h"
#include "common/ir/vocabulary.h"

namespace hone::ir {
namespace {

bool IsComparison(const Token& token) {
  return token.kind == Token::kSymbol &&
         (token.text == "<" || token.text == "<=" || token.text == "==");
}

// Negates a constant. Negating a literal 0 may have to give a float's −0, so the result is real.
Scalar Negated(const Expr& constant) {
  if (!constant.value.is_whole() || constant.value == 0) return -constant.value.real();
  return static_cast<int64_t>(-static_cast<uint64_t>(constant.value.whole()));
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

// Parses "i, at(A[j])]" after the opening bracket of an element that is read.
absl::StatusOr<ExprId> ExprParser::Element(const Token& token, const std::string& name, int depth) {
  const ExprNames::Element element = names_.Find(name);
  if (element.shape == nullptr) {
    return TokenReader::Error(token,
                              absl::StrCat("unknown tensor '", name, "'", names_.WhyUnknown(name)));
  }
  IndexList indices;
  int gathered = -1;
  ExprId at = kNoExpr;
  if (!element.shape->empty() || !reader_.Accept("]")) {
    do {
      Index& index = indices.emplace_back();
      const Token index_token = reader_.Peek();
      if (index_token.text != "at" || reader_.Peek(1).text != "(") {
        HONE_ASSIGN_OR_RETURN(index, indices_.ParseIndex());
        continue;
      }
      if (gathered >= 0) {
        return TokenReader::Error(index_token, "only one index of an element may be computed");
      }
      gathered = static_cast<int>(indices.size()) - 1;
      reader_.Next();
      reader_.Next();
      HONE_ASSIGN_OR_RETURN(at, Expression(0, depth + 1));
      HONE_RETURN_IF_ERROR(reader_.Expect(")"));
      HONE_ASSIGN_OR_RETURN(at, Typed(index_token, at, DType::kI64));
      if (const DType dtype = pool_[at].dtype; dtype != DType::kI32 && dtype != DType::kI64) {
        return TokenReader::Error(
            index_token, absl::StrCat("a computed index is i32 or i64, not ", DTypeName(dtype),
                                      "; cast it, as in at(i32(x))"));
      }
      const Token next = reader_.Peek();
      if (next.text != "," && next.text != "]")
        return TokenReader::Error(next, IndexParser::kAtIsWhole);
    } while (reader_.Accept(","));
    HONE_RETURN_IF_ERROR(reader_.Expect("]"));
  }
  HONE_RETURN_IF_ERROR(indices_.CheckRank(token, name, element, indices));
  if (gathered < 0) return pool_.Load(element.id, element.dtype, std::move(indices));
  return pool_.Gather(element.id, element.dtype, std::move(indices), gathered, at);
}

absl::StatusOr<ExprId> ExprParser::ParseExpr(DType dtype) {
  const Token token = reader_.Peek();
  HONE_ASSIGN_OR_RETURN(const ExprId value, Expression(0, 0));
  return Typed(token, value, dtype);
}

absl::StatusOr<ExprId> ExprParser::Typed(const Token& token, ExprId id, DType dtype) {
  if (!IsLiteral(id)) return id;
  const Expr literal = pool_[id];
  // A number of 2^53 or more with a fraction or exponent may already have been rounded.
  const bool exact = literal.value.is_whole() || std::abs(literal.value.real()) < 0x1p53;
  if (!IsFloat(dtype) && (!exact || CastTo(dtype, literal.value) != literal.value)) {
    return TokenReader::Error(token,
                              absl::StrCat("the number ", PrintConst(literal.dtype, literal.value),
                                           " is not a value of ", DTypeName(dtype)));
  }
  return pool_.Const(dtype, literal.value);
}

ExprId ExprParser::Literal(Scalar value) {
  const ExprId id = pool_.Const(value.is_whole() ? DType::kI64 : DType::kF64, value);
  literals_.insert(id);
  return id;
}

// Gives literals the dtype of the other operand, or f32 if both are literals.
absl::Status ExprParser::Unify(const Token& token, ExprId& a, ExprId& b) {
  const DType dtype = !IsLiteral(a) ? pool_[a].dtype : !IsLiteral(b) ? pool_[b].dtype : DType::kF32;
  HONE_ASSIGN_OR_RETURN(a, Typed(token, a, dtype));
  HONE_ASSIGN_OR_RETURN(b, Typed(token, b, dtype));
  if (pool_[a].dtype == pool_[b].dtype) return absl::OkStatus();
  return TokenReader::Error(
      token, absl::StrCat("operands have dtypes ", DTypeName(pool_[a].dtype), " and ",
                          DTypeName(pool_[b].dtype), "; cast one, as in f32(x)"));
}

// Checks that an operation accepts the operand's dtype.
absl::Status ExprParser::CheckOperand(const Token& token, Op op, ExprId operand) const {
  const DType dtype = pool_[operand].dtype;
  const Function::Takes takes = FunctionOf(op).takes;
  const bool accepted = takes == Function::Takes::kBools     ? dtype == DType::kBool
                        : takes == Function::Takes::kFloats  ? IsFloat(dtype)
                        : takes == Function::Takes::kNumbers ? dtype != DType::kBool
                        : takes == Function::Takes::kIntegers
                            ? !IsFloat(dtype) && dtype != DType::kBool
                            : true;
  if (accepted) return absl::OkStatus();
  return TokenReader::Error(token, absl::StrCat("'", InfoOf(op).name, "' takes ", TakesText(takes),
                                                ", not ", DTypeName(dtype)));
}

absl::StatusOr<ExprId> ExprParser::Expression(int min_precedence, int depth) {
  const auto infix = [&]() -> std::optional<Op> {
    const Token& token = reader_.Peek();
    if (token.kind != Token::kSymbol && token.kind != Token::kName) return std::nullopt;
    for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kShiftLeft, Op::kShiftRight,
                        Op::kLess, Op::kLessEqual, Op::kEqual, Op::kAnd, Op::kOr}) {
      if (InfoOf(op).name == token.text && InfoOf(op).precedence >= min_precedence) return op;
    }
    return std::nullopt;
  };
  const size_t begin = reader_.position();
  HONE_ASSIGN_OR_RETURN(ExprId left, Primary(depth));
  while (const std::optional<Op> op = infix()) {
    const Token token = reader_.Next();
    HONE_RETURN_IF_ERROR(indices_.CountOperator(token));
    HONE_ASSIGN_OR_RETURN(ExprId right, Expression(InfoOf(*op).precedence + 1, depth + 1));
    HONE_RETURN_IF_ERROR(Unify(token, left, right));
    HONE_RETURN_IF_ERROR(CheckOperand(token, *op, left));
    left = pool_.Binary(*op, left, right);
  }
  if (reader_.Peek().text == "%") {
    return TokenReader::Error(reader_.Peek(),
                              "'%' takes indices only; write a - floor(a / b) * b, or of integers "
                              "a - a / b * b");
  }
  const int binding = InfoOf(Op::kLess).precedence;
  const ForeignComparison* foreign = FindForeignComparison(reader_.Peek());
  if (foreign == nullptr || min_precedence > binding) return left;
  const size_t at = reader_.position();
  const Token symbol = reader_.Next();
  HONE_RETURN_IF_ERROR(Expression(binding + 1, depth + 1).status());
  return MisspelledComparison(reader_, symbol, foreign->value, begin, at);
}

absl::StatusOr<ExprId> ExprParser::Guarded(ExprId value, int depth) {
  IndexList non_negative;
  do {
    const Token token = reader_.Peek();
    HONE_ASSIGN_OR_RETURN(const IndexList indices, indices_.ParseNonNegative());
    non_negative.insert(non_negative.end(), indices.begin(), indices.end());
    if (non_negative.size() > 2 * kMaxGuards) {
      return TokenReader::Error(token, absl::StrCat("more than ", kMaxGuards, " guards"));
    }
  } while (reader_.Accept(","));
  const Token token = reader_.Peek();
  if (token.text == "and") return TokenReader::Error(token, "guards are separated by ','");
  HONE_RETURN_IF_ERROR(reader_.Expect("else"));
  HONE_ASSIGN_OR_RETURN(ExprId otherwise, Expression(0, depth + 1));
  HONE_RETURN_IF_ERROR(reader_.Expect(")"));
  HONE_RETURN_IF_ERROR(Unify(token, value, otherwise));
  return pool_.Where(std::move(non_negative), value, otherwise);
}

absl::StatusOr<ExprId> ExprParser::Primary(int depth) {
  const Token token = reader_.Peek();
  if (depth > kMaxExprDepth)
    return TokenReader::Error(token, absl::StrCat("nested deeper than ", kMaxExprDepth));
  if (reader_.Accept("(")) {
    HONE_ASSIGN_OR_RETURN(const ExprId inner, Expression(0, depth + 1));
    if (reader_.Accept("where")) return Guarded(inner, depth);
    if (reader_.Peek().text == "if") {
      return TokenReader::Error(reader_.Peek(),
                                "write select(condition, a, b), or (a where 0 <= i < 8 else b)");
    }
    HONE_RETURN_IF_ERROR(reader_.Expect(")"));
    return inner;
  }
  if (reader_.Accept("-")) {
    // The smallest i64 has no positive counterpart.
    int64_t whole = 0;
    if (absl::SimpleAtoi(absl::StrCat("-", reader_.Peek().text), &whole) && whole != 0) {
      reader_.Next();
      return Literal(whole);
    }
    HONE_ASSIGN_OR_RETURN(const ExprId inner, Primary(depth + 1));
    if (IsLiteral(inner)) return Literal(Negated(pool_[inner]));
    HONE_RETURN_IF_ERROR(CheckOperand(token, Op::kNeg, inner));
    if (pool_[inner].op == Op::kConst) {
      return pool_.Const(pool_[inner].dtype, Negated(pool_[inner]));
    }
    return pool_.Unary(Op::kNeg, inner);
  }
  if (token.kind == Token::kNumber ||
      ((token.text == "inf" || token.text == "nan") && reader_.Peek(1).text != "[")) {
    reader_.Next();
    if (int64_t whole = 0; absl::SimpleAtoi(token.text, &whole)) return Literal(whole);
    double value = 0;
    if (!absl::SimpleAtod(token.text, &value)) {
      return TokenReader::Error(token, absl::StrCat("'", token.text, "' is not a number"));
    }
    if (token.kind == Token::kNumber && !std::isfinite(value)) {
      return TokenReader::Error(
          token,
          absl::StrCat("'", token.text, "' is larger than any f64; write inf if that is meant"));
    }
    return Literal(value);
  }
  HONE_ASSIGN_OR_RETURN(const std::string name, reader_.Name("a tensor, a function or a number"));
  if (reader_.Accept("[")) {
    return Element(token, name, depth);
  }
  if (!reader_.Accept("(")) {
    if (const Function* const function = FindFunction(name); function != nullptr) {
      return TokenReader::Error(
          token, absl::StrCat("'", name, "' is a function; write ", function->usage));
    }
    const ExprNames::Element tensor = names_.Find(name);
    const std::string instead =
        names_.FindAxis(name) != kNoAtom ? absl::StrCat("; write index(", name, ") for the axis")
        : tensor.shape != nullptr
            ? absl::StrCat("; ", name, " is ", TypeText(tensor.dtype, *tensor.shape),
                           ", and its indices are missing")
            : "";
    return TokenReader::Error(token, absl::StrCat("'", name,
                                                  "' is neither a tensor with indices nor a "
                                                  "function",
                                                  instead));
  }
  return Call(token, name, depth);
}

// The error for a name before "(" that is not a function, or for a reducer inside an expression.
absl::Status ExprParser::UnknownFunction(const Token& token, const std::string& name,
                                         bool has_axes) const {
  const Reducer reducer = ReducerFromName(name);
  if (reducer == Reducer::kNone) {
    return TokenReader::Error(
        token, has_axes ? absl::StrCat("unknown reducer '", name, "'", KnownReducers(name))
                        : absl::StrCat("unknown function '", name, "'", KnownFunctions(name)));
  }
  return TokenReader::Error(
      token,
      has_axes
          ? absl::StrCat("a reduction must be the whole value of its stage; compute this ", name,
                         " in an earlier stage, and read its tensor here")
          : absl::StrCat("'", name, "' reduces over axes; name them, as in ", name, "(k: 8) A[k]"));
}

absl::StatusOr<ExprId> ExprParser::Call(const Token& token, const std::string& name, int depth) {
  const auto dtype = DTypeFromName(name);
  const Function* const function = FindFunction(name);
  const bool has_axes = reader_.Peek().kind == Token::kName && reader_.Peek(1).text == ":";
  if ((function == nullptr && !dtype.ok()) || has_axes) {
    return UnknownFunction(token, name, has_axes);
  }
  const Op op = function == nullptr ? Op::kCast : function->op;
  if (op == Op::kIndex) {
    HONE_ASSIGN_OR_RETURN(Index index, indices_.ParseIndex());
    HONE_RETURN_IF_ERROR(reader_.Expect(")"));
    return pool_.OfIndex(std::move(index));
  }
  absl::InlinedVector<ExprId, 3> operands;
  do {
    HONE_ASSIGN_OR_RETURN(operands.emplace_back(), Expression(0, depth + 1));
  } while (reader_.Accept(","));
  HONE_RETURN_IF_ERROR(reader_.Expect(")"));
  if (const auto count = static_cast<size_t>(InfoOf(op).operands); operands.size() != count) {
    return TokenReader::Error(
        token, absl::StrCat(name, " takes ", count, " operand", count == 1 ? "" : "s", ", not ",
                            operands.size(), ", as in ", FunctionOf(op).usage));
  }
  if (op == Op::kCast) {
    if (IsPacked(*dtype)) {
      return TokenReader::Error(token, absl::StrCat("only inputs are of type ", name, "; use ",
                                                    DTypeName(LoadedAs(*dtype))));
    }
    HONE_ASSIGN_OR_RETURN(const ExprId operand, Typed(token, operands[0], *dtype));
    return pool_.Cast(*dtype, operand);
  }
  if (op == Op::kSelect) {
    if (pool_[operands[0]].dtype != DType::kBool)
      return TokenReader::Error(
          token, "select's first operand must be a condition of type bool, such as a < b");
    HONE_RETURN_IF_ERROR(Unify(token, operands[1], operands[2]));
    return pool_.Select(operands[0], operands[1], operands[2]);
  }
  if (operands.size() == 2) {
    HONE_RETURN_IF_ERROR(Unify(token, operands[0], operands[1]));
    HONE_RETURN_IF_ERROR(CheckOperand(token, op, operands[0]));
    return pool_.Binary(op, operands[0], operands[1]);
  }
  HONE_ASSIGN_OR_RETURN(const ExprId operand, Typed(token, operands[0], DType::kF32));
  HONE_RETURN_IF_ERROR(CheckOperand(token, op, operand));
  return pool_.Unary(op, operand);
}

}  // namespace hone::ir

#include "common/ir/expr_parser.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/expr_printer.h"

namespace hone::ir {
namespace {

// Negates a constant. Negating a literal 0 may have to give a float's −0, so the result is real.
Scalar Negated(const Expr& constant) {
  if (!constant.value.is_whole() || constant.value == 0) return -constant.value.real();
  return static_cast<int64_t>(-static_cast<uint64_t>(constant.value.whole()));
}

}  // namespace

absl::Status ExprParser::CountOperator(const Token& token) {
  if (++operators_ <= options_.max_operators) return absl::OkStatus();
  return TokenReader::Error(token,
                            absl::StrCat("more than ", options_.max_operators, " operators"));
}

// Rejects indices that could overflow: coefficients times domains must stay far below 64 bits.
absl::Status ExprParser::CheckSize(const Token& token, const Index& index, int64_t factor) const {
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
absl::StatusOr<Index> ExprParser::IndexSum(int depth) {
  Index sum;
  std::vector<AtomId> order;
  int sign = reader_.Accept("-") ? -1 : 1;
  while (true) {
    const Token token = reader_.Peek();
    HONE_RETURN_IF_ERROR(CountOperator(token));
    HONE_ASSIGN_OR_RETURN(const Index term, IndexTermText(depth));
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

absl::StatusOr<Index> ExprParser::IndexFactor(int depth) {
  const Token token = reader_.Peek();
  if (depth > kMaxExprDepth)
    return TokenReader::Error(token, absl::StrCat("nested deeper than ", kMaxExprDepth));
  if (reader_.Accept("(")) {
    HONE_ASSIGN_OR_RETURN(Index inner, IndexSum(depth + 1));
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
    return TokenReader::Error(
        token, load ? absl::StrCat("an index is affine in the axes; it cannot read '", name, "'")
                    : absl::StrCat("unknown axis '", name, "'"));
  }
  return Index::Of(axis);
}

absl::StatusOr<Index> ExprParser::IndexTermText(int depth) {
  HONE_ASSIGN_OR_RETURN(Index value, IndexFactor(depth));
  while (true) {
    const Token token = reader_.Peek();
    const std::string op = token.text;
    if (token.kind != Token::kSymbol || (op != "*" && op != "/" && op != "%")) return value;
    reader_.Next();
    HONE_RETURN_IF_ERROR(CountOperator(token));
    HONE_ASSIGN_OR_RETURN(Index factor, IndexFactor(depth));
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

absl::StatusOr<IndexList> ExprParser::ParseIndices(const Token& token, const std::string& name,
                                                   const ExprNames::Element& element) {
  IndexList indices;
  if (!element.shape->empty() || !reader_.Accept("]")) {
    do {
      HONE_ASSIGN_OR_RETURN(Index index, IndexSum(0));
      indices.push_back(std::move(index));
    } while (reader_.Accept(","));
    HONE_RETURN_IF_ERROR(reader_.Expect("]"));
  }
  if (indices.size() == element.shape->size()) return indices;
  return TokenReader::Error(
      token, absl::StrCat(name, " is ", TypeText(element.dtype, *element.shape), ", but has ",
                          indices.size(), " indices here"));
}

absl::StatusOr<Condition> ExprParser::ParseCondition() {
  const Token token = reader_.Peek();
  HONE_ASSIGN_OR_RETURN(const int64_t zero, reader_.Integer("'0 <= … < extent'"));
  if (zero != 0) return TokenReader::Error(token, "a guard has the form 0 <= index < extent");
  HONE_RETURN_IF_ERROR(reader_.Expect("<="));
  Condition condition;
  HONE_ASSIGN_OR_RETURN(condition.index, IndexSum(0));
  HONE_RETURN_IF_ERROR(reader_.Expect("<"));
  HONE_ASSIGN_OR_RETURN(condition.extent,
                        reader_.Extent(options_.as_written ? options_.max_index : kMaxElements));
  return condition;
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
  const bool logical = op == Op::kAnd || op == Op::kOr || op == Op::kNot;
  const bool real = (op >= Op::kExp && op <= Op::kSigmoid) || op == Op::kNormalCdf;
  const auto refuse = [&](absl::string_view takes) {
    return TokenReader::Error(
        token, absl::StrCat("'", InfoOf(op).name, "' takes ", takes, ", not ", DTypeName(dtype)));
  };
  if (logical && dtype != DType::kBool) return refuse("bool");
  if (real && !IsFloat(dtype)) return refuse("a float type");
  if (!logical && !real && op != Op::kEqual && dtype == DType::kBool) return refuse("numbers");
  return absl::OkStatus();
}

absl::StatusOr<ExprId> ExprParser::Expression(int min_precedence, int depth) {
  const auto infix = [&]() -> std::optional<Op> {
    const Token& token = reader_.Peek();
    if (token.kind != Token::kSymbol && token.kind != Token::kName) return std::nullopt;
    for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kLess, Op::kLessEqual,
                        Op::kEqual, Op::kAnd, Op::kOr}) {
      if (InfoOf(op).name == token.text && InfoOf(op).precedence >= min_precedence) return op;
    }
    return std::nullopt;
  };
  HONE_ASSIGN_OR_RETURN(ExprId left, Primary(depth));
  while (const std::optional<Op> op = infix()) {
    const Token token = reader_.Next();
    HONE_RETURN_IF_ERROR(CountOperator(token));
    HONE_ASSIGN_OR_RETURN(ExprId right, Expression(InfoOf(*op).precedence + 1, depth + 1));
    HONE_RETURN_IF_ERROR(Unify(token, left, right));
    HONE_RETURN_IF_ERROR(CheckOperand(token, *op, left));
    left = pool_.Binary(*op, left, right);
  }
  return left;
}

absl::StatusOr<ExprId> ExprParser::Primary(int depth) {
  const Token token = reader_.Peek();
  if (depth > kMaxExprDepth)
    return TokenReader::Error(token, absl::StrCat("nested deeper than ", kMaxExprDepth));
  if (reader_.Accept("(")) {
    HONE_ASSIGN_OR_RETURN(const ExprId inner, Expression(0, depth + 1));
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
    const ExprNames::Element element = names_.Find(name);
    if (element.shape == nullptr)
      return TokenReader::Error(
          token, absl::StrCat("unknown tensor '", name, "'", names_.WhyUnknown(name)));
    HONE_ASSIGN_OR_RETURN(IndexList indices, ParseIndices(token, name, element));
    return pool_.Load(element.id, element.dtype, std::move(indices));
  }
  if (!reader_.Accept("(")) {
    return TokenReader::Error(
        token, absl::StrCat("'", name, "' is neither a tensor with indices nor a function"));
  }
  return Call(token, name, depth);
}

absl::StatusOr<ExprId> ExprParser::Call(const Token& token, const std::string& name, int depth) {
  if (name == "index") {
    HONE_ASSIGN_OR_RETURN(Index index, IndexSum(0));
    HONE_RETURN_IF_ERROR(reader_.Expect(")"));
    return pool_.OfIndex(std::move(index));
  }
  std::vector<ExprId> operands;
  do {
    HONE_ASSIGN_OR_RETURN(operands.emplace_back(), Expression(0, depth + 1));
  } while (reader_.Accept(","));
  HONE_RETURN_IF_ERROR(reader_.Expect(")"));
  const auto dtype = DTypeFromName(name);
  const auto expect_operands = [&](size_t count) {
    return operands.size() == count
               ? absl::OkStatus()
               : TokenReader::Error(token, absl::StrCat(name, " takes ", count, " operands, not ",
                                                        operands.size()));
  };
  if (dtype.ok()) {
    HONE_RETURN_IF_ERROR(expect_operands(1));
    HONE_ASSIGN_OR_RETURN(const ExprId operand, Typed(token, operands[0], *dtype));
    return pool_.Cast(*dtype, operand);
  }
  if (name == "select") {
    HONE_RETURN_IF_ERROR(expect_operands(3));
    if (pool_[operands[0]].dtype != DType::kBool)
      return TokenReader::Error(token, "select's first operand must be a comparison");
    HONE_RETURN_IF_ERROR(Unify(token, operands[1], operands[2]));
    return pool_.Select(operands[0], operands[1], operands[2]);
  }
  for (const Op op : {Op::kMin, Op::kMax}) {
    if (InfoOf(op).name != name) continue;
    HONE_RETURN_IF_ERROR(expect_operands(2));
    HONE_RETURN_IF_ERROR(Unify(token, operands[0], operands[1]));
    HONE_RETURN_IF_ERROR(CheckOperand(token, op, operands[0]));
    return pool_.Binary(op, operands[0], operands[1]);
  }
  for (const Op op : {Op::kAbs, Op::kExp, Op::kLog, Op::kSqrt, Op::kRsqrt, Op::kTanh, Op::kErf,
                      Op::kNormalCdf, Op::kSigmoid, Op::kNot}) {
    if (InfoOf(op).name != name) continue;
    HONE_RETURN_IF_ERROR(expect_operands(1));
    HONE_ASSIGN_OR_RETURN(const ExprId operand, Typed(token, operands[0], DType::kF32));
    HONE_RETURN_IF_ERROR(CheckOperand(token, op, operand));
    return pool_.Unary(op, operand);
  }
  return TokenReader::Error(token, absl::StrCat("unknown function '", name, "'"));
}

}  // namespace hone::ir

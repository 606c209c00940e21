#include "common/ir/workload_parser.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/expr_printer.h"

namespace hone::ir {
namespace {

// Names become columns of the store and names of files.
constexpr size_t kMaxNameBytes = 128;

struct Token {
  enum Kind { kName, kNumber, kSymbol, kNewline, kEnd } kind = kEnd;
  std::string text;
  int line = 1;
  int column = 1;
};

// Splits the text; a newline token ends a statement.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  size_t line_begin = 0;
  size_t at = 0;
  const auto add = [&](Token::Kind kind, size_t begin, size_t end) {
    tokens.push_back({kind, std::string(text.substr(begin, end - begin)), line, static_cast<int>(begin - line_begin) + 1});
  };
  while (at < text.size()) {
    const char c = text[at];
    const size_t begin = at;
    if (c == '\n') {
      const bool continues = at + 1 < text.size() && (text[at + 1] == ' ' || text[at + 1] == '\t');
      if (!continues) add(Token::kNewline, at, at);
      ++at;
      ++line;
      line_begin = at;
    } else if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
      while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '.')) ++at;
      add(Token::kName, begin, at);
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '.' ||
                                  ((text[at] == '+' || text[at] == '-') && text[at - 1] == 'e'))) {
        ++at;
      }
      add(Token::kNumber, begin, at);
    } else {
      const absl::string_view two = text.substr(at, 2);
      at += two == "<=" || two == "==" ? 2 : 1;
      if (absl::string_view("[](),:=<+-*/%").find(c) == absl::string_view::npos) {
        return absl::InvalidArgumentError(absl::StrCat(line, ":", begin - line_begin + 1, ": unexpected character '",
                                                       std::isprint(static_cast<unsigned char>(c)) ? std::string(1, c) : "\\x" + absl::StrCat(absl::Hex(static_cast<unsigned char>(c))), "'"));
      }
      add(Token::kSymbol, begin, at);
    }
  }
  add(Token::kNewline, at, at);
  add(Token::kEnd, at, at);
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<Workload> Parse() {
    SkipNewlines();
    HONE_RETURN_IF_ERROR(Expect("workload"));
    HONE_ASSIGN_OR_RETURN(workload_.name, Name("the workload's name"));
    HONE_RETURN_IF_ERROR(EndOfStatement());
    while (SkipNewlines(), Peek().kind != Token::kEnd) {
      HONE_RETURN_IF_ERROR(Peek().text == "input" && Peek(1).kind == Token::kName ? InputStatement() : StageStatement());
      HONE_RETURN_IF_ERROR(EndOfStatement());
    }
    if (const absl::Status status = workload_.Validate(); !status.ok()) return Error(Peek(), status.message());
    return std::move(workload_);
  }

 private:
  const Token& Peek(int ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& Next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  void SkipNewlines() {
    while (Peek().kind == Token::kNewline) ++at_;
  }
  absl::Status Error(const Token& token, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(token.line, ":", token.column, ": ", what));
  }
  absl::Status Unexpected(absl::string_view expected) const {
    const Token& token = Peek();
    const std::string found = token.kind == Token::kEnd       ? "the end of the text"
                              : token.kind == Token::kNewline ? "the end of the line"
                                                              : absl::StrCat("'", token.text, "'");
    return Error(token, absl::StrCat("expected ", expected, ", found ", found));
  }
  bool Accept(absl::string_view text) {
    if (Peek().kind == Token::kEnd || Peek().kind == Token::kNewline || Peek().text != text) return false;
    ++at_;
    return true;
  }
  absl::Status Expect(absl::string_view text) {
    return Accept(text) ? absl::OkStatus() : Unexpected(absl::StrCat("'", text, "'"));
  }
  absl::Status EndOfStatement() {
    if (Peek().kind != Token::kNewline) return Unexpected("the end of the line");
    ++at_;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Name(absl::string_view what) {
    if (Peek().kind != Token::kName) return Unexpected(what);
    if (Peek().text.size() > kMaxNameBytes) {
      return Error(Peek(), absl::StrCat("a name of ", Peek().text.size(), " bytes; at most ", kMaxNameBytes));
    }
    return Next().text;
  }
  absl::StatusOr<int64_t> Integer(absl::string_view what) {
    const bool negative = Accept("-");
    int64_t value = 0;
    if (Peek().kind != Token::kNumber) return Unexpected(what);
    if (!absl::SimpleAtoi(Peek().text, &value)) {
      return Error(Peek(), absl::StrCat("'", Peek().text, "' is not a whole number that fits in 64 bits"));
    }
    ++at_;
    return negative ? -value : value;
  }
  absl::StatusOr<int64_t> Extent() {
    const Token token = Peek();
    HONE_ASSIGN_OR_RETURN(const int64_t extent, Integer("an extent"));
    if (extent < 1 || extent > kMaxElements) {
      return Error(token, absl::StrCat("extent ", extent, " is not between 1 and ", kMaxElements));
    }
    return extent;
  }

  absl::Status Declare(const std::string& name, const Token& token) {
    if (tensor_ids_.contains(name)) return Error(token, absl::StrCat("tensor ", name, " is declared twice"));
    if (workload_.tensors.size() >= kMaxTensors) return Error(token, absl::StrCat("more than ", kMaxTensors, " tensors"));
    tensor_ids_[name] = static_cast<BufferId>(workload_.tensors.size());
    return absl::OkStatus();
  }

  absl::Status InputStatement() {
    HONE_RETURN_IF_ERROR(Expect("input"));
    const Token token = Peek();
    Tensor tensor{.input = true};
    HONE_ASSIGN_OR_RETURN(tensor.name, Name("the input's name"));
    if (!workload_.stages.empty()) return Error(token, "inputs come before the stages");
    HONE_RETURN_IF_ERROR(Expect(":"));
    const Token dtype_token = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string dtype, Name("a dtype"));
    auto known = DTypeFromName(dtype);
    if (!known.ok()) return Error(dtype_token, known.status().message());
    tensor.dtype = *known;
    HONE_RETURN_IF_ERROR(Expect("["));
    if (!Accept("]")) {
      do {
        HONE_ASSIGN_OR_RETURN(const int64_t extent, Extent());
        tensor.shape.push_back(extent);
      } while (Accept(","));
      HONE_RETURN_IF_ERROR(Expect("]"));
    }
    tensor.constant = Accept("constant");
    HONE_RETURN_IF_ERROR(Declare(tensor.name, token));
    if (const absl::Status status = ValidateTensor(tensor); !status.ok()) return Error(token, status.message());
    workload_.tensors.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Axis>> Axes() {
    std::vector<Axis> axes;
    do {
      const Token token = Peek();
      HONE_ASSIGN_OR_RETURN(const std::string name, Name("an axis"));
      HONE_RETURN_IF_ERROR(Expect(":"));
      HONE_ASSIGN_OR_RETURN(const int64_t extent, Extent());
      if (axes_.contains(name)) return Error(token, absl::StrCat("axis ", name, " is declared twice"));
      if (axes.size() >= 2 * kMaxRank) return Error(token, absl::StrCat("more than ", 2 * kMaxRank, " axes"));
      axes.push_back({workload_.atoms.AddVar(name, extent), extent});
      axes_[name] = axes.back().var;
    } while (Accept(","));
    return axes;
  }

  absl::Status StageStatement() {
    axes_.clear();
    const bool output = Peek().text == "output" && Peek(1).kind != Token::kSymbol ? Accept("output")
                        : Peek().text == "output" && Peek(1).text == "("          ? Accept("output")
                                                                                  : false;
    Stage stage;
    std::vector<std::string> names;
    const Token name_token = Peek();
    const bool tuple = Accept("(");
    do {
      HONE_ASSIGN_OR_RETURN(names.emplace_back(), Name("'input', 'output' or a tensor's name"));
    } while (tuple && Accept(","));
    if (tuple) HONE_RETURN_IF_ERROR(Expect(")"));
    HONE_RETURN_IF_ERROR(Expect("["));
    HONE_ASSIGN_OR_RETURN(stage.spatial, Axes());
    HONE_RETURN_IF_ERROR(Expect("]"));
    HONE_RETURN_IF_ERROR(Expect("="));
    stage.reducer = ReducerFromName(Peek().text);
    // "max(k: 8) …" reduces, "max(a, b)" does not.
    if (Peek(1).text != "(" || Peek(3).text != ":") stage.reducer = Reducer::kNone;
    if (stage.reducer != Reducer::kNone) {
      Next();
      HONE_RETURN_IF_ERROR(Expect("("));
      HONE_ASSIGN_OR_RETURN(stage.reduce, Axes());
      if (Accept("where")) {
        do {
          const Token token = Peek();
          HONE_ASSIGN_OR_RETURN(const int64_t zero, Integer("'0 <= … < extent'"));
          if (zero != 0) return Error(token, "a guard has the form 0 <= index < extent");
          HONE_RETURN_IF_ERROR(Expect("<="));
          Condition guard;
          HONE_ASSIGN_OR_RETURN(guard.index, IndexSum());
          HONE_RETURN_IF_ERROR(Expect("<"));
          HONE_ASSIGN_OR_RETURN(guard.extent, Extent());
          stage.guards.push_back(std::move(guard));
          if (stage.guards.size() > kMaxGuards) return Error(token, absl::StrCat("more than ", kMaxGuards, " guards"));
        } while (Accept(","));
      }
      HONE_RETURN_IF_ERROR(Expect(")"));
    }
    const Token value_token = Peek();
    const bool tuple_value = names.size() > 1;
    if (tuple_value) HONE_RETURN_IF_ERROR(Expect("("));
    for (size_t c = 0; c < names.size(); ++c) {
      if (c > 0) HONE_RETURN_IF_ERROR(Expect(","));
      HONE_ASSIGN_OR_RETURN(ExprId value, Expression(0, 0));
      const bool as_first = c > 0 && stage.reducer == Reducer::kOnlineSoftmax;
      HONE_ASSIGN_OR_RETURN(value, Typed(value_token, value, as_first ? workload_.pool[stage.values[0]].dtype : DType::kF32));
      stage.values.push_back(value);
    }
    if (tuple_value) HONE_RETURN_IF_ERROR(Expect(")"));
    if (static_cast<int>(names.size()) != ReducerArity(stage.reducer)) {
      return Error(value_token, absl::StrCat("this stage has ", names.size(), " components, its reducer ",
                                             ReducerArity(stage.reducer)));
    }
    HONE_RETURN_IF_ERROR(CheckReducer(value_token, stage));
    for (size_t c = 0; c < names.size(); ++c) {
      HONE_RETURN_IF_ERROR(Declare(names[c], name_token));
      Tensor tensor{.name = names[c], .dtype = workload_.pool[stage.values[c]].dtype, .output = output,
                    .stage = static_cast<int>(workload_.stages.size())};
      for (const Axis& axis : stage.spatial) tensor.shape.push_back(axis.extent);
      stage.tensors.push_back(static_cast<BufferId>(workload_.tensors.size()));
      workload_.tensors.push_back(std::move(tensor));
    }
    workload_.stages.push_back(std::move(stage));
    const absl::Status status = workload_.ValidateStage(workload_.stages.size() - 1);
    return status.ok() ? absl::OkStatus() : Error(name_token, status.message());
  }

  // Which dtypes a reducer takes.
  absl::Status CheckReducer(const Token& token, const Stage& stage) const {
    const auto dtype = [&](int c) { return workload_.pool[stage.values[c]].dtype; };
    const absl::string_view name = ReducerName(stage.reducer);
    if (stage.reducer != Reducer::kNone && dtype(0) == DType::kBool) {
      return Error(token, absl::StrCat(name, " of bool; cast it, as in i32(x)"));
    }
    if ((stage.reducer == Reducer::kArgMax || stage.reducer == Reducer::kArgMin) && dtype(1) != DType::kI32 && dtype(1) != DType::kI64) {
      return Error(token, absl::StrCat("the second component of ", name, " must be i32 or i64, not ", DTypeName(dtype(1))));
    }
    if (stage.reducer == Reducer::kOnlineSoftmax && (!IsFloat(dtype(0)) || dtype(0) != dtype(1))) {
      return Error(token, "both components of online_softmax must be of one float dtype");
    }
    return absl::OkStatus();
  }

  absl::Status CountOperator(const Token& token) {
    if (++operators_ > kMaxTextOperators) return Error(token, absl::StrCat("more than ", kMaxTextOperators, " operators"));
    return absl::OkStatus();
  }
  // Refuses what may overflow: coefficients times domains must stay far inside 64 bits.
  absl::Status CheckSize(const Token& token, const Index& index, int64_t factor) const {
    double size = std::abs(static_cast<double>(index.constant()));
    for (const IndexTerm& term : index.terms()) {
      const Range range = workload_.atoms.RangeOf(Index::Of(term.atom));
      size += std::abs(static_cast<double>(term.coeff)) * static_cast<double>(std::max<int64_t>({1, std::abs(range.min), std::abs(range.max)}));
    }
    if (size * std::abs(static_cast<double>(factor)) <= static_cast<double>(kMaxDomain)) return absl::OkStatus();
    return Error(token, absl::StrCat("this index can exceed ", kMaxDomain));
  }

  // index := term (('+' | '-') term)*
  absl::StatusOr<Index> IndexSum(int depth = 0) {
    Index sum;
    int sign = Accept("-") ? -1 : 1;
    while (true) {
      const Token token = Peek();
      HONE_RETURN_IF_ERROR(CountOperator(token));
      HONE_ASSIGN_OR_RETURN(const Index term, IndexTermText(depth));
      sum.AddScaled(term, sign);
      HONE_RETURN_IF_ERROR(CheckSize(token, sum, 1));
      if (Accept("+")) {
        sign = 1;
      } else if (Accept("-")) {
        sign = -1;
      } else {
        return workload_.atoms.Simplify(std::move(sum));
      }
    }
  }
  absl::StatusOr<Index> IndexFactor(int depth) {
    const Token token = Peek();
    if (depth > kMaxExprDepth) return Error(token, absl::StrCat("nested deeper than ", kMaxExprDepth));
    if (Accept("(")) {
      HONE_ASSIGN_OR_RETURN(Index inner, IndexSum(depth + 1));
      HONE_RETURN_IF_ERROR(Expect(")"));
      return inner;
    }
    if (token.kind == Token::kNumber) {
      HONE_ASSIGN_OR_RETURN(const int64_t value, Integer("a number"));
      if (value > kMaxElements) return Error(token, absl::StrCat("index constant ", value, " is larger than ", kMaxElements));
      return Index(value);
    }
    HONE_ASSIGN_OR_RETURN(const std::string name, Name("an axis or a number"));
    const auto axis = axes_.find(name);
    if (axis == axes_.end()) return Error(token, absl::StrCat("unknown axis '", name, "'"));
    return Index::Of(axis->second);
  }
  absl::StatusOr<Index> IndexTermText(int depth) {
    HONE_ASSIGN_OR_RETURN(Index value, IndexFactor(depth));
    while (true) {
      const Token token = Peek();
      const std::string op = token.text;
      if (token.kind != Token::kSymbol || (op != "*" && op != "/" && op != "%")) return value;
      Next();
      HONE_RETURN_IF_ERROR(CountOperator(token));
      HONE_ASSIGN_OR_RETURN(Index factor, IndexFactor(depth));
      if (op == "*") {
        if (value.IsConstant()) std::swap(value, factor);
        if (!factor.IsConstant()) return Error(token, "a product of two axes is not affine");
        HONE_RETURN_IF_ERROR(CheckSize(token, value, factor.constant()));
        value *= factor.constant();
      } else {
        if (!factor.IsConstant() || factor.constant() < 1) return Error(token, "the divisor must be a positive number");
        value = op == "/" ? workload_.atoms.FloorDiv(value, factor.constant()) : workload_.atoms.Mod(value, factor.constant());
      }
    }
  }

  // Numbers are kept as they are written until something says their dtype.
  bool IsLiteral(ExprId id) const { return literals_.contains(id); }
  absl::StatusOr<ExprId> Typed(const Token& token, ExprId id, DType dtype) {
    if (!IsLiteral(id)) return id;
    const double value = workload_.pool[id].value;
    if (!IsFloat(dtype) && RoundTo(dtype, value) != value) {
      return Error(token, absl::StrCat("the number ", PrintConst(DType::kF64, value), " is not a value of ", DTypeName(dtype)));
    }
    return workload_.pool.Const(dtype, value);
  }
  ExprId Literal(double value) {
    const ExprId id = workload_.pool.Const(DType::kF64, value);
    literals_.insert(id);
    return id;
  }

  // Gives literals the dtype of the other operand, f32 where both are.
  absl::Status Unify(const Token& token, ExprId& a, ExprId& b) {
    const ExprPool& pool = workload_.pool;
    const DType dtype = !IsLiteral(a) ? pool[a].dtype : !IsLiteral(b) ? pool[b].dtype : DType::kF32;
    HONE_ASSIGN_OR_RETURN(a, Typed(token, a, dtype));
    HONE_ASSIGN_OR_RETURN(b, Typed(token, b, dtype));
    if (pool[a].dtype == pool[b].dtype) return absl::OkStatus();
    return Error(token, absl::StrCat("operands have dtypes ", DTypeName(pool[a].dtype), " and ",
                                     DTypeName(pool[b].dtype), "; cast one, as in f32(x)"));
  }

  // Which dtypes an operation takes.
  absl::Status CheckOperand(const Token& token, Op op, ExprId operand) const {
    const DType dtype = workload_.pool[operand].dtype;
    const bool logical = op == Op::kAnd || op == Op::kOr || op == Op::kNot;
    const bool real = op >= Op::kExp && op <= Op::kSigmoid;
    if (logical && dtype != DType::kBool) return Error(token, absl::StrCat("'", InfoOf(op).name, "' takes bool, not ", DTypeName(dtype)));
    if (real && !IsFloat(dtype)) return Error(token, absl::StrCat("'", InfoOf(op).name, "' takes a float type, not ", DTypeName(dtype)));
    if (!logical && !real && op != Op::kEqual && dtype == DType::kBool) {
      return Error(token, absl::StrCat("'", InfoOf(op).name, "' takes numbers, not bool"));
    }
    return absl::OkStatus();
  }

  std::optional<Op> InfixAt(int min_precedence) const {
    const Token& token = Peek();
    if (token.kind != Token::kSymbol && token.kind != Token::kName) return std::nullopt;
    for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kLess, Op::kLessEqual, Op::kEqual, Op::kAnd, Op::kOr}) {
      if (InfoOf(op).name == token.text && InfoOf(op).precedence >= min_precedence) return op;
    }
    return std::nullopt;
  }

  absl::StatusOr<ExprId> Expression(int min_precedence, int depth) {
    HONE_ASSIGN_OR_RETURN(ExprId left, Primary(depth));
    while (const std::optional<Op> op = InfixAt(min_precedence)) {
      const Token token = Next();
      HONE_RETURN_IF_ERROR(CountOperator(token));
      HONE_ASSIGN_OR_RETURN(ExprId right, Expression(InfoOf(*op).precedence + 1, depth + 1));
      HONE_RETURN_IF_ERROR(Unify(token, left, right));
      HONE_RETURN_IF_ERROR(CheckOperand(token, *op, left));
      left = workload_.pool.Binary(*op, left, right);
    }
    return left;
  }

  absl::StatusOr<ExprId> Primary(int depth) {
    ExprPool& pool = workload_.pool;
    const Token token = Peek();
    if (depth > kMaxExprDepth) return Error(token, absl::StrCat("nested deeper than ", kMaxExprDepth));
    if (Accept("(")) {
      HONE_ASSIGN_OR_RETURN(const ExprId inner, Expression(0, depth + 1));
      HONE_RETURN_IF_ERROR(Expect(")"));
      return inner;
    }
    if (Accept("-")) {
      HONE_ASSIGN_OR_RETURN(const ExprId inner, Primary(depth + 1));
      if (IsLiteral(inner)) return Literal(-pool[inner].value);
      HONE_RETURN_IF_ERROR(CheckOperand(token, Op::kNeg, inner));
      if (pool[inner].op == Op::kConst) return pool.Const(pool[inner].dtype, -pool[inner].value);
      return pool.Unary(Op::kNeg, inner);
    }
    if (token.kind == Token::kNumber || ((token.text == "inf" || token.text == "nan") && Peek(1).text != "[")) {
      Next();
      double value = 0;
      if (!absl::SimpleAtod(token.text, &value)) return Error(token, absl::StrCat("'", token.text, "' is not a number"));
      if (token.kind == Token::kNumber && !std::isfinite(value)) {
        return Error(token, absl::StrCat("'", token.text, "' is larger than any f64; write inf if that is meant"));
      }
      return Literal(value);
    }
    HONE_ASSIGN_OR_RETURN(const std::string name, Name("a tensor, a function or a number"));
    if (Accept("[")) {
      const auto tensor = tensor_ids_.find(name);
      if (tensor == tensor_ids_.end()) return Error(token, absl::StrCat("unknown tensor '", name, "'"));
      IndexList indices;
      do {
        HONE_ASSIGN_OR_RETURN(Index index, IndexSum());
        indices.push_back(std::move(index));
      } while (Accept(","));
      HONE_RETURN_IF_ERROR(Expect("]"));
      const Tensor& t = workload_.tensors[tensor->second];
      if (indices.size() != t.shape.size()) {
        return Error(token, absl::StrCat(name, " is ", TypeText(t.dtype, t.shape), ", but has ", indices.size(), " indices here"));
      }
      return pool.Load(tensor->second, t.dtype, std::move(indices));
    }
    if (!Accept("(")) return Error(token, absl::StrCat("'", name, "' is neither a tensor with indices nor a function"));
    return Call(token, name, depth);
  }

  absl::StatusOr<ExprId> Call(const Token& token, const std::string& name, int depth) {
    ExprPool& pool = workload_.pool;
    if (name == "index") {
      HONE_ASSIGN_OR_RETURN(Index index, IndexSum());
      HONE_RETURN_IF_ERROR(Expect(")"));
      return pool.OfIndex(std::move(index));
    }
    std::vector<ExprId> operands;
    do {
      HONE_ASSIGN_OR_RETURN(operands.emplace_back(), Expression(0, depth + 1));
    } while (Accept(","));
    HONE_RETURN_IF_ERROR(Expect(")"));
    const auto dtype = DTypeFromName(name);
    const auto expect_operands = [&](size_t count) {
      return operands.size() == count
                 ? absl::OkStatus()
                 : Error(token, absl::StrCat(name, " takes ", count, " operands, not ", operands.size()));
    };
    if (dtype.ok()) {
      HONE_RETURN_IF_ERROR(expect_operands(1));
      HONE_ASSIGN_OR_RETURN(const ExprId operand, Typed(token, operands[0], *dtype));
      return pool.Cast(*dtype, operand);
    }
    if (name == "select") {
      HONE_RETURN_IF_ERROR(expect_operands(3));
      if (pool[operands[0]].dtype != DType::kBool) return Error(token, "select's first operand must be a comparison");
      HONE_RETURN_IF_ERROR(Unify(token, operands[1], operands[2]));
      return pool.Select(operands[0], operands[1], operands[2]);
    }
    for (const Op op : {Op::kMin, Op::kMax}) {
      if (InfoOf(op).name != name) continue;
      HONE_RETURN_IF_ERROR(expect_operands(2));
      HONE_RETURN_IF_ERROR(Unify(token, operands[0], operands[1]));
      HONE_RETURN_IF_ERROR(CheckOperand(token, op, operands[0]));
      return pool.Binary(op, operands[0], operands[1]);
    }
    for (const Op op : {Op::kAbs, Op::kExp, Op::kLog, Op::kSqrt, Op::kRsqrt, Op::kTanh, Op::kErf, Op::kSigmoid, Op::kNot}) {
      if (InfoOf(op).name != name) continue;
      HONE_RETURN_IF_ERROR(expect_operands(1));
      HONE_ASSIGN_OR_RETURN(const ExprId operand, Typed(token, operands[0], DType::kF32));
      HONE_RETURN_IF_ERROR(CheckOperand(token, op, operand));
      return pool.Unary(op, operand);
    }
    return Error(token, absl::StrCat("unknown function '", name, "'"));
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int operators_ = 0;
  absl::flat_hash_set<ExprId> literals_;
  Workload workload_;
  std::map<std::string, BufferId> tensor_ids_;
  std::map<std::string, AtomId> axes_;  // of the stage being read
};

}  // namespace

absl::StatusOr<Workload> ParseWorkload(absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("1:1: a workload of ", text.size(), " bytes; at most ", kMaxTextBytes));
  }
  HONE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).Parse();
}

}  // namespace hone::ir

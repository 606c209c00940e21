#include "common/ir/workload_parser.h"

#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::ir {
namespace {

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
    HONE_RETURN_IF_ERROR(workload_.Validate());
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
        } while (Accept(","));
      }
      HONE_RETURN_IF_ERROR(Expect(")"));
    }
    const Token value_token = Peek();
    const bool tuple_value = names.size() > 1;
    if (tuple_value) HONE_RETURN_IF_ERROR(Expect("("));
    for (size_t c = 0; c < names.size(); ++c) {
      if (c > 0) HONE_RETURN_IF_ERROR(Expect(","));
      HONE_ASSIGN_OR_RETURN(const ExprId value, Expression(0, 0));
      stage.values.push_back(value);
    }
    if (tuple_value) HONE_RETURN_IF_ERROR(Expect(")"));
    if (static_cast<int>(names.size()) != ReducerArity(stage.reducer)) {
      return Error(value_token, absl::StrCat("this stage has ", names.size(), " components, its reducer ",
                                             ReducerArity(stage.reducer)));
    }
    for (size_t c = 0; c < names.size(); ++c) {
      HONE_RETURN_IF_ERROR(Declare(names[c], name_token));
      Tensor tensor{.name = names[c], .dtype = workload_.pool[stage.values[c]].dtype, .output = output,
                    .stage = static_cast<int>(workload_.stages.size())};
      for (const Axis& axis : stage.spatial) tensor.shape.push_back(axis.extent);
      stage.tensors.push_back(static_cast<BufferId>(workload_.tensors.size()));
      workload_.tensors.push_back(std::move(tensor));
    }
    workload_.stages.push_back(std::move(stage));
    return absl::OkStatus();
  }

  // index := term (('+' | '-') term)*
  absl::StatusOr<Index> IndexSum(int depth = 0) {
    Index sum;
    int sign = Accept("-") ? -1 : 1;
    while (true) {
      HONE_ASSIGN_OR_RETURN(const Index term, IndexTermText(depth));
      sum.AddScaled(term, sign);
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
      HONE_ASSIGN_OR_RETURN(Index factor, IndexFactor(depth));
      if (op == "*") {
        if (value.IsConstant()) std::swap(value, factor);
        if (!factor.IsConstant()) return Error(token, "a product of two axes is not affine");
        if (std::abs(factor.constant()) > kMaxElements) return Error(token, "this factor is too large");
        const Range range = workload_.atoms.RangeOf(value);
        if (std::max(std::abs(range.min), std::abs(range.max)) > kMaxDomain / std::max<int64_t>(1, std::abs(factor.constant()))) {
          return Error(token, absl::StrCat("this product can exceed ", kMaxDomain));
        }
        value *= factor.constant();
      } else {
        if (!factor.IsConstant() || factor.constant() < 1) return Error(token, "the divisor must be a positive number");
        value = op == "/" ? workload_.atoms.FloorDiv(value, factor.constant()) : workload_.atoms.Mod(value, factor.constant());
      }
    }
  }

  // Gives literals the dtype of the other operand.
  absl::Status Unify(const Token& token, ExprId& a, ExprId& b) {
    ExprPool& pool = workload_.pool;
    if (pool[a].dtype == pool[b].dtype) return absl::OkStatus();
    if (pool[a].op == Op::kConst) {
      a = pool.Const(pool[b].dtype, pool[a].value);
    } else if (pool[b].op == Op::kConst) {
      b = pool.Const(pool[a].dtype, pool[b].value);
    } else {
      return Error(token, absl::StrCat("operands have dtypes ", DTypeName(pool[a].dtype), " and ",
                                       DTypeName(pool[b].dtype), "; cast one, as in f32(x)"));
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
      if (++operators_ > 4096) return Error(token, "more than 4096 operators");
      HONE_ASSIGN_OR_RETURN(ExprId right, Expression(InfoOf(*op).precedence + 1, depth + 1));
      HONE_RETURN_IF_ERROR(Unify(token, left, right));
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
      if (pool[inner].op == Op::kConst) return pool.Const(pool[inner].dtype, -pool[inner].value);
      return pool.Unary(Op::kNeg, inner);
    }
    if (token.kind == Token::kNumber || token.text == "inf" || token.text == "nan") {
      Next();
      double value = 0;
      if (!absl::SimpleAtod(token.text, &value)) return Error(token, absl::StrCat("'", token.text, "' is not a number"));
      return pool.Const(DType::kF32, value);
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
      if (pool[operands[0]].op == Op::kConst) return pool.Const(*dtype, pool[operands[0]].value);
      return pool.Cast(*dtype, operands[0]);
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
      return pool.Binary(op, operands[0], operands[1]);
    }
    for (const Op op : {Op::kAbs, Op::kExp, Op::kLog, Op::kSqrt, Op::kRsqrt, Op::kTanh, Op::kErf, Op::kSigmoid, Op::kNot}) {
      if (InfoOf(op).name != name) continue;
      HONE_RETURN_IF_ERROR(expect_operands(1));
      return pool.Unary(op, operands[0]);
    }
    return Error(token, absl::StrCat("unknown function '", name, "'"));
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int operators_ = 0;
  Workload workload_;
  std::map<std::string, BufferId> tensor_ids_;
  std::map<std::string, AtomId> axes_;  // of the stage being read
};

}  // namespace

absl::StatusOr<Workload> ParseWorkload(absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a workload of ", text.size(), " bytes; at most ", kMaxTextBytes));
  }
  HONE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).Parse();
}

}  // namespace hone::ir

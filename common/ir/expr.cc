#include "common/ir/expr.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::ir {
namespace {

constexpr OpInfo kOps[] = {
    {"const", 0, false, 0},  {"index", 0, false, 0}, {"load", 0, false, 0},
    {"+", 2, true, 6},       {"-", 2, true, 6},      {"*", 2, true, 7},
    {"/", 2, true, 7},       {"min", 2, false, 0},   {"max", 2, false, 0},
    {"-", 1, false, 0},      {"abs", 1, false, 0},   {"exp", 1, false, 0},
    {"log", 1, false, 0},    {"sqrt", 1, false, 0},  {"rsqrt", 1, false, 0},
    {"tanh", 1, false, 0},   {"erf", 1, false, 0},   {"sigmoid", 1, false, 0},
    {"<", 2, true, 4},       {"<=", 2, true, 4},     {"==", 2, true, 3},
    {"and", 2, true, 2},     {"or", 2, true, 1},     {"not", 1, false, 0},
    {"select", 3, false, 0}, {"cast", 1, false, 0},  {"normal_cdf", 1, false, 0},
    {"where", 2, false, 0},  {"round", 1, false, 0}, {"floor", 1, false, 0},
    {"ceil", 1, false, 0},   {"trunc", 1, false, 0}, {"pow", 2, false, 0},
    {"<<", 2, true, 5},      {">>", 2, true, 5},
};

constexpr std::pair<Reducer, absl::string_view> kReducers[] = {
    {Reducer::kSum, "sum"},
    {Reducer::kProd, "prod"},
    {Reducer::kMin, "min"},
    {Reducer::kMax, "max"},
    {Reducer::kArgMax, "argmax"},
    {Reducer::kArgMin, "argmin"},
    {Reducer::kOnlineSoftmax, "online_softmax"},
};

template <typename T>
constexpr std::pair<Scalar, Scalar> kRangeOf = {std::numeric_limits<T>::min(),
                                                std::numeric_limits<T>::max()};

// The smallest and the largest value of a dtype, including its infinities.
std::pair<Scalar, Scalar> RangeOf(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return kRangeOf<int8_t>;
    case DType::kU8:
      return kRangeOf<uint8_t>;
    case DType::kI32:
      return kRangeOf<int32_t>;
    case DType::kI64:
      return kRangeOf<int64_t>;
    case DType::kBool:
      return {0, 1};
    default:
      break;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {CastTo(dtype, -kInfinity), CastTo(dtype, kInfinity)};
}

Scalar LowestOf(DType dtype) { return RangeOf(dtype).first; }
Scalar HighestOf(DType dtype) { return RangeOf(dtype).second; }

// "0 <= i < 8, 0 <= j": two consecutive indices with a constant sum form one guard.
std::string PrintNonNegative(const AtomTable& atoms, const IndexList& indices) {
  std::string text;
  for (size_t i = 0; i < indices.size(); ++i) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "0 <= ", atoms.ToString(indices[i]));
    if (i + 1 == indices.size()) break;
    const Index sum = indices[i] + indices[i + 1];
    if (!sum.IsConstant() || sum.constant() < 0) continue;
    absl::StrAppend(&text, " < ", sum.constant() + 1);
    ++i;
  }
  return text;
}

constexpr int kTightest = 8;  // tighter than any infix operator

// `typed`: print the constant's dtype, because no other operand implies it.
std::string Print(const ExprPool& pool, const AtomTable& atoms, ExprId root, int outer_precedence,
                  bool typed, absl::FunctionRef<std::string(BufferId)> buffer_name) {
  const Expr& expr = pool[root];
  const OpInfo& info = InfoOf(expr.op);
  // A constant takes its dtype from the other operand, unless that is also a constant.
  const ExprId first = expr.op == Op::kSelect ? expr.b : expr.a,
               second = expr.op == Op::kSelect ? expr.c : expr.b;
  const bool alone =
      second == kNoExpr || (pool[first].op == Op::kConst && pool[second].op == Op::kConst);
  const auto operand = [&](ExprId id, int precedence) {
    const bool beside = id == first || id == second;
    return Print(pool, atoms, id, precedence, /*typed=*/alone || !beside, buffer_name);
  };
  switch (expr.op) {
    case Op::kConst: {
      const std::string number = PrintConst(expr.dtype, expr.value);
      return typed && expr.dtype != DType::kF32
                 ? absl::StrCat(DTypeName(expr.dtype), "(", number, ")")
                 : number;
    }
    case Op::kIndex:
      return absl::StrCat("index(", atoms.ToString(pool.IndicesOf(expr)[0]), ")");
    case Op::kLoad:
      if (expr.gathered >= 0) {
        const IndexList& indices = pool.IndicesOf(expr);
        std::vector<std::string> texts;
        for (const Index& index : indices) texts.push_back(atoms.ToString(index));
        // In a lowered program, the gathered index is added to an offset.
        std::string& text = texts[expr.gathered];
        text = absl::StrCat(text == "0" ? "" : absl::StrCat(text, " + "), "at(", operand(expr.a, 0),
                            ")");
        return absl::StrCat(buffer_name(expr.buffer), "[", absl::StrJoin(texts, ", "), "]");
      }
      return absl::StrCat(buffer_name(expr.buffer), PrintIndices(atoms, pool.IndicesOf(expr)));
    case Op::kCast:
      return absl::StrCat(absl::string_view(DTypeName(expr.dtype)), "(", operand(expr.a, 0), ")");
    case Op::kWhere:
      return absl::StrCat("(", operand(expr.a, 0), " where ",
                          PrintNonNegative(atoms, pool.IndicesOf(expr)), " else ",
                          operand(expr.b, 0), ")");
    case Op::kNeg:
      return absl::StrCat("-", operand(expr.a, kTightest));
    default:
      break;
  }
  if (!info.infix) {
    std::string text = absl::StrCat(info.name, "(", operand(expr.a, 0));
    if (expr.b != kNoExpr) absl::StrAppend(&text, ", ", operand(expr.b, 0));
    if (expr.c != kNoExpr) absl::StrAppend(&text, ", ", operand(expr.c, 0));
    return text + ")";
  }
  const std::string text = absl::StrCat(operand(expr.a, info.precedence), " ", info.name, " ",
                                        operand(expr.b, info.precedence + 1));
  return info.precedence < outer_precedence ? absl::StrCat("(", text, ")") : text;
}

}  // namespace

const OpInfo& InfoOf(Op op) { return kOps[static_cast<int>(op)]; }

ExprId ExprPool::Add(Expr expr) {
  exprs_.push_back(expr);
  return size() - 1;
}

ExprId ExprPool::Const(DType dtype, Scalar value) {
  return Add({.op = Op::kConst, .dtype = dtype, .value = CastTo(dtype, value)});
}

ExprId ExprPool::OfIndex(Index index) {
  index_lists_.push_back({std::move(index)});
  return Add({.op = Op::kIndex,
              .dtype = DType::kI64,
              .indices = static_cast<int32_t>(index_lists_.size()) - 1});
}

ExprId ExprPool::Load(BufferId buffer, DType dtype, IndexList indices) {
  index_lists_.push_back(std::move(indices));
  return Add({.op = Op::kLoad,
              .dtype = LoadedAs(dtype),
              .buffer = buffer,
              .indices = static_cast<int32_t>(index_lists_.size()) - 1});
}

ExprId ExprPool::Gather(BufferId buffer, DType dtype, IndexList indices, int dimension, ExprId at) {
  const ExprId load = Load(buffer, dtype, std::move(indices));
  exprs_[load].gathered = static_cast<int8_t>(dimension);
  exprs_[load].a = at;
  return load;
}

ExprId ExprPool::Unary(Op op, ExprId a) {
  return Add({.op = op, .dtype = op == Op::kNot ? DType::kBool : exprs_[a].dtype, .a = a});
}

ExprId ExprPool::Binary(Op op, ExprId a, ExprId b) {
  // In lowered programs, kAnd also takes the common bits of integers.
  const bool logical = op >= Op::kLess && op <= Op::kOr && op != Op::kAnd;
  return Add({.op = op, .dtype = logical ? DType::kBool : exprs_[a].dtype, .a = a, .b = b});
}

ExprId ExprPool::Select(ExprId condition, ExprId then, ExprId otherwise) {
  return Add(
      {.op = Op::kSelect, .dtype = exprs_[then].dtype, .a = condition, .b = then, .c = otherwise});
}

ExprId ExprPool::Where(IndexList non_negative, ExprId value, ExprId otherwise) {
  if (non_negative.empty()) return value;
  index_lists_.push_back(std::move(non_negative));
  return Add({.op = Op::kWhere,
              .dtype = exprs_[value].dtype,
              .a = value,
              .b = otherwise,
              .indices = static_cast<int32_t>(index_lists_.size()) - 1});
}

ExprId ExprPool::Cast(DType dtype, ExprId a) {
  if (exprs_[a].op == Op::kConst) return Const(dtype, exprs_[a].value);
  return exprs_[a].dtype == dtype ? a : Add({.op = Op::kCast, .dtype = dtype, .a = a});
}

ExprId ExprPool::Rounded(ExprId value) {
  const Expr& expr = exprs_[value];
  const bool is_rounded = expr.op == Op::kConst || expr.op == Op::kLoad || expr.op == Op::kCast;
  const DType dtype = expr.dtype, wide = AccumulatorOf(dtype);
  return dtype == wide || is_rounded ? value : Cast(dtype, Cast(wide, value));
}

ExprId ExprPool::Widened(ExprId value) {
  const Expr expr = exprs_[value];
  if (AccumulatorOf(expr.dtype) == expr.dtype) return Cast(DType::kF32, value);
  if (expr.op == Op::kConst || expr.op == Op::kLoad || expr.op == Op::kCast) {
    return Cast(DType::kF32, value);
  }
  if (expr.op == Op::kSelect) return Select(expr.a, Widened(expr.b), Widened(expr.c));
  if (expr.op == Op::kWhere) {
    const ExprId a = Widened(expr.a), b = Widened(expr.b);
    return Where(IndexList(IndicesOf(expr)), a, b);
  }
  const ExprId a = Widened(expr.a);
  return expr.b == kNoExpr ? Unary(expr.op, a) : Binary(expr.op, a, Widened(expr.b));
}

ExprId ExprPool::WithOperands(ExprId of, ExprId a, ExprId b, ExprId c) {
  Expr expr = exprs_[of];
  expr.a = a;
  expr.b = b;
  expr.c = c;
  return Add(expr);
}

ExprId ExprPool::Rewrite(ExprId root, absl::FunctionRef<ExprId(const Expr&)> load,
                         absl::FunctionRef<Index(const Index&)> index) {
  const Expr expr = exprs_[root];
  const ExprId a = expr.a == kNoExpr ? kNoExpr : Rewrite(expr.a, load, index);
  const ExprId b = expr.b == kNoExpr ? kNoExpr : Rewrite(expr.b, load, index);
  const ExprId c = expr.c == kNoExpr ? kNoExpr : Rewrite(expr.c, load, index);
  if (expr.op == Op::kLoad) {
    Expr rebuilt = expr;
    rebuilt.a = a;
    if (const ExprId with = load(rebuilt); with != kNoExpr) return with;
  }
  bool changed = a != expr.a || b != expr.b || c != expr.c;
  IndexList mapped;
  if (expr.indices >= 0) {
    for (size_t i = 0; i < index_lists_[expr.indices].size(); ++i) {
      const Index from = index_lists_[expr.indices][i];
      mapped.push_back(index(from));
      changed |= mapped.back() != from;
    }
  }
  if (!changed) return root;
  const ExprId rewritten = WithOperands(root, a, b, c);
  if (expr.indices >= 0) {
    index_lists_.push_back(std::move(mapped));
    exprs_[rewritten].indices = static_cast<int32_t>(index_lists_.size()) - 1;
  }
  return rewritten;
}

void ExprPool::Visit(ExprId root, absl::FunctionRef<void(const Expr&)> visit) const {
  const Expr& expr = exprs_[root];
  for (const ExprId operand : {expr.a, expr.b, expr.c}) {
    if (operand != kNoExpr) Visit(operand, visit);
  }
  visit(expr);
}

void ExprPool::VisitLoads(ExprId root, absl::FunctionRef<void(const Expr&)> visit) const {
  Visit(root, [&](const Expr& expr) {
    if (expr.op == Op::kLoad) visit(expr);
  });
}

absl::string_view ReducerName(Reducer reducer) {
  for (const auto& [value, name] : kReducers) {
    if (value == reducer) return name;
  }
  return "";
}

Reducer ReducerFromName(absl::string_view name) {
  for (const auto& [value, known] : kReducers) {
    if (known == name) return value;
  }
  return Reducer::kNone;
}

DType AccumulatorOf(Reducer reducer, DType dtype) {
  const bool adds = reducer == Reducer::kSum || reducer == Reducer::kProd;
  return adds ? AccumulatorOf(dtype) : dtype;
}

bool FindsExtreme(Reducer reducer) {
  return reducer >= Reducer::kMin && reducer <= Reducer::kOnlineSoftmax;
}

bool IsMinimum(Reducer reducer) { return reducer == Reducer::kMin || reducer == Reducer::kArgMin; }

int ReducerArity(Reducer reducer) { return reducer >= Reducer::kArgMax ? 2 : 1; }

Scalar ReducerIdentity(Reducer reducer, int component, DType dtype) {
  switch (reducer) {
    case Reducer::kProd:
      return CastTo(dtype, 1);
    case Reducer::kMax:
      return LowestOf(dtype);
    case Reducer::kMin:
      return HighestOf(dtype);
    case Reducer::kArgMax:
      return component == 0 ? LowestOf(dtype) : CastTo(dtype, -1);
    case Reducer::kArgMin:
      return component == 0 ? HighestOf(dtype) : CastTo(dtype, -1);
    case Reducer::kOnlineSoftmax:
      return component == 0 ? LowestOf(dtype) : CastTo(dtype, 0);
    case Reducer::kNone:
    case Reducer::kSum:
      break;
  }
  return CastTo(dtype, 0);
}

absl::InlinedVector<ExprId, 2> Combine(ExprPool& pool, Reducer reducer,
                                       absl::Span<const ExprId> left,
                                       absl::Span<const ExprId> right) {
  switch (reducer) {
    case Reducer::kNone:
      return {right.begin(), right.end()};
    case Reducer::kSum:
      return {pool.Binary(Op::kAdd, left[0], right[0])};
    case Reducer::kProd:
      return {pool.Binary(Op::kMul, left[0], right[0])};
    case Reducer::kMin:
      return {pool.Binary(Op::kMin, left[0], right[0])};
    case Reducer::kMax:
      return {pool.Binary(Op::kMax, left[0], right[0])};
    case Reducer::kArgMax:
    case Reducer::kArgMin: {
      // The right tuple wins if it is strictly better, or equal with an earlier index. The order of
      // indices is 0, 1, 2, …, and then the negative ones, so that the neutral element, whose index
      // is -1, is the last. The result is thus independent of the order of combination.
      const bool max = reducer == Reducer::kArgMax;
      const ExprId better = max ? pool.Binary(Op::kLess, left[0], right[0])
                                : pool.Binary(Op::kLess, right[0], left[0]);
      const ExprId tie = pool.Binary(Op::kEqual, left[0], right[0]);
      const ExprId zero = pool.Const(pool[left[1]].dtype, 0);
      const ExprId lower = pool.Binary(Op::kLess, right[1], left[1]);
      const ExprId right_real = pool.Binary(Op::kLessEqual, zero, right[1]);
      const ExprId left_negative = pool.Binary(Op::kLess, left[1], zero);
      const ExprId earlier = pool.Binary(
          Op::kOr, pool.Binary(Op::kAnd, lower, pool.Binary(Op::kOr, right_real, left_negative)),
          pool.Binary(Op::kAnd, right_real, left_negative));
      const ExprId wins = pool.Binary(Op::kOr, better, pool.Binary(Op::kAnd, tie, earlier));
      return {pool.Select(wins, right[0], left[0]), pool.Select(wins, right[1], left[1])};
    }
    case Reducer::kOnlineSoftmax: {
      // An empty side has max −∞ and sum 0. Its term is 0, because −∞ − −∞ would be NaN; but if its
      // elements were NaN, which max ignores, its sum is NaN and so is the term.
      const DType dtype = pool[left[0]].dtype;
      const ExprId max = pool.Binary(Op::kMax, left[0], right[0]);
      const ExprId empty = pool.Const(dtype, -std::numeric_limits<double>::infinity());
      const auto term = [&](ExprId m, ExprId s) {
        const ExprId scaled =
            pool.Binary(Op::kMul, s, pool.Unary(Op::kExp, pool.Binary(Op::kSub, m, max)));
        const ExprId nothing = pool.Binary(Op::kMul, s, pool.Const(dtype, 0));
        return pool.Select(pool.Binary(Op::kEqual, m, empty), nothing, scaled);
      };
      return {max, pool.Binary(Op::kAdd, term(left[0], left[1]), term(right[0], right[1]))};
    }
  }
  return {};
}

std::string PrintConst(DType dtype, Scalar constant) {
  if (!IsFloat(dtype)) return absl::StrCat(constant.whole());
  const double value = constant.real();
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto result = dtype == DType::kF64 ? std::to_chars(buffer, buffer + sizeof buffer, value)
                                           : std::to_chars(buffer, buffer + sizeof buffer,
                                                           static_cast<float>(value));
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string PrintIndices(const AtomTable& atoms, const IndexList& indices) {
  std::string text = "[";
  for (size_t i = 0; i < indices.size(); ++i)
    absl::StrAppend(&text, i ? ", " : "", atoms.ToString(indices[i]));
  return text + "]";
}

std::string PrintExpr(const ExprPool& pool, const AtomTable& atoms, ExprId root,
                      absl::FunctionRef<std::string(BufferId)> buffer_name) {
  return Print(pool, atoms, root, 0, /*typed=*/true, buffer_name);
}

}  // namespace hone::ir

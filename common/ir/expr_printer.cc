#include "common/ir/expr_printer.h"

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::ir {
namespace {

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

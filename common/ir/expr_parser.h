#ifndef HONE_COMMON_IR_EXPR_PARSER_H_
#define HONE_COMMON_IR_EXPR_PARSER_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/expr.h"
#include "common/ir/index_parser.h"
#include "common/ir/token_reader.h"

namespace hone::ir {

// Parses scalar expressions in the form of expr_printer.h. Adds to an atom table and a pool, which
// must outlive it. Every error is InvalidArgument and begins with "line:column: ".
class ExprParser {
 public:
  ExprParser(TokenReader& reader, const ExprNames& names, AtomTable& atoms, ExprPool& pool,
             ExprParserOptions options = {})
      : reader_(reader), names_(names), pool_(pool), indices_(reader, names, atoms, options) {}

  // A literal without typed operands gets `dtype`.
  absl::StatusOr<ExprId> ParseExpr(DType dtype);
  // Parses the indices between expressions.
  IndexParser& indices() { return indices_; }

 private:
  bool IsLiteral(ExprId id) const { return literals_.contains(id); }
  ExprId Literal(Scalar value);
  absl::StatusOr<ExprId> Typed(const Token& token, ExprId id, DType dtype);
  absl::Status Unify(const Token& token, ExprId& a, ExprId& b);
  absl::Status CheckOperand(const Token& token, Op op, ExprId operand) const;
  absl::StatusOr<ExprId> Expression(int min_precedence, int depth);
  // Parses "guard, guard else value)" after the word "where".
  absl::StatusOr<ExprId> Guarded(ExprId value, int depth);
  absl::StatusOr<ExprId> Primary(int depth);
  absl::Status UnknownFunction(const Token& token, const std::string& name, bool has_axes) const;
  absl::StatusOr<ExprId> Element(const Token& token, const std::string& name, int depth);
  absl::StatusOr<ExprId> Call(const Token& token, const std::string& name, int depth);

  TokenReader& reader_;
  const ExprNames& names_;
  ExprPool& pool_;
  IndexParser indices_;
  absl::flat_hash_set<ExprId> literals_;  // numbers whose dtype is still open
};

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_EXPR_PARSER_H_

#ifndef HONE_COMMON_IR_EXPR_PARSER_H_
#define HONE_COMMON_IR_EXPR_PARSER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/expr.h"
#include "common/ir/token_reader.h"
#include "common/ir/workload.h"

namespace hone::ir {

// Resolves the names in expressions.
class ExprNames {
 public:
  virtual ~ExprNames() = default;
  struct Element {
    BufferId id = -1;
    DType dtype = DType::kF32;
    const Shape* shape = nullptr;  // null if there is no such tensor or buffer
  };
  virtual Element Find(const std::string& name) const = 0;
  // Optional explanation that follows "unknown tensor 'name'" in the error.
  virtual std::string WhyUnknown(const std::string& /*name*/) const { return ""; }
  // kNoAtom if there is no such axis.
  virtual AtomId FindAxis(const std::string& name) const = 0;
};

struct ExprParserOptions {
  int max_operators = kMaxTextOperators;
  int64_t max_index = kMaxDomain;  // limit on the value of an index, including intermediate values
  // Keep indices as written, without simplifying floordiv and mod. For printed programs.
  bool as_written = false;
};

// Parses indices and the conditions on them in the form of PrintIndices(). Adds to an atom table,
// which must outlive it. Every error is InvalidArgument and begins with "line:column: ".
class IndexParser {
 public:
  static constexpr absl::string_view kAtIsWhole =
      "at(…) is a whole index of an input's element; write the arithmetic inside, as in at(x + 1)";

  IndexParser(TokenReader& reader, const ExprNames& names, AtomTable& atoms,
              ExprParserOptions options)
      : reader_(reader), names_(names), atoms_(atoms), options_(options) {}

  absl::StatusOr<Index> ParseIndex() { return Sum(0); }
  // Parses "i, j + 1]" after the opening bracket, with `rank` indices.
  absl::StatusOr<IndexList> ParseIndices(const Token& token, const std::string& name,
                                         const ExprNames::Element& element);
  // Parses "0 <= index < extent".
  absl::StatusOr<Condition> ParseCondition();
  // Like ParseCondition, but also accepts a comparison of two indices ("k <= j"), which it converts
  // to that form.
  absl::StatusOr<Condition> ParseGuard();
  // Parses a guard and returns the indices that it requires to be at least 0.
  absl::StatusOr<IndexList> ParseNonNegative();

  // Counts an operator of an index or a value against the limit of the text.
  absl::Status CountOperator(const Token& token);
  // Checks the number of indices of an element.
  static absl::Status CheckRank(const Token& token, const std::string& name,
                                const ExprNames::Element& element, const IndexList& indices);

  // With as_written: the atoms of every parsed sum, in textual order.
  const std::vector<std::vector<AtomId>>& sums() const { return sums_; }

 private:
  absl::Status CheckSize(const Token& token, const Index& index, int64_t factor) const;
  absl::StatusOr<Index> Sum(int depth);
  absl::StatusOr<Index> Term(int depth);
  absl::StatusOr<Index> Factor(int depth);
  absl::StatusOr<Condition> Compare(const Token& token, absl::string_view symbol, const Index& left,
                                    const Index& right);

  TokenReader& reader_;
  const ExprNames& names_;
  AtomTable& atoms_;
  const ExprParserOptions options_;
  int operators_ = 0;
  std::vector<std::vector<AtomId>> sums_;
};

// Parses scalar expressions in the form of PrintExpr(). Adds to an atom table and a pool, which
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

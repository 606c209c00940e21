#ifndef HONE_WORKER_COMPILE_C_C_EXPR_H_
#define HONE_WORKER_COMPILE_C_C_EXPR_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/compile/c/c_index.h"
#include "worker/compile/c/c_prelude.h"
#include "worker/compile/c/dialect.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// The ranges of the integer values in a program, which tell where C's operators do not overflow.
class WholeLimits {
 public:
  // Doubles represent i32 exactly. Near the ends of i64, a value counts as overflowing.
  struct Limits {
    double min, max;
  };

  // The program must outlive this object.
  explicit WholeLimits(const lower::LoweredProgram& program) : p_(program) {}

  Limits Of(ir::ExprId id);
  static Limits Of(ir::DType dtype);
  // Returns whether the dtype holds all numbers within the limits.
  static bool Fits(Limits limits, ir::DType dtype);

 private:
  Limits New(const ir::Expr& expr);

  const lower::LoweredProgram& p_;
  std::map<ir::ExprId, Limits> limits_;
};

// Prints the values that stores compute. In expressions, f16, bf16 and the 8-bit floats are float,
// which is rounded where the interpreter rounds: in stores and casts.
class CExprPrinter {
 public:
  // All arguments must outlive this object. `names`: the buffers' names.
  CExprPrinter(const lower::LoweredProgram& program, const CDialect& dialect, CIndexPrinter& index,
               CPrelude& prelude, const std::vector<std::string>& names)
      : p_(program),
        dialect_(dialect),
        index_(index),
        prelude_(prelude),
        names_(names),
        limits_(program) {}

  // From now on until ForgetValues, prints this name instead of the expression.
  void NameValue(ir::ExprId id, std::string name) { values_[id] = std::move(name); }
  void ForgetValues() { values_.clear(); }
  bool HasName(ir::ExprId id) const { return values_.contains(id); }

  CText Print(ir::ExprId id);
  // Prints the value, converted to an element in memory of this dtype.
  std::string Stored(ir::ExprId value, ir::DType dtype);
  // Prints the element at an offset: "A[i * 64 + j]". `gathered`, if any, is added to the offset.
  std::string Element(ir::BufferId buffer, const ir::Index& offset, ir::ExprId gathered);
  // The C type of expressions of this dtype.
  absl::string_view ValueType(ir::DType dtype) const;
  // Prints a float constant, such as 0.5f.
  CText Constant(const ir::Expr& expr);

  // Returns the buffers that were printed since the last call.
  std::set<ir::BufferId> TakeUsedBuffers() { return std::exchange(used_buffers_, {}); }

  // InvalidArgument: the text has too many operations to compile. Unimplemented: it has an
  // operation that lowering should have removed.
  const absl::Status& status() const { return status_; }

 private:
  CText New(const ir::Expr& expr, ir::ExprId id);
  CText Load(const ir::Expr& expr);
  CText Arithmetic(const ir::Expr& expr);
  CText WholeArithmetic(const ir::Expr& expr, ir::ExprId id);
  CText Comparison(const ir::Expr& expr);
  CText Cast(const ir::Expr& expr);
  CText Infix(const ir::Expr& expr, absl::string_view symbol, CBinding left, CBinding right);
  CText Function(const ir::Expr& expr);
  CText Call(const std::string& function, const ir::Expr& expr);
  CText As(absl::string_view type, const CText& text) const {
    return {absl::StrCat("(", type, ")", text.Within(CBinding::kUnary)), CBinding::kUnary};
  }

  const lower::LoweredProgram& p_;
  const CDialect& dialect_;
  CIndexPrinter& index_;
  CPrelude& prelude_;
  const std::vector<std::string>& names_;
  WholeLimits limits_;
  std::map<ir::ExprId, std::string> values_;
  std::set<ir::BufferId> used_buffers_;
  int64_t operations_ = 0;
  absl::Status status_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_EXPR_H_

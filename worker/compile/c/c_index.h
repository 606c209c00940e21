#ifndef HONE_WORKER_COMPILE_C_C_INDEX_H_
#define HONE_WORKER_COMPILE_C_C_INDEX_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"
#include "worker/compile/c/c_prelude.h"

namespace hone::codegen {

// How tightly the outermost operator of a text binds, loosest first. `!` counts as a comparison,
// because compilers warn of `!a == b`.
enum class CBinding : uint8_t {
  kConditional,
  kOr,
  kAnd,
  kComparison,
  kSum,
  kProduct,
  kUnary,
  kPrimary
};

// The text of an expression.
struct CText {
  std::string text;
  CBinding binding = CBinding::kPrimary;

  // Returns the text as an operand, in parentheses if it binds less tightly than `least`.
  std::string Within(CBinding least) const {
    return binding < least ? absl::StrCat("(", text, ")") : text;
  }
};

// Prints index arithmetic, in int if no part of it can overflow, else in long.
class CIndexPrinter {
 public:
  // Both must outlive this object.
  CIndexPrinter(const ir::AtomTable& atoms, CPrelude& prelude);

  // Gives a variable its name. Sums are printed in the order in which variables were named.
  void Name(ir::AtomId var, std::string name);
  const std::string& NameOf(ir::AtomId var) const { return names_[var].text; }
  // Returns whether the variable was printed since it got its name.
  bool IsUsed(ir::AtomId var) const { return names_[var].used; }

  // Prints an index. `strides`: if the index is an offset into a tensor, the strides of that
  // tensor, outermost first. The terms of one dimension then share a factor, as in "(ty * 8 + i) *
  // 512 + k".
  CText Print(const ir::Index& index, absl::Span<const int64_t> strides = {});
  // Returns whether the printed index has the type int.
  bool IsInt(const ir::Index& index) const;
  static absl::string_view TypeOf(int64_t largest);

  // Joins conditions by "&&". Empty if they always hold; kNever if they never hold.
  CText Print(absl::Span<const ir::Condition> conditions);
  static constexpr char kNever[] = "0";

 private:
  struct Named {
    std::string text;
    int order = 0;
    bool used = false;
  };
  struct Item {  // a term of a sum
    bool negative;
    std::string text;
  };

  // Returns an upper limit of the magnitude of the index and of its partial sums.
  double Magnitude(const ir::Index& index) const;
  int OrderOf(ir::AtomId atom) const;
  CText Atom(ir::AtomId atom, bool wide);
  CText Sum(std::vector<ir::IndexTerm> terms, int64_t constant, absl::Span<const int64_t> strides,
            bool wide);
  static CText Join(std::vector<Item> items, int64_t constant, CBinding single);

  const ir::AtomTable& atoms_;
  CPrelude& prelude_;
  std::vector<Named> names_;
  int named_ = 0;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_INDEX_H_

#ifndef HONE_WORKER_CODEGEN_C_C_INDEX_H_
#define HONE_WORKER_CODEGEN_C_C_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"
#include "worker/codegen/c/c_prelude.h"
#include "worker/codegen/c/c_text.h"

namespace hone::codegen {

// Prints index arithmetic. It is computed in int if no part of it can overflow, else in long.
class CIndexPrinter {
 public:
  // Both must outlive this object.
  CIndexPrinter(const ir::AtomTable& atoms, CPrelude& prelude);

  // Gives a variable its name. Those that are named first are printed first.
  void Name(ir::AtomId var, std::string name);
  const std::string& NameOf(ir::AtomId var) const { return names_[var].text; }
  // Whether the variable was printed since it got its name.
  bool IsUsed(ir::AtomId var) const { return names_[var].used; }

  // The index. `strides`: those of the tensor that it is an offset in, outermost first; the terms
  // of one dimension then share a factor, as in "(ty * 8 + i) * 512 + k".
  CText Print(const ir::Index& index, absl::Span<const int64_t> strides = {});
  // Whether the printed index has the type int.
  bool IsInt(const ir::Index& index) const;
  static absl::string_view TypeOf(int64_t largest);

  // Whether all conditions hold, joined by "&&"; empty if they always do, kNever if they never do.
  CText Print(absl::Span<const ir::Condition> conditions);
  static constexpr char kNever[] = "0";

 private:
  struct Named {
    std::string text;
    int order = 0;
    bool used = false;
  };
  struct Item {  // of a sum
    bool negative;
    std::string text;
  };

  // An upper limit of the magnitude of the index and all sums on the way.
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

#endif  // HONE_WORKER_CODEGEN_C_C_INDEX_H_

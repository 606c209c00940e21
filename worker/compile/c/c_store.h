#ifndef HONE_WORKER_COMPILE_C_C_STORE_H_
#define HONE_WORKER_COMPILE_C_C_STORE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/compile/c/c_expr.h"
#include "worker/compile/c/c_lines.h"
#include "worker/compile/c/c_names.h"
#include "worker/compile/c/c_prelude.h"
#include "worker/compile/c/c_vector.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Prints stores: their conditions, their reductions, and their lanes. Lanes are printed as a vector
// where possible, else as a loop, or as two if a lane may read what another writes.
class CStorePrinter {
 public:
  // All arguments must outlive this object. Adds expressions to the program's pool.
  CStorePrinter(lower::LoweredProgram& program, const CDialect& dialect, CIndexPrinter& index,
                CExprPrinter& exprs, CVectorPrinter& vectors, CPrelude& prelude, CNames& names,
                CLines& lines)
      : p_(program),
        dialect_(dialect),
        index_(index),
        exprs_(exprs),
        vectors_(vectors),
        prelude_(prelude),
        names_(names),
        lines_(lines) {}

  // `lane`: the variable of the vectorized loop around the store, or kNoAtom. Unimplemented: an
  // instruction computes the store, or the dialect has no shuffles.
  absl::Status Print(lower::StmtId id, ir::AtomId lane);

 private:
  bool MayInterfere(const lower::Stmt& store, ir::AtomId lane) const;
  void OpenLanes(ir::AtomId lane);
  // Loads the operands of all lanes at once, where possible, before the loop over the lanes.
  void LoadLanes(const lower::Stmt& store, ir::AtomId lane);
  // Names the expressions that occur several times.
  void NameShared(const std::vector<ir::ExprId>& values);
  std::vector<ir::ExprId> Combine(const lower::Stmt& store);
  void PrintElement(const lower::Stmt& store);
  void PrintShuffle(const lower::Stmt& shuffle);
  void PrintInTwoLoops(const lower::Stmt& store, ir::AtomId lane, const CText& condition);
  std::string Temporary(absl::string_view wish, ir::DType dtype, const std::string& value);

  lower::LoweredProgram& p_;
  const CDialect& dialect_;
  CIndexPrinter& index_;
  CExprPrinter& exprs_;
  CVectorPrinter& vectors_;
  CPrelude& prelude_;
  CNames& names_;
  CLines& lines_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_STORE_H_

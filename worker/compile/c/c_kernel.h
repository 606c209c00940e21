#ifndef HONE_WORKER_COMPILE_C_C_KERNEL_H_
#define HONE_WORKER_COMPILE_C_C_KERNEL_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compile/c/c_memory.h"
#include "worker/compile/c/c_store.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Prints one kernel: its signature, the memory and threads that it uses, and its statements.
class CKernelPrinter {
 public:
  // All arguments must outlive this object. `buffers`: the buffers' names, which `names` contains.
  CKernelPrinter(lower::LoweredProgram& program, const CDialect& dialect, CPrelude& prelude,
                 const CNames& names, const std::vector<std::string>& buffers);

  // Errors as in PrintC.
  absl::StatusOr<std::string> Print(const lower::LoweredKernel& kernel,
                                    const std::string& function);

 private:
  absl::Status Print(lower::StmtId id, bool described);
  absl::Status PrintIf(const lower::Stmt& branch, bool described);
  absl::Status PrintFor(lower::StmtId id, bool described);
  absl::Status PrintBody(lower::StmtId body, bool described);
  absl::Status PrintBound(const lower::Stmt& loop, bool described);
  // Adds a line and the functions of the prelude that it calls. Does nothing if it is empty.
  void AddLine(const std::string& line);
  absl::Status CheckUniform(const ir::Index& index) const;
  // Prints the maximum or minimum (`function`) of a loop's constant bound and its runtime bounds.
  std::string Bound(absl::string_view function, int64_t constant, bool needs_constant,
                    const std::vector<ir::Index>& bounds, absl::string_view type);

  lower::LoweredProgram& p_;
  const CDialect& dialect_;
  CPrelude& prelude_;
  CNames names_;
  const std::vector<std::string>& buffers_;
  CLines lines_;
  CIndexPrinter index_;
  CExprPrinter exprs_;
  CVectorPrinter vectors_;
  CStorePrinter stores_;

  const lower::LoweredKernel* kernel_ = nullptr;
  bool outermost_ = true;  // only loops over blocks and threads have been entered
  std::vector<const lower::Stmt*> threads_;
  ir::AtomId lane_ = ir::kNoAtom;
  bool exchanges_global_ = false;
  int64_t copies_ = 1;      // of the current statement, made by unrolling the loops around it
  int64_t statements_ = 0;  // including copies
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_KERNEL_H_

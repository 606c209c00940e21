#ifndef HONE_WORKER_CODEGEN_C_C_KERNEL_H_
#define HONE_WORKER_CODEGEN_C_C_KERNEL_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/lower/lowered.h"
#include "worker/codegen/c/c_memory.h"
#include "worker/codegen/c/c_store.h"

namespace hone::codegen {

// Prints one kernel: the head, the memory and threads that it uses, and its statements.
class CKernelPrinter {
 public:
  // Everything must outlive this object. `buffers`: their names, which `names` contains.
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
  // Adds a line that calls functions of the prelude, unless it is empty.
  void AddLine(const std::string& line);
  absl::Status CheckUniform(const ir::Index& index) const;
  // The larger or smaller of a loop's constant bound and its runtime bounds.
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
  bool outermost_ = true;  // no other statement than loops over blocks and threads is open
  std::vector<const lower::Stmt*> threads_;
  ir::AtomId lane_ = ir::kNoAtom;
  bool exchanges_global_ = false;
  int64_t copies_ = 1;      // of a statement, once the loops around it are unrolled
  int64_t statements_ = 0;  // with copies
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_C_KERNEL_H_

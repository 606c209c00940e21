#ifndef HONE_WORKER_CODEGEN_C_C_VECTOR_H_
#define HONE_WORKER_CODEGEN_C_C_VECTOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/lower/lowered.h"
#include "worker/codegen/c/c_expr.h"

namespace hone::codegen {

// Prints a store of a vectorized loop as one statement with vectors: copies of any type, and
// arithmetic of f32 and f64 and on f16. Everything else is left to a loop over the lanes. That
// includes stores that access only private arrays, because these are registers, which are not
// contiguous.
class CVectorPrinter {
 public:
  // All arguments must outlive this object.
  CVectorPrinter(const lower::LoweredProgram& program, const CDialect& dialect, CExprPrinter& exprs,
                 CPrelude& prelude)
      : p_(program), dialect_(dialect), exprs_(exprs), prelude_(prelude) {}

  // Prints a store without its conditions. nullopt: it has no vector form.
  std::optional<CDialect::Assignment> Print(const lower::Stmt& store, ir::AtomId lane);

  // Prints the call for an asynchronous copy of one element or of all lanes of a vectorized loop,
  // in two parts between which the line may be broken. nullopt: there is no such call.
  std::optional<CDialect::Assignment> CopyAsync(const lower::Stmt& store, ir::AtomId lane);

  // Returns the alignments, in bytes, that statements printed since the last call require of
  // buffers in shared memory.
  std::map<ir::BufferId, int64_t> TakeAlignments() { return std::exchange(alignments_, {}); }

 private:
  bool DependsOnLane(ir::ExprId id) const;
  // Whether the lanes access consecutive elements.
  bool IsConsecutive(const ir::Index& offset) const;
  bool IsPrivate(ir::BufferId buffer) const;
  bool HasVector(ir::ExprId id) const;
  CDialect::VectorAccess Access(ir::BufferId buffer, const ir::Index& offset,
                                const std::string& first);
  std::string First(ir::BufferId buffer, const ir::Index& offset);

  CText Vector(ir::ExprId id);
  CText Load(ir::BufferId buffer, const ir::Index& offset);
  std::string Argument(ir::ExprId id);
  std::string Combined(const lower::Stmt& store);

  const lower::LoweredProgram& p_;
  const CDialect& dialect_;
  CExprPrinter& exprs_;
  CPrelude& prelude_;
  std::map<ir::BufferId, int64_t> alignments_;

  // Of the current statement.
  ir::AtomId lane_ = ir::kNoAtom;
  int lanes_ = 0;
  ir::DType dtype_ = ir::DType::kF32;  // the type of the computed values
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_C_VECTOR_H_

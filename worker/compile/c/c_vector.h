#ifndef HONE_WORKER_COMPILE_C_C_VECTOR_H_
#define HONE_WORKER_COMPILE_C_C_VECTOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "worker/compile/c/c_expr.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Prints a store of a vectorized loop as one statement with vectors: copies of any type, and
// arithmetic of f32 and f64 and on f16 and bf16. Everything else is left to a loop over the lanes.
// That includes stores that access only private arrays, because these are registers, which are not
// contiguous.
//
// An operation on f16 or bf16 whose result is rounded right away is computed in this type if the
// dialect has a function for that (hone_add_f16): without conversions, two elements at a time. A
// sum, difference or product is the same as if it was computed in f32 first, because f32 has more
// than twice the digits (Figueroa, When is double rounding innocuous?, 1995). A product and a sum
// are one operation. It rounds once, and so does the interpreter.
class CVectorPrinter {
 public:
  // All arguments must outlive this object.
  CVectorPrinter(const lower::LoweredProgram& program, const CDialect& dialect, CExprPrinter& exprs,
                 CPrelude& prelude)
      : p_(program), dialect_(dialect), exprs_(exprs), prelude_(prelude) {}

  // Prints a store without its conditions. nullopt: it has no vector form.
  std::optional<CDialect::Assignment> Print(const lower::Stmt& store, ir::AtomId lane);

  // Prints a load of all lanes as one instruction, of 16 bytes at most. nullopt: it
  // needs several, because the elements are not consecutive, not aligned, not in memory, or not of
  // the type in which values are computed.
  std::optional<std::string> LoadLanes(const ir::Expr& load, ir::AtomId lane);

  // Prints the call for an asynchronous copy of one element or of all lanes of a vectorized loop,
  // in two parts between which the line may be broken. nullopt: there is no such call.
  std::optional<CDialect::Assignment> CopyAsync(const lower::Stmt& store, ir::AtomId lane);

  // Prints the call for a store that an instruction computes, whose operands are vectors of its
  // terms. nullopt: the dialect does not have the instruction.
  std::optional<CDialect::Assignment> Dot(const lower::Stmt& store);

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
  // Returns the value of a short float that was only widened to f32.
  ir::ExprId Unwidened(ir::ExprId id) const;
  // Whether a value has no more digits than a short float of this type.
  bool IsExact(ir::ExprId id, ir::DType dtype) const;
  // Prints a value as a vector of short floats. nullopt: it is not computed in this type.
  std::optional<std::string> Packed(ir::ExprId id, ir::DType dtype);
  // The same for a value that is rounded to this type.
  std::optional<std::string> PackedOperation(ir::ExprId id, ir::DType dtype);
  std::optional<std::string> PackedCall(absl::string_view operation, ir::DType dtype,
                                        absl::Span<const ir::ExprId> operands);
  // Prints the elements in memory, without a conversion.
  CText Elements(ir::BufferId buffer, const ir::Index& offset);
  CText Load(ir::BufferId buffer, const ir::Index& offset);
  // `direction`: "_to_float" or "_from_float".
  std::string Convert(ir::DType dtype, absl::string_view direction, absl::string_view text);
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
  ir::DType dtype_ = ir::DType::kF32;  // the type in which values are computed
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_VECTOR_H_

#ifndef HONE_WORKER_COMPILE_LLVM_FUNCTION_EMITTER_H_
#define HONE_WORKER_COMPILE_LLVM_FUNCTION_EMITTER_H_

#include <map>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compile/llvm/expr_emitter.h"
#include "worker/compile/llvm/function_context.h"
#include "worker/compile/llvm/index_emitter.h"
#include "worker/compile/llvm/memory_emitter.h"
#include "worker/compile/llvm/tile_emitter.h"

namespace hone::codegen {

// Emits statements into one LLVM function. Static loops become straight-line code; the variables of
// runtime loops are SSA values.
class FunctionEmitter {
 public:
  // Emits void(ptr context) with the whole statement.
  static absl::StatusOr<llvm::Function*> EmitKernel(ModuleState& state, const std::string& name,
                                                    lower::StmtId body);

 private:
  explicit FunctionEmitter(ModuleState& state);

  void Begin(const std::string& name, bool body);
  void End();

  absl::Status Emit(lower::StmtId id);
  absl::Status EmitSeq(const lower::Stmt& seq);
  // Emits a nest that TileEmitter::Enter accepts. Returns whether it does.
  absl::StatusOr<bool> EmitTileNest(lower::StmtId nest, lower::StmtId init);
  absl::Status EmitByKind(lower::StmtId id);
  absl::Status EmitFor(const lower::Stmt& loop);
  absl::Status EmitUnrolled(const lower::Stmt& loop);
  absl::Status EmitSerial(const lower::Stmt& loop);
  absl::Status EmitParallel(const lower::Stmt& loop);
  // Emits a loop over [begin, end). `guarded`: it may be empty. `hoisting`: expressions that do not
  // depend on its variable are computed before it.
  absl::Status EmitLoop(const lower::Stmt& loop, llvm::Value* begin, llvm::Value* end, bool guarded,
                        bool hoisting);
  absl::Status EmitIf(const lower::Stmt& branch);
  absl::Status EmitStore(lower::StmtId id);
  // Emits a store for the first `f_.lanes` lanes. Its conditions fail in all others.
  absl::Status EmitLanes(lower::StmtId id, const lower::Stmt& store);
  // Computes the values in the lanes of `mask`, and replaces elements in those of `replaced`; null:
  // in all lanes.
  absl::Status EmitStoreUnder(lower::StmtId id, const lower::Stmt& store, llvm::Value* mask,
                              llvm::Value* replaced);
  // Whether a store gives the same result if only the lanes up to the last active one are computed.
  bool MayComputeFewerLanes(const lower::Stmt& store) const;
  bool DependsOnAny(const ir::Index& index, absl::Span<const ir::AtomId> vars) const;
  // Returns whether the index is within [0, extent), as an i1.
  llvm::Value* IsBelow(const IndexEmitter::Split& split, int64_t extent);

  FunctionContext f_;
  IndexEmitter index_;
  CacheHints hints_;
  MemoryEmitter memory_;
  ExprEmitter exprs_;
  TileEmitter tiles_;
  // The values of stores, combined with the elements that they update.
  std::map<lower::StmtId, absl::InlinedVector<ir::ExprId, 2>> combined_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_FUNCTION_EMITTER_H_

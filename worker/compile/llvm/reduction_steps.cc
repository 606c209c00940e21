#include "worker/compile/llvm/reduction_steps.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

namespace hone::codegen {

using lower::Stmt;
using lower::Storage;

namespace {

constexpr int64_t kManyAccumulators = 16;

}  // namespace

bool StepsThroughTile(const lower::LoweredProgram& program, const Stmt& loop) {
  int64_t accumulators = 1;
  std::vector<ir::AtomId> tile;
  ir::AtomId lane = -1;
  const Stmt* at = &loop;
  while (at->kind == Stmt::Kind::kFor && at->children.size() == 1) {
    at = &program.stmts[at->children[0]];
    if (at->kind != Stmt::Kind::kFor) break;
    if (at->loop == ir::LoopKind::kUnrolled) {
      accumulators *= at->extent;
      tile.push_back(at->var);
    } else {
      lane = at->var;
    }
  }
  bool slides = false;
  const auto look = [&](const ir::Expr& load) {
    const ir::Index& offset = program.pool.IndicesOf(load)[0];
    const int64_t step = offset.CoeffOf(loop.var);
    if (step == 0 || lane < 0 || offset.CoeffOf(lane) == 0) return;
    for (const ir::AtomId var : tile) {
      const int64_t along = offset.CoeffOf(var);
      slides |= along != 0 && along % step == 0 && std::abs(along / step) < loop.extent;
    }
  };
  if (at->kind == Stmt::Kind::kStore) {
    for (const ir::ExprId value : at->values) program.pool.VisitLoads(value, look);
  }
  return !slides && at->kind == Stmt::Kind::kStore && at->reducer != ir::Reducer::kNone &&
         program.storage[at->outputs[0]].kind == Storage::Kind::kRegister &&
         std::none_of(
             at->indices.begin(), at->indices.end(),
             [&](const ir::Index& index) { return program.atoms.DependsOn(index, loop.var); }) &&
         accumulators >= kManyAccumulators;
}

void SeparateSteps(llvm::IRBuilder<>& builder) {
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), false);
  builder.CreateCall(type, llvm::InlineAsm::get(type, "", "~{memory}", /*hasSideEffects=*/true));
}

bool SeparatesSteps(const llvm::Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (call == nullptr) return false;
  const auto* const code = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand());
  return code != nullptr && code->getAsmString().empty();
}

}  // namespace hone::codegen

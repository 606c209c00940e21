#include "worker/compile/llvm/unrolled_loop.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "worker/compile/llvm/vector_math/vector_math.h"

namespace hone::codegen {

using lower::Stmt;
using lower::Storage;

namespace {

constexpr int64_t kManyAccumulators = 16;

bool ComputesFunction(const ir::ExprPool& pool, ir::ExprId id) {
  if (id == ir::kNoExpr) return false;
  const ir::Expr& expr = pool[id];
  return IsFunction(expr.op) || ComputesFunction(pool, expr.a) || ComputesFunction(pool, expr.b) ||
         ComputesFunction(pool, expr.c);
}

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

int64_t IterationsSideBySide(const lower::LoweredProgram& program, const Stmt& loop,
                             int vector_bits) {
  const Stmt* store = &program.stmts[loop.children[0]];
  int64_t lanes = 1;
  if (store->kind == Stmt::Kind::kFor && store->loop == ir::LoopKind::kVectorized) {
    lanes = store->extent;
    store = &program.stmts[store->children[0]];
  }
  if (store->kind != Stmt::Kind::kStore || store->reducer != ir::Reducer::kNone) return 1;
  // Of iterations that store the same elements, the last one must win.
  if (!program.atoms.DependsOn(store->indices[0], loop.var)) return 1;
  bool functions = false, reads = false;
  int bytes = 4;
  for (const ir::ExprId value : store->values) {
    functions |= ComputesFunction(program.pool, value);
    if (program.pool[value].dtype == ir::DType::kF64) bytes = 8;
    program.pool.VisitLoads(value, [&](const ir::Expr& load) {
      reads |= std::ranges::find(store->outputs, load.buffer) != store->outputs.end();
    });
  }
  if (!functions || reads) return 1;
  return std::max<int64_t>(1, kFunctionRegisters * vector_bits / (8 * bytes) /
                                  std::max<int64_t>(lanes, vector_bits / (8 * bytes)));
}

void PlaceSideBySide(llvm::ArrayRef<llvm::Instruction*> firsts) {
  llvm::BasicBlock& block = *firsts[0]->getParent();
  std::vector<std::vector<llvm::Instruction*>> parts;
  llvm::SmallPtrSet<llvm::Instruction*, 32> waiting;
  for (llvm::Instruction* at = firsts[0]; at != nullptr; at = at->getNextNode()) {
    if (parts.size() < firsts.size() && at == firsts[parts.size()]) parts.emplace_back();
    parts.back().push_back(at);
    waiting.insert(at);
  }
  const auto ready = [&](const llvm::Instruction& instruction) {
    return std::none_of(instruction.op_begin(), instruction.op_end(), [&](const llvm::Use& use) {
      auto* const operand = llvm::dyn_cast<llvm::Instruction>(use.get());
      return operand != nullptr && waiting.contains(operand);
    });
  };
  // The first part that is left never waits for another one.
  std::vector<size_t> next(parts.size());
  while (!waiting.empty()) {
    for (size_t p = 0; p < parts.size(); ++p) {
      if (next[p] == parts[p].size() || !ready(*parts[p][next[p]])) continue;
      llvm::Instruction* const instruction = parts[p][next[p]++];
      waiting.erase(instruction);
      instruction->moveBefore(block, block.end());
    }
  }
}

}  // namespace hone::codegen

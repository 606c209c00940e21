#include "worker/compile/llvm/function_emitter.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "worker/compile/llvm/compile.h"
#include "worker/compile/llvm/store_forms.h"
#include "worker/compile/llvm/unrolled_loop.h"

namespace hone::codegen {
namespace {

using VariableKind = IndexEmitter::Variable::Kind;
using ir::AtomId;
using ir::Index;
using llvm::Value;
using lower::Stmt;
using lower::StmtId;

// Emits a parallel loop at the builder's position: the caller's runtime (HoneRuntime of
// common/target/kernel_abi.h) runs body(context, begin, end, thread) over parts of [0, extent), on
// at most `threads` threads. If it has one thread, or `runtime` is null, the body is called once.
// `chunk` is as in HoneRuntime.
void EmitParallelFor(llvm::IRBuilder<>& b, llvm::Function* body, Value* context, Value* runtime,
                     int64_t extent, int threads, int64_t chunk) {
  auto* const ptr = b.getPtrTy();
  auto* const i32 = b.getInt32Ty();
  auto* const i64 = b.getInt64Ty();
  // HoneRuntime.
  auto* const layout = llvm::StructType::get(ptr, i32);
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  const auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(b.getContext(), name, function);
  };
  auto* const ask = block("runtime");
  auto* const fork = block("fork");
  auto* const alone = block("alone");
  auto* const join = block("joined");
  b.CreateCondBr(b.CreateIsNull(runtime), alone, ask);
  b.SetInsertPoint(ask);
  Value* const available = b.CreateLoad(i32, b.CreateStructGEP(layout, runtime, 1));
  Value* const used =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, available, b.getInt32(threads));
  b.CreateCondBr(b.CreateICmpSGT(used, b.getInt32(1)), fork, alone);
  b.SetInsertPoint(fork);
  auto* const type = llvm::FunctionType::get(b.getVoidTy(), {ptr, i64, i64, i32, ptr, ptr}, false);
  Value* const parallel_for = b.CreateLoad(ptr, b.CreateStructGEP(layout, runtime, 0));
  b.CreateCall(type, parallel_for,
               {runtime, b.getInt64(extent), b.getInt64(chunk), used, body, context});
  b.CreateBr(join);
  b.SetInsertPoint(alone);
  b.CreateCall(body, {context, b.getInt64(0), b.getInt64(extent), b.getInt64(0)});
  b.CreateBr(join);
  b.SetInsertPoint(join);
}

// Adds the number of operations in an expression, up to the limit. Shared parts of inlined
// expressions count each time, because they are emitted each time.
void AddOperations(const ir::ExprPool& pool, ir::ExprId id, int64_t& operations) {
  if (id == ir::kNoExpr || ++operations > kMaxOperations) return;
  for (ir::ExprId operand : {pool[id].a, pool[id].b, pool[id].c})
    AddOperations(pool, operand, operations);
}

// Returns how many lanes, a power of two, contain all that are set in a constant mask. Half a
// vector takes half the time on processors that split wide vectors, and needs no mask if it is
// full.
int64_t LanesEnoughFor(const llvm::Constant& mask, int64_t lanes) {
  int64_t last = 0;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const llvm::Constant* const set = mask.getAggregateElement(static_cast<unsigned>(lane));
    if (set == nullptr) return lanes;
    if (!set->isNullValue()) last = lane;
  }
  const auto enough = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(last) + 1));
  return std::clamp<int64_t>(enough, std::min<int64_t>(2, lanes), lanes);
}

}  // namespace

FunctionEmitter::FunctionEmitter(ModuleState& state)
    : f_(state),
      index_(f_),
      hints_(f_, index_),
      memory_(f_, index_, hints_),
      exprs_(f_, index_, memory_),
      tiles_(f_, index_, memory_) {}

void FunctionEmitter::Begin(const std::string& name, bool body) {
  std::vector<llvm::Type*> types = {f_.b.getPtrTy()};
  if (body) types.insert(types.end(), 3, f_.b.getInt64Ty());
  auto* type = llvm::FunctionType::get(f_.b.getVoidTy(), types, false);
  f_.function =
      llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, *f_.state.module);
  f_.function->addFnAttr(llvm::Attribute::NoInline);
  f_.b.SetInsertPoint(f_.Block("entry"));
  f_.thread = body ? static_cast<Value*>(f_.function->getArg(3)) : f_.I64(0);
  index_.PushScope();
}

void FunctionEmitter::End() {
  hints_.Fence();
  f_.b.CreateRetVoid();
  index_.PopScope();
}

absl::StatusOr<llvm::Function*> FunctionEmitter::EmitKernel(ModuleState& state,
                                                            const std::string& name, StmtId body) {
  FunctionEmitter emitter(state);
  emitter.Begin(name, /*body=*/false);
  HONE_RETURN_IF_ERROR(emitter.Emit(body));
  emitter.End();
  return emitter.f_.function;
}

absl::Status FunctionEmitter::Emit(StmtId id) {
  if (id == lower::kNoStmt) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const bool emitted, EmitTileNest(id, lower::kNoStmt));
  return emitted ? absl::OkStatus() : EmitByKind(id);
}

absl::Status FunctionEmitter::EmitSeq(const Stmt& seq) {
  for (size_t c = 0; c < seq.children.size(); ++c) {
    if (c + 1 < seq.children.size() && seq.children[c] != lower::kNoStmt) {
      HONE_ASSIGN_OR_RETURN(const bool both, EmitTileNest(seq.children[c + 1], seq.children[c]));
      if (both) {
        ++c;
        continue;
      }
    }
    HONE_RETURN_IF_ERROR(Emit(seq.children[c]));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FunctionEmitter::EmitTileNest(StmtId nest, StmtId init) {
  HONE_ASSIGN_OR_RETURN(const bool entered, tiles_.Enter(nest, init));
  if (!entered) return false;
  HONE_RETURN_IF_ERROR(EmitByKind(nest));
  tiles_.Leave();
  return true;
}

absl::Status FunctionEmitter::EmitByKind(StmtId id) {
  const Stmt stmt = f_.state.program.stmts[id];
  switch (stmt.kind) {
    case Stmt::Kind::kSeq:
      return EmitSeq(stmt);
    case Stmt::Kind::kFor:
      return EmitFor(stmt);
    case Stmt::Kind::kIf:
      return EmitIf(stmt);
    case Stmt::Kind::kStore:
      return EmitStore(id);
    case Stmt::Kind::kBarrier:
    case Stmt::Kind::kCommitCopies:
    case Stmt::Kind::kWaitForCopies:
      return absl::UnimplementedError("a barrier of a GPU's threads has no CPU code");
  }
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitFor(const Stmt& loop) {
  switch (loop.loop) {
    case ir::LoopKind::kUnrolled:
      HONE_RETURN_IF_ERROR(EmitUnrolled(loop));
      break;
    case ir::LoopKind::kVectorized:
      if (f_.lanes != 0)
        return absl::UnimplementedError("a vectorized loop inside a vectorized loop");
      index_.Set(loop.var, {VariableKind::kLane});
      f_.lanes = f_.loop_lanes = loop.extent;
      HONE_RETURN_IF_ERROR(Emit(loop.children[0]));
      f_.lanes = f_.loop_lanes = 0;
      break;
    case ir::LoopKind::kParallel:
      return EmitParallel(loop);
    case ir::LoopKind::kSerial:
      return EmitSerial(loop);
    case ir::LoopKind::kTensor:
      return absl::UnimplementedError("a tensor loop was not lowered");
    case ir::LoopKind::kBound:
      return absl::UnimplementedError("a loop bound to a GPU axis has no CPU code");
  }
  index_.Unset(loop.var);
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitUnrolled(const Stmt& loop) {
  const bool separate = StepsThroughTile(f_.state.program, loop);
  const int64_t at_once =
      IterationsSideBySide(f_.state.program, loop, f_.state.target->vector_bits);
  llvm::SmallVector<llvm::Instruction*, 8> firsts;  // of the iterations since the last group
  for (int64_t i = 0; i < loop.extent; ++i) {
    if (separate && i > 0) SeparateSteps(f_.b);
    index_.SetConstant(loop.var, i);
    llvm::BasicBlock* const block = f_.b.GetInsertBlock();
    llvm::Instruction* const last = block->empty() ? nullptr : &block->back();
    HONE_RETURN_IF_ERROR(Emit(loop.children[0]));
    if (at_once == 1) continue;
    // Null if no code was emitted, because the iteration stores nothing.
    llvm::Instruction* first = last != nullptr ? last->getNextNode() : nullptr;
    if (last == nullptr && !block->empty()) first = &block->front();
    if (f_.b.GetInsertBlock() != block) {
      firsts.clear();  // a branch
      continue;
    }
    if (first != nullptr) firsts.push_back(first);
    if (i % at_once == at_once - 1 || i == loop.extent - 1) {
      if (firsts.size() > 1) PlaceSideBySide(firsts);
      firsts.clear();
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitLoop(const Stmt& loop, Value* begin, Value* end, bool guarded,
                                       bool hoisting) {
  llvm::IRBuilder<>& b = f_.b;
  llvm::BasicBlock* preheader = b.GetInsertBlock();
  llvm::BasicBlock* body = f_.Block("loop");
  llvm::BasicBlock* exit = f_.Block("done");
  if (guarded) {
    b.CreateCondBr(b.CreateICmpSLT(begin, end), body, exit);
  } else {
    b.CreateBr(body);
  }
  b.SetInsertPoint(body);
  llvm::PHINode* phi = b.CreatePHI(b.getInt64Ty(), 2, f_.state.program.atoms[loop.var].name);
  phi->addIncoming(begin, preheader);
  const TileEmitter::Loop tiles = tiles_.BeginLoop(preheader);
  index_.PushScope();
  index_.SetRuntime(loop.var, phi);
  if (hoisting) exprs_.EnterLoop(preheader->getTerminator(), loop.children[0]);
  HONE_RETURN_IF_ERROR(Emit(loop.children[0]));
  if (hoisting) exprs_.LeaveLoop();
  Value* next = b.CreateNSWAdd(phi, f_.I64(1));
  llvm::BasicBlock* const latch = b.GetInsertBlock();
  phi->addIncoming(next, latch);
  tiles_.EndLoop(tiles);
  b.CreateCondBr(b.CreateICmpSLT(next, end), body, exit);
  index_.PopScope();
  index_.Unset(loop.var);
  b.SetInsertPoint(exit);
  if (guarded) tiles_.AfterLoop(tiles, preheader, latch);
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitSerial(const Stmt& loop) {
  Value* begin = f_.I64(0);
  Value* end = f_.I64(loop.extent);
  for (const Index& bound : loop.begins) {
    begin = f_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, begin, index_.Scalar(bound));
  }
  for (const Index& bound : loop.ends) {
    end = f_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, index_.Scalar(bound));
  }
  const bool guarded = !loop.begins.empty() || !loop.ends.empty();
  const int64_t distance = ir::ValueOf(loop.annotations, ir::Annotation::Key::kPrefetch, 0);
  if (distance > 0) hints_.EnterLoop(loop.var, distance);
  HONE_RETURN_IF_ERROR(EmitLoop(loop, begin, end, guarded, /*hoisting=*/true));
  if (distance > 0) hints_.LeaveLoop();
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitIf(const Stmt& branch) {
  const IndexEmitter::Split split = index_.SplitOf(branch.condition.index);
  if (!split.is_uniform()) return absl::UnimplementedError("a branch that differs between lanes");
  const bool has_else = branch.children.size() > 1;
  if (split.runtime.terms().empty()) {
    const bool holds = split.constant >= 0 && split.constant < branch.condition.extent;
    if (holds) return Emit(branch.children[0]);
    return has_else ? Emit(branch.children[1]) : absl::OkStatus();
  }
  Value* holds = IsBelow(split, branch.condition.extent);
  llvm::BasicBlock* then = f_.Block("then");
  llvm::BasicBlock* otherwise = has_else ? f_.Block("else") : nullptr;
  llvm::BasicBlock* join = f_.Block("join");
  f_.b.CreateCondBr(holds, then, has_else ? otherwise : join);
  for (size_t side = 0; side < branch.children.size(); ++side) {
    f_.b.SetInsertPoint(side == 0 ? then : otherwise);
    index_.PushScope();
    HONE_RETURN_IF_ERROR(Emit(branch.children[side]));
    index_.PopScope();
    f_.b.CreateBr(join);
  }
  f_.b.SetInsertPoint(join);
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitParallel(const Stmt& loop) {
  // Variables of enclosing loops that the body needs. Runtime values are passed in the context;
  // constants are emitted again.
  std::vector<AtomId> captured;
  FunctionEmitter inner(f_.state);
  for (size_t v = 0; v < index_.variables().size(); ++v) {
    const auto var = static_cast<AtomId>(v);
    if (index_[var].kind == VariableKind::kRuntime) captured.push_back(var);
    if (index_[var].kind == VariableKind::kConstant) inner.index_.Set(var, index_[var]);
  }
  hints_.Fence();  // other threads may read what this one has stored
  tiles_.Forget();
  if (captured.size() > kMaxCaptures)
    return absl::UnimplementedError("a parallel loop under more than 32 serial loops");
  inner.Begin(absl::StrCat("hone_parallel_", f_.state.parallel_bodies++), /*body=*/true);
  llvm::Function* body = inner.f_.function;
  std::vector<Value*> values;  // loaded in the outermost scope, so that they precede everything
  for (size_t c = 0; c < captured.size(); ++c) {
    Value* slot = inner.f_.Slot(f_.state.CaptureSlot() + static_cast<int64_t>(c));
    values.push_back(inner.f_.b.CreateLoad(f_.b.getInt64Ty(), slot));
  }
  inner.index_.PushScope();
  for (size_t c = 0; c < captured.size(); ++c) inner.index_.SetRuntime(captured[c], values[c]);
  // A serial loop over this thread's share.
  HONE_RETURN_IF_ERROR(inner.EmitLoop(loop, body->getArg(1), body->getArg(2), /*guarded=*/true,
                                      /*hoisting=*/false));
  inner.index_.PopScope();
  inner.End();

  for (size_t c = 0; c < captured.size(); ++c) {
    f_.b.CreateStore(index_[captured[c]].value,
                     f_.Slot(f_.state.CaptureSlot() + static_cast<int64_t>(c)));
  }
  f_.state.last_parallel = {body, loop.extent, !captured.empty()};
  Value* context = f_.function->getArg(0);
  const int64_t threads = ir::ValueOf(loop.annotations, ir::Annotation::Key::kThreads, 1);
  if (threads <= 1) {
    f_.b.CreateCall(body, {context, f_.I64(0), f_.I64(loop.extent), f_.I64(0)});
    return absl::OkStatus();
  }
  const int64_t chunk = ir::ValueOf(loop.annotations, ir::Annotation::Key::kOmpSchedule, 0);
  Value* const runtime = f_.b.CreateLoad(f_.b.getPtrTy(), f_.Slot(f_.state.RuntimeSlot()));
  EmitParallelFor(f_.b, body, context, runtime, loop.extent, static_cast<int>(threads), chunk);
  return absl::OkStatus();
}

bool FunctionEmitter::MayComputeFewerLanes(const Stmt& store) const {
  // Instructions and reductions over lanes need all lanes.
  return ir::ValueOf(store.annotations, ir::Annotation::Key::kIntrinsic, -1) < 0 &&
         !ReducesLanes(f_, index_, store);
}

bool FunctionEmitter::DependsOnAny(const Index& index, absl::Span<const AtomId> vars) const {
  return std::any_of(vars.begin(), vars.end(),
                     [&](AtomId var) { return f_.state.program.atoms.DependsOn(index, var); });
}

Value* FunctionEmitter::IsBelow(const IndexEmitter::Split& split, int64_t extent) {
  Value* index = f_.b.CreateAdd(index_.RuntimeValue(split.runtime), f_.I64(split.constant));
  return f_.b.CreateICmpULT(index, f_.I64(extent));
}

absl::Status FunctionEmitter::EmitStore(StmtId id) {
  ModuleState& state = f_.state;
  if (++state.stores > kMaxStatements) {
    return absl::InvalidArgumentError(
        absl::StrCat("the unrolled code exceeds ", kMaxStatements, " statements"));
  }
  const Stmt store = state.program.stmts[id];
  for (ir::ExprId value : store.values) AddOperations(state.program.pool, value, state.operations);
  if (state.operations > kMaxOperations) {
    return absl::InvalidArgumentError(
        absl::StrCat("the unrolled code exceeds ", kMaxOperations, " operations"));
  }
  return EmitLanes(id, store);
}

absl::Status FunctionEmitter::EmitLanes(StmtId id, const Stmt& store) {
  llvm::IRBuilder<>& b = f_.b;
  Value* branch = nullptr;                     // i1
  Value *mask = nullptr, *replaced = nullptr;  // <lanes x i1>
  const auto require = [&](Value*& all, Value* holds) {
    all = all == nullptr ? holds : b.CreateAnd(all, holds);
  };
  for (const auto* list : {&store.conditions, &store.guards}) {
    for (const ir::Condition& condition : *list) {
      const IndexEmitter::Split split = index_.SplitOf(condition.index);
      if (split.is_uniform() && split.runtime.IsConstant()) {
        if (split.constant < 0 || split.constant >= condition.extent) return absl::OkStatus();
      } else if (split.is_uniform()) {
        require(branch, IsBelow(split, condition.extent));
      } else {
        Value* index = index_.Vector(condition.index);
        const int64_t largest = index->getType()->getScalarSizeInBits() == 32
                                    ? std::numeric_limits<int32_t>::max()
                                    : condition.extent;
        Value* extent =
            llvm::ConstantInt::get(index->getType(), std::min(condition.extent, largest));
        Value* const holds = b.CreateICmpULT(index, extent);
        require(mask, holds);
        const bool garbage = store.may_leave_garbage && list == &store.conditions &&
                             !DependsOnAny(condition.index, store.reduce_vars);
        if (!garbage) require(replaced, holds);
      }
    }
  }
  if (auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask)) {
    if (constant->isNullValue()) return absl::OkStatus();
    if (const int64_t lanes = LanesEnoughFor(*constant, f_.lanes);
        lanes < f_.lanes && MayComputeFewerLanes(store)) {
      const int64_t all = std::exchange(f_.lanes, lanes);
      const absl::Status status = EmitLanes(id, store);
      f_.lanes = all;
      return status;
    }
    if (constant->isAllOnesValue()) mask = replaced = nullptr;
  } else if (mask != nullptr) {
    // Addresses may be valid only for live lanes, so nothing is accessed if there are none.
    require(branch, b.CreateOrReduce(mask));
  }
  if (branch == nullptr) return EmitStoreUnder(id, store, mask, replaced);
  llvm::BasicBlock* then = f_.Block("live");
  llvm::BasicBlock* join = f_.Block("next");
  b.CreateCondBr(branch, then, join);
  b.SetInsertPoint(then);
  index_.PushScope();
  HONE_RETURN_IF_ERROR(EmitStoreUnder(id, store, mask, replaced));
  index_.PopScope();
  b.CreateBr(join);
  b.SetInsertPoint(join);
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitStoreUnder(StmtId id, const Stmt& store, Value* mask,
                                             Value* replaced) {
  if (IsTileStore(store)) {
    if (mask != nullptr) return absl::InternalError("a tile is computed under a mask");
    return tiles_.EmitStore(store);
  }
  tiles_.Forget();
  if (ir::ValueOf(store.annotations, ir::Annotation::Key::kIntrinsic, -1) >= 0) {
    return EmitIntrinsic(f_, index_, memory_, store, mask);
  }
  exprs_.BeginStatement();
  if (ReducesLanes(f_, index_, store)) {
    return EmitLaneReduction(f_, exprs_, memory_, store, mask);
  }
  lower::LoweredProgram& program = f_.state.program;
  const auto [values, added] = combined_.try_emplace(id);
  if (added) {
    values->second.assign(store.values.begin(), store.values.end());
    if (store.reducer != ir::Reducer::kNone) {
      std::vector<ir::ExprId> old;
      for (ir::BufferId output : store.outputs) {
        old.push_back(program.pool.Load(output, program.buffers[output].dtype, store.indices));
      }
      values->second = ir::Combine(program.pool, store.reducer, old, store.values);
    }
  }
  std::vector<Value*> results;
  for (ir::ExprId value : values->second) {
    HONE_ASSIGN_OR_RETURN(results.emplace_back(), exprs_.Emit(value, mask));
  }
  hints_.SetNonTemporal(ir::ValueOf(store.annotations, ir::Annotation::Key::kNonTemporal, 0) != 0);
  for (size_t c = 0; c < results.size(); ++c) {
    HONE_RETURN_IF_ERROR(memory_.Store(store.outputs[c], store.indices[0], results[c], replaced));
  }
  hints_.SetNonTemporal(false);
  return absl::OkStatus();
}

}  // namespace hone::codegen

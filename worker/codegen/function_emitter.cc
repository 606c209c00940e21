#include "worker/codegen/function_emitter.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"
#include "worker/codegen/compile.h"
#include "worker/codegen/openmp.h"

namespace hone::codegen {

using ir::AtomId;
using ir::Index;
using llvm::Value;
using lower::Stmt;
using lower::StmtId;
using lower::Storage;

FunctionEmitter::FunctionEmitter(ModuleState& state)
    : state_(state),
      context_(state.module->getContext()),
      builder_(context_),
      convert_(builder_, *state.target),
      math_(builder_, *state.target),
      variables_(state.program.atoms.size()) {}

llvm::Function* FunctionEmitter::Begin(const std::string& name, bool body) {
  std::vector<llvm::Type*> types = {builder_.getPtrTy()};
  if (body) types.insert(types.end(), 3, builder_.getInt64Ty());
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), types, false);
  function_ =
      llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, *state_.module);
  function_->addFnAttr(llvm::Attribute::NoInline);
  context_argument_ = function_->getArg(0);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  thread_ = body ? static_cast<Value*>(function_->getArg(3)) : I64(0);
  PushScope();
  return function_;
}

void FunctionEmitter::End() {
  Fence();
  builder_.CreateRetVoid();
  PopScope();
}

// Hoisted values go before the branch that ends the scope's first block.
void FunctionEmitter::PushScope() {
  auto* next = llvm::BasicBlock::Create(context_, "", function_);
  llvm::Instruction* branch = builder_.CreateBr(next);
  scopes_.push_back({.insert_before = branch});
  builder_.SetInsertPoint(next);
}

absl::StatusOr<llvm::Function*> FunctionEmitter::EmitKernel(ModuleState& state,
                                                            const std::string& name, StmtId body) {
  FunctionEmitter emitter(state);
  llvm::Function* function = emitter.Begin(name, /*body=*/false);
  HONE_RETURN_IF_ERROR(emitter.Emit(body));
  emitter.End();
  return function;
}

absl::Status FunctionEmitter::Emit(StmtId id) {
  if (id == lower::kNoStmt) return absl::OkStatus();
  const Stmt stmt = state_.program.stmts[id];
  switch (stmt.kind) {
    case Stmt::Kind::kSeq:
      for (StmtId child : stmt.children) HONE_RETURN_IF_ERROR(Emit(child));
      return absl::OkStatus();
    case Stmt::Kind::kFor:
      return EmitFor(stmt);
    case Stmt::Kind::kIf:
      return EmitIf(stmt);
    case Stmt::Kind::kStore:
      return EmitStore(id);
  }
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitFor(const Stmt& loop) {
  Variable& variable = variables_[loop.var];
  switch (loop.loop) {
    case ir::LoopKind::kUnrolled: {
      const bool separate = StepsThroughTile(loop);
      for (int64_t i = 0; i < loop.extent; ++i) {
        if (separate && i > 0) SeparateSteps();
        variables_[loop.var] = {Variable::Kind::kConstant, i};
        HONE_RETURN_IF_ERROR(Emit(loop.children[0]));
      }
      break;
    }
    case ir::LoopKind::kVectorized:
      if (lanes_ != 0)
        return absl::UnimplementedError("a vectorized loop inside a vectorized loop");
      variable = {Variable::Kind::kLane};
      lanes_ = loop.extent;
      HONE_RETURN_IF_ERROR(Emit(loop.children[0]));
      lanes_ = 0;
      break;
    case ir::LoopKind::kParallel:
      return EmitParallel(loop);
    case ir::LoopKind::kSerial:
      return EmitSerial(loop);
    case ir::LoopKind::kTensor:
      return absl::UnimplementedError("a tensor loop that no pass has lowered");
    case ir::LoopKind::kBound:
      return absl::UnimplementedError("a loop bound to a GPU axis has no CPU code");
  }
  variables_[loop.var] = {};
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitSerial(const Stmt& loop) {
  Value* begin = I64(0);
  Value* end = I64(loop.extent);
  bool runtime = false;
  for (const Index& bound : loop.begins) {
    begin = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, begin, ScalarIndex(bound));
    runtime = true;
  }
  for (const Index& bound : loop.ends) {
    end = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, ScalarIndex(bound));
    runtime = true;
  }
  auto* preheader = builder_.GetInsertBlock();
  auto* body = llvm::BasicBlock::Create(context_, "loop", function_);
  auto* exit = llvm::BasicBlock::Create(context_, "done", function_);
  if (runtime) {
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), body, exit);
  } else {
    builder_.CreateBr(body);
  }
  builder_.SetInsertPoint(body);
  llvm::PHINode* phi =
      builder_.CreatePHI(builder_.getInt64Ty(), 2, state_.program.atoms[loop.var].name);
  phi->addIncoming(begin, preheader);
  PushScope();
  EnterLoop(preheader->getTerminator(), loop.children[0]);
  variables_[loop.var] = {Variable::Kind::kRuntime, 0, phi, static_cast<int>(scopes_.size()) - 1};
  const int64_t distance = ir::ValueOf(loop.annotations, ir::Annotation::Key::kPrefetch, 0);
  if (distance > 0) prefetches_.push_back({loop.var, distance, {}});
  HONE_RETURN_IF_ERROR(Emit(loop.children[0]));
  if (distance > 0) prefetches_.pop_back();
  Value* next = builder_.CreateNSWAdd(phi, I64(1));
  phi->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), body, exit);
  PopScope();
  variables_[loop.var] = {};
  builder_.SetInsertPoint(exit);
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitIf(const Stmt& branch) {
  const Split split = SplitIndex(branch.condition.index);
  if (split.irregular || split.lane != 0)
    return absl::UnimplementedError("a branch that differs between lanes");
  Value* runtime = RuntimeValue(split.runtime);
  const bool has_else = branch.children.size() > 1;
  if (runtime == nullptr) {
    const bool holds = split.constant >= 0 && split.constant < branch.condition.extent;
    if (holds) return Emit(branch.children[0]);
    return has_else ? Emit(branch.children[1]) : absl::OkStatus();
  }
  Value* index = builder_.CreateAdd(runtime, I64(split.constant));
  Value* holds = builder_.CreateICmpULT(index, I64(branch.condition.extent));
  auto* then = llvm::BasicBlock::Create(context_, "then", function_);
  auto* otherwise = has_else ? llvm::BasicBlock::Create(context_, "else", function_) : nullptr;
  auto* join = llvm::BasicBlock::Create(context_, "join", function_);
  builder_.CreateCondBr(holds, then, has_else ? otherwise : join);
  for (size_t side = 0; side < branch.children.size(); ++side) {
    builder_.SetInsertPoint(side == 0 ? then : otherwise);
    PushScope();
    HONE_RETURN_IF_ERROR(Emit(branch.children[side]));
    PopScope();
    builder_.CreateBr(join);
  }
  builder_.SetInsertPoint(join);
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitParallel(const Stmt& loop) {
  lower::LoweredProgram& program = state_.program;
  const std::string name = absl::StrCat("hone_parallel_", state_.parallel_bodies++);
  // Values that the body needs from enclosing loops: runtime values travel in the context;
  // constants are emitted again.
  std::vector<AtomId> captured;
  FunctionEmitter inner(state_);
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].kind == Variable::Kind::kRuntime) captured.push_back(static_cast<AtomId>(v));
    if (variables_[v].kind == Variable::Kind::kConstant) inner.variables_[v] = variables_[v];
  }
  if (captured.size() > kMaxCaptures)
    return absl::UnimplementedError("a parallel loop under more than 32 serial loops");
  llvm::Function* body = inner.Begin(name, /*body=*/true);
  for (size_t c = 0; c < captured.size(); ++c) {
    Value* slot = inner.builder_.CreateConstInBoundsGEP1_64(
        inner.builder_.getInt64Ty(), inner.context_argument_, state_.CaptureSlot() + c);
    // In the outermost scope, so the loads precede everything.
    Value* value = inner.builder_.CreateLoad(inner.builder_.getInt64Ty(), slot);
    inner.variables_[captured[c]] = {Variable::Kind::kRuntime, 0, value, 1};
  }
  inner.PushScope();
  // A serial loop over this thread's share.
  auto& b = inner.builder_;
  Value* begin = body->getArg(1);
  Value* end = body->getArg(2);
  auto* preheader = b.GetInsertBlock();
  auto* loop_block = llvm::BasicBlock::Create(context_, "share", body);
  auto* exit = llvm::BasicBlock::Create(context_, "done", body);
  b.CreateCondBr(b.CreateICmpSLT(begin, end), loop_block, exit);
  b.SetInsertPoint(loop_block);
  llvm::PHINode* phi = b.CreatePHI(b.getInt64Ty(), 2, program.atoms[loop.var].name);
  phi->addIncoming(begin, preheader);
  inner.PushScope();
  inner.variables_[loop.var] = {Variable::Kind::kRuntime, 0, phi,
                                static_cast<int>(inner.scopes_.size()) - 1};
  HONE_RETURN_IF_ERROR(inner.Emit(loop.children[0]));
  Value* next = b.CreateNSWAdd(phi, b.getInt64(1));
  phi->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), loop_block, exit);
  inner.PopScope();
  b.SetInsertPoint(exit);
  inner.PopScope();
  inner.End();

  for (size_t c = 0; c < captured.size(); ++c) {
    Value* slot = builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), context_argument_,
                                                      state_.CaptureSlot() + c);
    builder_.CreateStore(variables_[captured[c]].value, slot);
  }
  state_.last_parallel = {body, loop.extent, !captured.empty()};
  const int64_t threads = ir::ValueOf(loop.annotations, ir::Annotation::Key::kThreads, 1);
  if (threads <= 1) {
    builder_.CreateCall(body, {context_argument_, I64(0), I64(loop.extent), I64(0)});
    return absl::OkStatus();
  }
  const int64_t chunk = ir::ValueOf(loop.annotations, ir::Annotation::Key::kOmpSchedule, 0);
  EmitFork(builder_, body, context_argument_, loop.extent, static_cast<int>(threads), chunk);
  return absl::OkStatus();
}

namespace {

// Stops at the limit. Shared parts of inlined expressions count each time, because they are emitted
// each time.
void AddOperations(const ir::ExprPool& pool, ir::ExprId id, int64_t& operations) {
  if (id == ir::kNoExpr || ++operations > kMaxOperations) return;
  for (ir::ExprId operand : {pool[id].a, pool[id].b, pool[id].c})
    AddOperations(pool, operand, operations);
}

}  // namespace

absl::Status FunctionEmitter::EmitStore(StmtId id) {
  if (++state_.stores > kMaxStatements) {
    return absl::InvalidArgumentError(
        absl::StrCat("the unrolled code exceeds ", kMaxStatements, " statements"));
  }
  const Stmt store = state_.program.stmts[id];
  for (ir::ExprId value : store.values)
    AddOperations(state_.program.pool, value, state_.operations);
  if (state_.operations > kMaxOperations) {
    return absl::InvalidArgumentError(
        absl::StrCat("the unrolled code exceeds ", kMaxOperations, " operations"));
  }
  Value* branch = nullptr;  // i1
  Value* mask = nullptr;    // <lanes x i1>
  for (const auto* list : {&store.conditions, &store.guards}) {
    for (const ir::Condition& condition : *list) {
      const Split split = SplitIndex(condition.index);
      const bool per_lane = split.lane != 0 || split.irregular;
      if (!per_lane && split.runtime.IsConstant()) {
        if (split.constant < 0 || split.constant >= condition.extent) return absl::OkStatus();
        continue;
      }
      if (!per_lane) {
        Value* index = builder_.CreateAdd(RuntimeValue(split.runtime), I64(split.constant));
        Value* holds = builder_.CreateICmpULT(index, I64(condition.extent));
        branch = branch == nullptr ? holds : builder_.CreateAnd(branch, holds);
        continue;
      }
      Value* index = VectorIndex(condition.index);
      const int64_t largest = index->getType()->getScalarSizeInBits() == 32
                                  ? std::numeric_limits<int32_t>::max()
                                  : condition.extent;
      Value* extent = llvm::ConstantInt::get(index->getType(), std::min(condition.extent, largest));
      Value* holds = builder_.CreateICmpULT(index, extent);
      mask = mask == nullptr ? holds : builder_.CreateAnd(mask, holds);
    }
  }
  if (auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask)) {
    if (constant->isNullValue()) return absl::OkStatus();
    if (constant->isAllOnesValue()) mask = nullptr;
  } else if (mask != nullptr) {
    // Addresses may be valid only for live lanes, so nothing is accessed if there are none.
    Value* any = builder_.CreateOrReduce(mask);
    branch = branch == nullptr ? any : builder_.CreateAnd(branch, any);
  }
  if (branch == nullptr) return EmitStoreUnder(id, store, mask);
  auto* then = llvm::BasicBlock::Create(context_, "live", function_);
  auto* join = llvm::BasicBlock::Create(context_, "next", function_);
  builder_.CreateCondBr(branch, then, join);
  builder_.SetInsertPoint(then);
  PushScope();
  HONE_RETURN_IF_ERROR(EmitStoreUnder(id, store, mask));
  PopScope();
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitStoreUnder(StmtId id, const Stmt& store, Value* mask) {
  if (ir::ValueOf(store.annotations, ir::Annotation::Key::kIntrinsic, -1) >= 0)
    return EmitIntrinsic(id, store, mask);
  if (ReducesLanes(store)) return EmitLaneReduction(id, store, mask);
  lower::LoweredProgram& program = state_.program;
  auto values = combined_.find(id);
  if (values == combined_.end()) {
    absl::InlinedVector<ir::ExprId, 2> combined(store.values.begin(), store.values.end());
    if (store.reducer != ir::Reducer::kNone) {
      std::vector<ir::ExprId> old;
      for (ir::BufferId output : store.outputs) {
        old.push_back(program.pool.Load(output, program.buffers[output].dtype, store.indices));
      }
      combined = ir::Combine(program.pool, store.reducer, old, store.values);
    }
    values = combined_.emplace(id, std::move(combined)).first;
  }
  std::vector<Value*> results;
  emitted_.clear();
  for (ir::ExprId value : values->second) {
    HONE_ASSIGN_OR_RETURN(results.emplace_back(), EmitExpr(value, mask));
  }
  nontemporal_ = ir::ValueOf(store.annotations, ir::Annotation::Key::kNonTemporal, 0) != 0;
  for (size_t c = 0; c < results.size(); ++c) {
    HONE_RETURN_IF_ERROR(StoreTo(store.outputs[c], store.indices[0], results[c], mask));
  }
  nontemporal_ = false;
  return absl::OkStatus();
}

}  // namespace hone::codegen

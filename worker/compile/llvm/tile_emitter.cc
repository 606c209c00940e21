#include "worker/compile/llvm/tile_emitter.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {

using ir::Index;
using llvm::Value;
using lower::Stmt;
using lower::StmtId;

namespace {

constexpr int kOperandTiles = 2;  // registers that a nest needs besides its sums

}  // namespace

bool IsTileStore(const Stmt& store) {
  const ir::Intrinsic* const intrinsic = lower::IntrinsicOf(store);
  return intrinsic != nullptr && intrinsic->shape == ir::Intrinsic::Shape::kTile;
}

const Stmt* TileEmitter::StoreOf(StmtId nest) const {
  if (nest == lower::kNoStmt) return nullptr;
  const std::vector<Stmt>& stmts = f_.state.program.stmts;
  const Stmt* at = &stmts[nest];
  while (at->kind == Stmt::Kind::kFor && at->children.size() == 1 &&
         (at->loop == ir::LoopKind::kSerial || at->loop == ir::LoopKind::kUnrolled)) {
    at = &stmts[at->children[0]];
  }
  const bool found = at->kind == Stmt::Kind::kStore && IsTileStore(*at) && at->conditions.empty() &&
                     at->guards.empty();
  return found ? at : nullptr;
}

absl::Status TileEmitter::CollectSums(StmtId nest, std::vector<Place>& sums) {
  const Stmt stmt = f_.state.program.stmts[nest];
  if (stmt.kind == Stmt::Kind::kStore) {
    HONE_ASSIGN_OR_RETURN(Place sum, SumOf(stmt));
    const auto same = [&](const Place& other) { return other.Matches(sum); };
    if (std::ranges::none_of(sums, same)) sums.push_back(std::move(sum));
    return absl::OkStatus();
  }
  const bool repeats = f_.state.program.atoms.DependsOn(StoreOf(nest)->indices[0], stmt.var);
  const int64_t iterations = stmt.loop == ir::LoopKind::kUnrolled && repeats ? stmt.extent : 1;
  for (int64_t i = 0; i < iterations; ++i) {
    if (stmt.loop == ir::LoopKind::kUnrolled) index_.SetConstant(stmt.var, i);
    const absl::Status status = CollectSums(stmt.children[0], sums);
    index_.Unset(stmt.var);
    HONE_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TileEmitter::Enter(StmtId nest, StmtId init) {
  const lower::LoweredProgram& program = f_.state.program;
  if (code_ != nullptr) return false;
  const Stmt* const store = StoreOf(nest);
  const Stmt* const zero = StoreOf(init);
  if (store == nullptr || store->reducer == ir::Reducer::kNone) return false;
  if (init != lower::kNoStmt && (zero == nullptr || zero->reducer != ir::Reducer::kNone))
    return false;
  HONE_ASSIGN_OR_RETURN(const TileCode* const code,
                        f_.state.machine->TileOf(*lower::IntrinsicOf(*store)));
  // The places must be the same in every iteration, and few.
  int64_t places = 1;
  for (const Stmt* at = &program.stmts[nest]; at->kind == Stmt::Kind::kFor;
       at = &program.stmts[at->children[0]]) {
    if (!program.atoms.DependsOn(store->indices[0], at->var)) continue;
    if (at->loop != ir::LoopKind::kUnrolled) return false;
    places *= at->extent;
    if (places > code->registers() - kOperandTiles) return false;
  }
  std::vector<Place> sums, zeros;
  HONE_RETURN_IF_ERROR(CollectSums(nest, sums));
  if (init != lower::kNoStmt) {
    for (const Stmt* at = &program.stmts[init]; at->kind == Stmt::Kind::kFor;
         at = &program.stmts[at->children[0]]) {
      if (at->loop != ir::LoopKind::kUnrolled) return false;
    }
    HONE_RETURN_IF_ERROR(CollectSums(init, zeros));
    const auto is_sum = [&](const Place& place) {
      return std::ranges::any_of(sums, [&](const Place& sum) { return sum.Matches(place); });
    };
    if (zeros.size() != sums.size() || !std::ranges::all_of(zeros, is_sum)) return false;
  }
  code_ = code;
  sums_ = std::move(sums);
  for (Place& sum : sums_) {
    sum.value = zeros.empty() ? code->Load(f_.b, sum.memory) : code->Zero(f_.b, sum.memory);
  }
  return true;
}

void TileEmitter::Leave() {
  for (const Place& sum : sums_) StoreSum(sum, *code_);
  sums_.clear();
  code_ = nullptr;
}

void TileEmitter::StoreSum(const Place& sum, const TileCode& code) {
  code.Store(f_.b, sum.value, sum.memory);
  std::erase_if(loaded_, [&](const Place& tile) { return tile.buffer == sum.buffer; });
}

TileEmitter::Loop TileEmitter::BeginLoop(llvm::BasicBlock* before) {
  Loop loop;
  for (Place& sum : sums_) {
    loop.before.push_back(sum.value);
    llvm::PHINode* const phi = f_.b.CreatePHI(sum.value->getType(), 2);
    phi->addIncoming(sum.value, before);
    loop.phis.push_back(phi);
    sum.value = phi;
  }
  return loop;
}

void TileEmitter::EndLoop(const Loop& loop) {
  for (size_t s = 0; s < loop.phis.size(); ++s)
    loop.phis[s]->addIncoming(sums_[s].value, f_.b.GetInsertBlock());
}

void TileEmitter::AfterLoop(const Loop& loop, llvm::BasicBlock* before, llvm::BasicBlock* latch) {
  for (size_t s = 0; s < loop.phis.size(); ++s) {
    llvm::PHINode* const phi = f_.b.CreatePHI(loop.phis[s]->getType(), 2);
    phi->addIncoming(loop.before[s], before);
    phi->addIncoming(sums_[s].value, latch);
    sums_[s].value = phi;
  }
}

absl::StatusOr<TileEmitter::Place> TileEmitter::PlaceOf(const Stmt& store, ir::BufferId buffer,
                                                        const Index& offset, ir::AtomId var,
                                                        int64_t step, int64_t rows,
                                                        int64_t row_elements) {
  const ir::Buffer& stored = f_.state.program.buffers[buffer];
  Place place{.buffer = buffer, .at = index_.SplitOf(offset)};
  const int64_t stride = index_.StepOf(offset, var, step);
  if (place.at.irregular || stride < 1) {
    return absl::InternalError(absl::StrCat(lower::IntrinsicOf(store)->name, ": ", stored.name,
                                            " does not have the layout that it needs"));
  }
  const int64_t bytes = ir::DTypeBytes(stored.dtype);
  place.memory = {memory_.Address(buffer, place.at), f_.I64(stride * bytes), rows,
                  row_elements * bytes};
  return place;
}

absl::StatusOr<TileEmitter::Place> TileEmitter::SumOf(const Stmt& store) {
  const ir::Stage& stage = ir::DescriptionOf(*lower::IntrinsicOf(store)).stages.back();
  for (const ir::AtomId var : store.tensor_vars) index_.SetConstant(var, 0);
  const absl::Cleanup unset = [&] {
    for (const ir::AtomId var : store.tensor_vars) index_.Unset(var);
  };
  return PlaceOf(store, store.outputs[0], store.indices[0], store.tensor_vars[0], 1,
                 stage.spatial[0].extent, stage.spatial[1].extent);
}

absl::StatusOr<TileEmitter::Operands> TileEmitter::OperandsOf(const Stmt& store) {
  const ir::Workload& description = ir::DescriptionOf(*lower::IntrinsicOf(store));
  const ir::Stage& stage = description.stages.back();
  const int64_t rows = stage.spatial[0].extent, columns = stage.spatial[1].extent,
                terms = stage.reduce[0].extent;
  const int64_t group = description.tensors[description.Inputs()[1]].shape[2];
  for (const ir::AtomId var : store.tensor_vars) index_.SetConstant(var, 0);
  const absl::Cleanup unset = [&] {
    for (const ir::AtomId var : store.tensor_vars) index_.Unset(var);
  };
  const ir::AtomId row = store.tensor_vars[0], depth = store.tensor_vars[2];
  std::vector<std::pair<ir::BufferId, Index>> loads;
  const ir::ExprPool& pool = f_.state.program.pool;
  pool.VisitLoads(store.values[0], [&](const ir::Expr& load) {
    loads.emplace_back(load.buffer, pool.IndicesOf(load)[0]);
  });
  if (loads.size() != 2) {
    return absl::InternalError(
        absl::StrCat(lower::IntrinsicOf(store)->name, " with ", loads.size(), " operands"));
  }
  // The right operand does not move with the rows.
  if (index_.StepOf(loads[0].second, row, 1) == 0) std::swap(loads[0], loads[1]);
  Operands operands;
  HONE_ASSIGN_OR_RETURN(operands.left,
                        PlaceOf(store, loads[0].first, loads[0].second, row, 1, rows, terms));
  HONE_ASSIGN_OR_RETURN(operands.right, PlaceOf(store, loads[1].first, loads[1].second, depth,
                                                group, terms / group, columns * group));
  return operands;
}

void TileEmitter::LimitLoaded(const TileCode& code) {
  const size_t most = code.registers() - std::max<size_t>(1, sums_.size());
  if (loaded_.size() > most) loaded_.erase(loaded_.begin(), loaded_.end() - most);
}

Value* TileEmitter::Load(const Place& place, const TileCode& code) {
  if (loaded_in_ != f_.b.GetInsertBlock()) loaded_.clear();
  loaded_in_ = f_.b.GetInsertBlock();
  const auto known =
      std::ranges::find_if(loaded_, [&](const Place& other) { return other.Matches(place); });
  Place tile = known == loaded_.end() ? place : *known;
  if (known != loaded_.end()) loaded_.erase(known);
  if (tile.value == nullptr) tile.value = code.Load(f_.b, tile.memory);
  loaded_.push_back(tile);
  LimitLoaded(code);
  return tile.value;
}

absl::Status TileEmitter::EmitStore(const Stmt& store) {
  HONE_ASSIGN_OR_RETURN(const TileCode* const code,
                        f_.state.machine->TileOf(*lower::IntrinsicOf(store)));
  HONE_ASSIGN_OR_RETURN(Place sum, SumOf(store));
  const auto in_nest =
      std::ranges::find_if(sums_, [&](const Place& known) { return known.Matches(sum); });
  if (store.reducer == ir::Reducer::kNone) {
    sum.value = code->Zero(f_.b, sum.memory);
  } else {
    HONE_ASSIGN_OR_RETURN(const Operands operands, OperandsOf(store));
    Value* const left = Load(operands.left, *code);
    Value* const right = Load(operands.right, *code);
    Value* const old = in_nest != sums_.end() ? in_nest->value : code->Load(f_.b, sum.memory);
    sum.value = code->MultiplyAdd(f_.b, old, left, right, sum.memory, operands.left.memory);
  }
  if (in_nest != sums_.end()) {
    in_nest->value = sum.value;
  } else {
    StoreSum(sum, *code);
  }
  return absl::OkStatus();
}

}  // namespace hone::codegen

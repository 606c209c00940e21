// What schedules ask of the caches: prefetches of a loop's next iterations, stores that pass by.
#include <numeric>
#include <set>
#include <tuple>

#include "common/target/kernel_abi.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

using ir::AtomId;
using ir::Index;
using llvm::Value;
using lower::Stmt;
using lower::StmtId;
using lower::Storage;

namespace {

constexpr size_t kMaxPrefetches = 32;  // of one loop

}  // namespace

// Every stream that the iteration reads from memory is prefetched once per cache line, at the place
// where the loops inside begin.
void FunctionEmitter::EmitPrefetches(StmtId body, AtomId var, int64_t distance) {
  lower::LoweredProgram& program = state_.program;
  const int64_t line = state_.target->cache_line_bytes;
  std::set<std::tuple<ir::BufferId, std::string, int64_t>> known;
  const Index ahead = Index::Of(var) + distance, zero(0);
  const auto place = [&](AtomId id) -> const Index* {
    if (id == var) return &ahead;
    const bool known_here = variables_[id].kind == Variable::Kind::kRuntime ||
                            variables_[id].kind == Variable::Kind::kConstant;
    return known_here ? nullptr : &zero;
  };
  const auto load = [&](const ir::Expr& expr) {
    const Storage::Kind kind = program.storage[expr.buffer].kind;
    const Index offset = program.pool.IndicesOf(expr)[0];
    if (kind == Storage::Kind::kRegister || kind == Storage::Kind::kStack) return;
    if (!program.atoms.DependsOn(offset, var) || known.size() >= kMaxPrefetches) return;
    const Split split = SplitIndex(program.atoms.Substitute(offset, place));
    const int64_t bytes = split.constant * ir::DTypeBytes(expr.dtype);
    const std::string runtime = program.atoms.ToString(split.runtime);
    if (!known.emplace(expr.buffer, runtime, ir::FloorDivInt(bytes, line)).second) return;
    builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                             {Address(expr.buffer, split), builder_.getInt32(0),
                              builder_.getInt32(3), builder_.getInt32(1)});
  };
  const auto visit = [&](auto&& self, StmtId id) -> void {
    if (id == lower::kNoStmt) return;
    const Stmt stmt = program.stmts[id];
    for (ir::ExprId value : stmt.values) program.pool.VisitLoads(value, load);
    for (StmtId child : stmt.children) self(self, child);
  };
  visit(visit, body);
}

llvm::Align FunctionEmitter::AlignmentOf(const Split& split, int64_t element_bytes) const {
  // Arguments are checked when the kernel is called; all else is placed so.
  int64_t bytes = target::kBufferAlignment;
  bytes = std::gcd(bytes, split.constant * element_bytes);
  for (const ir::IndexTerm& term : split.runtime.terms()) {
    bytes = std::gcd(bytes, term.coeff * element_bytes);
  }
  return llvm::Align(static_cast<uint64_t>(bytes));
}

void FunctionEmitter::PassCaches(llvm::StoreInst* store, const Split& split,
                                 int64_t element_bytes) {
  if (!nontemporal_) return;
  const llvm::Align align = AlignmentOf(split, element_bytes);
  const auto size = static_cast<uint64_t>(
      store->getValueOperand()->getType()->getPrimitiveSizeInBits().getFixedValue() / 8);
  if (align.value() < size) return;  // the instructions take whole aligned vectors alone
  store->setAlignment(align);
  store->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(builder_.getInt32(1))));
  unfenced_ = true;
}

void FunctionEmitter::Fence() {
  // x86 orders no other store of its own after these.
  if (unfenced_ && state_.target->arch == "x86_64") {
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  }
  unfenced_ = false;
}

}  // namespace hone::codegen

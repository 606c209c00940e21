// What schedules ask of the caches: prefetches of a loop's next iterations, stores that pass by.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "common/target/kernel_abi.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

using ir::AtomId;
using ir::Index;
using llvm::Value;
using lower::Storage;

namespace {

constexpr size_t kMaxPrefetches = 256;  // of one loop

}  // namespace

// Each line that an iteration of a loop with prefetches reads is asked for once, where the code
// reads it first: so prefetches lie spread among the arithmetic and never fill the queue of misses.
void FunctionEmitter::PrefetchAhead(ir::BufferId buffer, const Index& offset, int64_t bytes) {
  lower::LoweredProgram& program = state_.program;
  const Storage::Kind kind = program.storage[buffer].kind;
  if (kind == Storage::Kind::kRegister || kind == Storage::Kind::kStack) return;
  const int64_t line = state_.target->cache_line_bytes;
  for (Prefetch& prefetch : prefetches_) {
    if (!program.atoms.DependsOn(offset, prefetch.var)) continue;
    if (prefetch.lines.size() >= kMaxPrefetches) continue;
    const Index ahead = Index::Of(prefetch.var) + prefetch.distance;
    const auto place = [&](AtomId id) { return id == prefetch.var ? &ahead : nullptr; };
    const Split split = SplitIndex(program.atoms.Substitute(offset, place));
    if (split.irregular) continue;
    const std::string runtime = program.atoms.ToString(split.runtime);
    // Of lanes in a line each, the first alone: they are gathered, which nothing here speeds up.
    const int64_t lanes = std::abs(split.lane) * bytes < line ? std::max<int64_t>(lanes_, 1) : 1;
    const int64_t last = split.constant + split.lane * (lanes - 1);
    for (int64_t at = ir::FloorDivInt(std::min(split.constant, last) * bytes, line);
         at <= ir::FloorDivInt(std::max(split.constant, last) * bytes, line); ++at) {
      if (prefetch.lines.size() >= kMaxPrefetches) break;
      if (!prefetch.lines.emplace(buffer, runtime, at).second) continue;
      Split first = split;
      first.lane = 0;
      first.constant = ir::FloorDivInt(at * line, bytes);
      builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                               {Address(buffer, first), builder_.getInt32(0), builder_.getInt32(3),
                                builder_.getInt32(1)});
    }
  }
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

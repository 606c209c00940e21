// Cache hints of schedules: prefetches for a loop's next iterations, and non-temporal stores.
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

constexpr size_t kMaxPrefetches = 256;  // per loop

}  // namespace

// Prefetches each line that an iteration of the loop reads once, where the code first reads it. The
// prefetches are thus spread among the arithmetic and do not fill the miss queue.
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
    // If each lane lies in a line of its own, only the first is prefetched: such lanes are
    // gathered, which prefetching does not speed up.
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
  // Arguments are checked when the kernel is called; all other buffers are aligned by construction.
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
  if (align.value() < size) return;  // the instructions require whole aligned vectors
  store->setAlignment(align);
  store->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(builder_.getInt32(1))));
  unfenced_ = true;
}

void FunctionEmitter::Fence() {
  // x86 does not order these stores with its other stores.
  if (unfenced_ && state_.target->arch == "x86_64") {
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  }
  unfenced_ = false;
}

}  // namespace hone::codegen

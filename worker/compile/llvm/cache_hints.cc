#include "worker/compile/llvm/cache_hints.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "worker/compile/lower/layout.h"

namespace hone::codegen {

using llvm::Value;
using lower::Storage;

namespace {

constexpr size_t kMaxPrefetches = 256;  // per loop

}  // namespace

void CacheHints::PrefetchAhead(ir::BufferId buffer, const ir::Index& offset, int64_t bytes,
                               absl::FunctionRef<Value*(const IndexEmitter::Split&)> address) {
  lower::LoweredProgram& program = f_.state.program;
  const Storage::Kind kind = program.storage[buffer].kind;
  if (kind == Storage::Kind::kRegister || kind == Storage::Kind::kStack) return;
  const int64_t line = f_.state.target->cache_line_bytes;
  for (Prefetch& prefetch : prefetches_) {
    if (!program.atoms.DependsOn(offset, prefetch.var)) continue;
    if (prefetch.lines.size() >= kMaxPrefetches) continue;
    const ir::Index ahead = ir::Index::Of(prefetch.var) + prefetch.distance;
    const auto place = [&](ir::AtomId id) { return id == prefetch.var ? &ahead : nullptr; };
    const IndexEmitter::Split split = index_.SplitOf(program.atoms.Substitute(offset, place));
    if (split.irregular) continue;
    const std::string runtime = program.atoms.ToString(split.runtime);
    // If each lane is in a different line, only the first is prefetched: such lanes are gathered,
    // which prefetching does not speed up.
    const int64_t lanes = std::abs(split.lane) * bytes < line ? std::max<int64_t>(f_.lanes, 1) : 1;
    const int64_t last = split.constant + split.lane * (lanes - 1);
    for (int64_t at = ir::FloorDivInt(std::min(split.constant, last) * bytes, line);
         at <= ir::FloorDivInt(std::max(split.constant, last) * bytes, line); ++at) {
      if (prefetch.lines.size() >= kMaxPrefetches) break;
      if (!prefetch.lines.emplace(buffer, runtime, at).second) continue;
      IndexEmitter::Split first = split;
      first.lane = 0;
      first.constant = ir::FloorDivInt(at * line, bytes);
      f_.b.CreateIntrinsic(llvm::Intrinsic::prefetch, {f_.b.getPtrTy()},
                           {address(first), f_.b.getInt32(0), f_.b.getInt32(3), f_.b.getInt32(1)});
    }
  }
}

void CacheHints::PassCaches(llvm::StoreInst* store, ir::BufferId buffer,
                            const IndexEmitter::Split& split) {
  if (!nontemporal_) return;
  // Arguments are checked when the kernel is called; all other buffers are aligned by construction.
  const int64_t element_bytes = ir::DTypeBytes(f_.state.program.buffers[buffer].dtype);
  int64_t align =
      std::gcd(lower::AlignmentOf(f_.state.program, buffer), split.constant * element_bytes);
  for (const ir::IndexTerm& term : split.runtime.terms()) {
    align = std::gcd(align, term.coeff * element_bytes);
  }
  const auto bits = store->getValueOperand()->getType()->getPrimitiveSizeInBits().getFixedValue();
  // The instructions require whole aligned vectors.
  if (align < static_cast<int64_t>(bits / 8)) return;
  store->setAlignment(llvm::Align(static_cast<uint64_t>(align)));
  store->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(f_.b.getContext(), llvm::ConstantAsMetadata::get(f_.b.getInt32(1))));
  needs_fence_ = true;
}

void CacheHints::Fence() {
  if (needs_fence_) f_.state.machine->EmitStoreFence(f_.b);
}

}  // namespace hone::codegen

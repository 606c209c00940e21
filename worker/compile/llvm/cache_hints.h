#ifndef HONE_WORKER_COMPILE_LLVM_CACHE_HINTS_H_
#define HONE_WORKER_COMPILE_LLVM_CACHE_HINTS_H_

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "worker/compile/llvm/index_emitter.h"

namespace hone::codegen {

// Emits a schedule's cache hints: prefetches for a loop's next iterations, and non-temporal stores.
class CacheHints {
 public:
  CacheHints(FunctionContext& f, IndexEmitter& index) : f_(f), index_(index) {}

  // Begins and ends a loop that prefetches what is read `distance` iterations later.
  void EnterLoop(ir::AtomId var, int64_t distance) { prefetches_.push_back({var, distance, {}}); }
  void LeaveLoop() { prefetches_.pop_back(); }
  // Whether the current statement asks for non-temporal stores.
  void SetNonTemporal(bool nontemporal) { nontemporal_ = nontemporal; }

  // Prefetches each line that an iteration of an enclosing loop reads once, where the code first
  // reads it. The prefetches are thus spread among the arithmetic and do not fill the miss queue.
  // `address` returns the address of an element of the buffer.
  void PrefetchAhead(ir::BufferId buffer, const ir::Index& offset, int64_t element_bytes,
                     absl::FunctionRef<llvm::Value*(const IndexEmitter::Split&)> address);
  // Makes a store non-temporal if the statement asks for it and the address is aligned to its size.
  void PassCaches(llvm::StoreInst* store, ir::BufferId buffer, const IndexEmitter::Split& split);
  // Orders non-temporal stores before later stores, if the function has any so far.
  void Fence();

 private:
  struct Prefetch {
    ir::AtomId var;    // of the loop that prefetches
    int64_t distance;  // in its iterations
    // Already prefetched: buffer, runtime part, line number.
    std::set<std::tuple<ir::BufferId, std::string, int64_t>> lines;
  };

  FunctionContext& f_;
  IndexEmitter& index_;
  std::vector<Prefetch> prefetches_;  // of the enclosing loops
  bool nontemporal_ = false;
  bool needs_fence_ = false;  // non-temporal stores were emitted
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_CACHE_HINTS_H_

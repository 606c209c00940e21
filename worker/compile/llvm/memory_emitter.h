#ifndef HONE_WORKER_COMPILE_LLVM_MEMORY_EMITTER_H_
#define HONE_WORKER_COMPILE_LLVM_MEMORY_EMITTER_H_

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// Emits loads and stores of one element or of all lanes: contiguous, reversed, strided by shuffles,
// gathered and scattered, masked. Accumulators are stack slots that the promotion pass turns into
// registers. Values are of ValueType, or scalar if all lanes agree.
class MemoryEmitter {
 public:
  MemoryEmitter(FunctionContext& f, IndexEmitter& index, CacheHints& hints)
      : f_(f), index_(index), hints_(hints) {}

  absl::StatusOr<llvm::Value*> Load(ir::BufferId buffer, const ir::Index& offset,
                                    llvm::Value* mask);
  // Loads at offset + gathered, an i64 or a vector of one for each lane.
  llvm::Value* Gather(ir::BufferId buffer, const ir::Index& offset, llvm::Value* gathered,
                      llvm::Value* mask);
  absl::Status Store(ir::BufferId buffer, const ir::Index& offset, llvm::Value* value,
                     llvm::Value* mask);
  // Returns the address of the first lane's element. REQUIRES: the lanes are regular.
  llvm::Value* Address(ir::BufferId buffer, const IndexEmitter::Split& split);

 private:
  using Split = IndexEmitter::Split;

  // Whether the address and every sum on the way to it lie in the buffer or right behind it, for
  // all values of the variables. LLVM may assume this of an "inbounds" address. Addresses outside
  // occur under conditions, in masked lanes and ahead of a loop.
  bool IsInside(ir::BufferId buffer, const Split& split) const;
  llvm::Value* BasePointer(ir::BufferId buffer);
  llvm::Value* NewBasePointer(ir::BufferId buffer);
  absl::StatusOr<llvm::AllocaInst*> RegisterSlot(ir::BufferId buffer, const Split& split);
  llvm::Value* LanePointers(ir::BufferId buffer, const ir::Index& offset, const Split& split);
  // Returns the raw value of all lanes.
  llvm::Value* LoadVector(ir::BufferId buffer, const ir::Index& offset, const Split& split,
                          llvm::Value* mask);
  // Whether all lanes at adjacent places may be loaded although only some are live, because those
  // behind them are in memory of the kernel, and garbage in them does no harm. REQUIRES: a live
  // lane.
  bool MayLoadAllLanes(ir::BufferId buffer, const Split& split) const;
  // Stores the first lanes at adjacent places, in parts whose sizes are powers of two.
  void StoreFirstLanes(ir::BufferId buffer, const Split& split, llvm::Value* value, int64_t lanes,
                       llvm::Align align);
  // Loads lanes that are `stride` elements apart.
  llvm::Value* LoadStrided(ir::BufferId buffer, Split split, llvm::Type* scalar, llvm::Align align);
  // Loads lanes that alternate among two or four rows of small integers; nullptr if they do not.
  // Words are little-endian.
  llvm::Value* LoadInterleaved(ir::BufferId buffer, const ir::Index& offset,
                               llvm::IntegerType* scalar);
  // Loads lanes whose distances are known and small as one vector, and shuffles it; nullptr if they
  // are not.
  llvm::Value* LoadPicked(ir::BufferId buffer, const ir::Index& offset, llvm::Type* scalar,
                          llvm::Align align);
  // Returns the mask, or one of all lanes.
  llvm::Value* LanesOf(llvm::Value* mask) {
    return mask != nullptr ? mask : f_.b.CreateVectorSplat(f_.lanes, f_.b.getTrue());
  }

  FunctionContext& f_;
  IndexEmitter& index_;
  CacheHints& hints_;
  std::map<ir::BufferId, llvm::Value*> bases_;
  std::map<std::pair<ir::BufferId, int64_t>, llvm::AllocaInst*> registers_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_MEMORY_EMITTER_H_

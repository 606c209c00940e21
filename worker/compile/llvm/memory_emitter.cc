#include "worker/compile/llvm/memory_emitter.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"
#include "worker/compile/lower/layout.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::Index;
using llvm::Value;
using lower::Storage;

constexpr size_t kMaxPrefetches = 256;  // per loop

// Up to this stride, lanes are loaded as whole vectors and shuffled: one load and one shuffle per
// stride, where a gather costs a load per lane.
constexpr int64_t kMaxShuffledStride = 4;
constexpr int64_t kMaxShuffledStrideNarrow = 8;  // for elements too narrow for a gather

// Returns how many lanes a constant mask selects if they are the first ones, and 0 for other masks.
int64_t FirstLanesOf(const Value* mask) {
  const auto* const constant = llvm::dyn_cast<llvm::Constant>(mask);
  if (constant == nullptr) return 0;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(constant->getType())->getNumElements();
  unsigned first = 0, live = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const llvm::Constant* const is_live = constant->getAggregateElement(lane);
    if (is_live == nullptr) return 0;
    if (is_live->isNullValue()) continue;
    ++live;
    first = lane + 1;
  }
  return first == live ? first : 0;
}

void Reverse(std::vector<int>& picks) {
  for (size_t lane = 0; lane < picks.size(); ++lane) {
    picks[lane] = static_cast<int>(picks.size() - 1 - lane);
  }
}

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
    const ir::Index index = program.atoms.Substitute(offset, place);
    IndexEmitter::Split split = index_.SplitOf(index);
    // If each lane is in a different line, only the first is prefetched: such lanes are gathered,
    // which prefetching does not speed up.
    const int64_t lanes = std::abs(split.lane) * bytes < line ? std::max<int64_t>(f_.lanes, 1) : 1;
    int64_t last = split.constant + split.lane * (lanes - 1);
    if (split.irregular) {
      const std::optional<std::vector<int64_t>> table = index_.LaneTable(index, split);
      if (!table.has_value()) continue;
      const auto [least, most] = std::minmax_element(table->begin(), table->end());
      if (*most - *least >= f_.lanes) continue;  // gathered
      last = split.constant + *most;
      split.constant += *least;
    }
    const std::string runtime = program.atoms.ToString(split.runtime);
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

Value* MemoryEmitter::BasePointer(ir::BufferId buffer) {
  const auto [known, added] = bases_.try_emplace(buffer);
  if (added) known->second = NewBasePointer(buffer);
  return known->second;
}

Value* MemoryEmitter::NewBasePointer(ir::BufferId buffer) {
  const lower::LoweredProgram& program = f_.state.program;
  const Storage& storage = program.storage[buffer];
  const llvm::IRBuilderBase::InsertPointGuard guard(f_.b);
  f_.b.SetInsertPoint(index_.outermost());
  const auto pointer = [&](int slot) { return f_.b.CreateLoad(f_.b.getPtrTy(), f_.Slot(slot)); };
  const auto plus = [&](Value* base, Value* bytes) {
    return f_.b.CreateInBoundsGEP(f_.b.getInt8Ty(), base, bytes);
  };
  switch (storage.kind) {
    case Storage::Kind::kArgument:
      return pointer(storage.position);
    case Storage::Kind::kPacked:
      return plus(pointer(f_.state.PackedSlot()), f_.I64(storage.offset_bytes));
    case Storage::Kind::kWorkspace:
      return plus(pointer(f_.state.WorkspaceSlot()), f_.I64(storage.offset_bytes));
    case Storage::Kind::kThread: {
      Value* own = f_.b.CreateMul(f_.thread, f_.I64(program.thread_stride_bytes));
      return plus(pointer(f_.state.WorkspaceSlot()),
                  f_.b.CreateAdd(own, f_.I64(program.workspace_bytes + storage.offset_bytes)));
    }
    case Storage::Kind::kStack: {
      auto* type = llvm::ArrayType::get(f_.convert.MemoryType(program.buffers[buffer].dtype),
                                        storage.elements);
      auto* memory = f_.b.CreateAlloca(type);
      memory->setAlignment(llvm::Align(target::kBufferAlignment));
      return memory;
    }
    case Storage::Kind::kRegister:
    case Storage::Kind::kShared:
    case Storage::Kind::kUnused:
      break;
  }
  return nullptr;
}

Value* MemoryEmitter::Address(ir::BufferId buffer, const Split& split) {
  llvm::Type* type = f_.convert.MemoryType(f_.state.program.buffers[buffer].dtype);
  Value* base = BasePointer(buffer);
  const bool inside = IsInside(buffer, split);
  // One pointer per stream: the runtime part moves it, and constants become displacements.
  if (Value* runtime = index_.RuntimeValue(split.runtime)) {
    base =
        inside ? f_.b.CreateInBoundsGEP(type, base, runtime) : f_.b.CreateGEP(type, base, runtime);
  }
  if (split.constant == 0) return base;
  return inside ? f_.b.CreateConstInBoundsGEP1_64(type, base, split.constant)
                : f_.b.CreateConstGEP1_64(type, base, split.constant);
}

bool MemoryEmitter::IsInside(ir::BufferId buffer, const Split& split) const {
  const lower::LoweredProgram& program = f_.state.program;
  const ir::Range runtime = program.atoms.RangeOf(split.runtime);
  const int64_t elements = program.storage[buffer].elements;
  return runtime.min >= 0 && runtime.max <= elements && runtime.min + split.constant >= 0 &&
         runtime.max + split.constant <= elements;
}

absl::StatusOr<llvm::AllocaInst*> MemoryEmitter::RegisterSlot(ir::BufferId buffer,
                                                              const Split& split) {
  if (!split.runtime.IsConstant() || split.irregular) {
    return absl::InternalError("a register buffer has an index that is not a constant");
  }
  llvm::AllocaInst*& slot = registers_[{buffer, split.constant}];
  if (slot == nullptr) {
    const llvm::IRBuilderBase::InsertPointGuard guard(f_.b);
    f_.b.SetInsertPoint(index_.outermost());
    // The first statement may compute fewer lanes than later ones.
    llvm::Type* const scalar = f_.convert.ValueType(f_.state.program.buffers[buffer].dtype);
    slot = f_.b.CreateAlloca(f_.lanes == 0 ? scalar : Conversion::Lanes(scalar, f_.loop_lanes));
  }
  return slot;
}

Value* MemoryEmitter::LanePointers(ir::BufferId buffer, const Index& offset, const Split& split) {
  llvm::Type* scalar = f_.convert.MemoryType(f_.state.program.buffers[buffer].dtype);
  // Masked lanes may be outside the buffer.
  if (split.irregular) return f_.b.CreateGEP(scalar, BasePointer(buffer), index_.Vector(offset));
  // One base address, and constant distances of 32 bits that need no address registers.
  std::vector<llvm::Constant*> distances;
  const bool narrow = std::abs(split.lane) * f_.lanes < (int64_t{1} << 30);
  llvm::Type* integer = narrow ? f_.b.getInt32Ty() : f_.b.getInt64Ty();
  for (int64_t lane = 0; lane < f_.lanes; ++lane)
    distances.push_back(llvm::ConstantInt::get(integer, lane * split.lane, true));
  return f_.b.CreateGEP(scalar, Address(buffer, split), llvm::ConstantVector::get(distances));
}

// Reads whole vectors between the elements of the first and the last lane, and nothing beyond.
Value* MemoryEmitter::LoadStrided(ir::BufferId buffer, Split split, llvm::Type* scalar,
                                  llvm::Align align) {
  llvm::Type* vector = Conversion::Lanes(scalar, f_.lanes);
  const int64_t stride = std::abs(split.lane);
  const bool reversed = split.lane < 0;
  if (reversed) split.constant -= stride * (f_.lanes - 1);
  const int lanes = static_cast<int>(f_.lanes);
  std::vector<int> picks(lanes);
  Value* result = nullptr;
  for (int64_t part = 0, next = 0; next < f_.lanes; ++part) {
    // The whole vector with the next lane's element; the last vector ends with the last element.
    const int64_t begin = std::min(next * stride, (f_.lanes - 1) * (stride - 1));
    Split at = split;
    at.constant += begin;
    Value* piece = f_.b.CreateAlignedLoad(vector, Address(buffer, at), align);
    const int64_t first = next;
    while (next < f_.lanes && next * stride - begin < f_.lanes) ++next;
    if (stride == 1) {
      result = piece;
      break;
    }
    for (int64_t lane = 0; lane < f_.lanes; ++lane) {
      const bool here = lane >= first && lane < next;
      const int in_piece = static_cast<int>(lane * stride - begin);
      picks[lane] = here           ? (result == nullptr ? in_piece : lanes + in_piece)
                    : lane < first ? static_cast<int>(lane)
                                   : llvm::PoisonMaskElem;
    }
    result = result == nullptr ? f_.b.CreateShuffleVector(piece, picks)
                               : f_.b.CreateShuffleVector(result, piece, picks);
  }
  if (!reversed) return result;
  Reverse(picks);
  return f_.b.CreateShuffleVector(result, picks);
}

Value* MemoryEmitter::LoadInterleaved(ir::BufferId buffer, const Index& offset,
                                      llvm::IntegerType* scalar) {
  constexpr int64_t kMaxWordBits = 32;
  Split base;
  const std::optional<std::vector<int64_t>> table = index_.LaneTable(offset, base);
  if (!table.has_value()) return nullptr;
  const int64_t bits = scalar->getBitWidth();
  for (int64_t rows = 2; rows * bits <= kMaxWordBits && f_.lanes % rows == 0; rows *= 2) {
    bool interleaved = true;
    for (int64_t lane = 0; lane < f_.lanes; ++lane) {
      interleaved &= (*table)[lane] == (*table)[lane % rows] + lane / rows;
    }
    if (!interleaved) continue;
    // Each row is widened to words and shifted to its position in them.
    const int64_t columns = f_.lanes / rows;
    auto* const row_type = llvm::FixedVectorType::get(scalar, columns);
    auto* const words = llvm::FixedVectorType::get(f_.b.getIntNTy(rows * bits), columns);
    Value* result = nullptr;
    for (int64_t row = 0; row < rows; ++row) {
      Split at = base;
      at.constant += (*table)[row];
      Value* part = f_.b.CreateZExt(
          f_.b.CreateAlignedLoad(row_type, Address(buffer, at), llvm::Align(bits / 8)), words);
      part = f_.b.CreateShl(part, row * bits);
      result = result == nullptr ? part : f_.b.CreateOr(result, part);
    }
    return f_.b.CreateBitCast(result, llvm::FixedVectorType::get(scalar, f_.lanes));
  }
  return nullptr;
}

Value* MemoryEmitter::LoadPicked(ir::BufferId buffer, const Index& offset, llvm::Type* scalar,
                                 llvm::Align align) {
  Split base;
  const std::optional<std::vector<int64_t>> table = index_.LaneTable(offset, base);
  if (!table.has_value()) return nullptr;
  const auto [least, most] = std::minmax_element(table->begin(), table->end());
  const int64_t span = *most - *least + 1;
  if (span > f_.lanes) return nullptr;
  base.constant += *least;
  Value* const elements =
      f_.b.CreateAlignedLoad(Conversion::Lanes(scalar, span), Address(buffer, base), align);
  std::vector<int> picks;
  for (const int64_t place : *table) picks.push_back(static_cast<int>(place - *least));
  return f_.b.CreateShuffleVector(elements, picks);
}

absl::StatusOr<Value*> MemoryEmitter::Load(ir::BufferId buffer, const Index& offset, Value* mask) {
  const DType dtype = f_.state.program.buffers[buffer].dtype;
  const Split split = index_.SplitOf(offset);
  if (f_.state.program.storage[buffer].kind == Storage::Kind::kRegister) {
    HONE_ASSIGN_OR_RETURN(llvm::AllocaInst * slot, RegisterSlot(buffer, split));
    return f_.b.CreateLoad(f_.ValueType(dtype), slot);
  }
  hints_.PrefetchAhead(buffer, offset, ir::DTypeBytes(dtype),
                       [&](const Split& at) { return Address(buffer, at); });
  if (f_.lanes != 0 && !split.is_uniform()) {
    return f_.convert.FromMemory(LoadVector(buffer, offset, split, mask), dtype);
  }
  const llvm::Align align(ir::DTypeBytes(dtype));
  return f_.convert.FromMemory(
      f_.b.CreateAlignedLoad(f_.convert.MemoryType(dtype), Address(buffer, split), align), dtype);
}

Value* MemoryEmitter::Gather(ir::BufferId buffer, const Index& offset, Value* gathered,
                             Value* mask) {
  const DType dtype = f_.state.program.buffers[buffer].dtype;
  llvm::Type* scalar = f_.convert.MemoryType(dtype);
  const llvm::Align align(ir::DTypeBytes(dtype));
  const Split split = index_.SplitOf(offset);
  const bool one_row = !gathered->getType()->isVectorTy();
  if (one_row && (f_.lanes == 0 || split.is_uniform())) {
    Value* address = f_.b.CreateGEP(scalar, Address(buffer, split), gathered);
    return f_.convert.FromMemory(f_.b.CreateAlignedLoad(scalar, address, align), dtype);
  }
  llvm::Type* vector = Conversion::Lanes(scalar, f_.lanes);
  llvm::Constant* zero = llvm::Constant::getNullValue(vector);
  if (one_row && !split.irregular && split.lane == 1) {
    Value* address = f_.b.CreateGEP(scalar, Address(buffer, split), gathered);
    Value* value = nullptr;
    if (mask == nullptr) {
      value = f_.b.CreateAlignedLoad(vector, address, align);
    } else {
      value = f_.b.CreateMaskedLoad(vector, address, align, mask, zero);
    }
    return f_.convert.FromMemory(value, dtype);
  }
  Value* pointers = f_.b.CreateGEP(scalar, LanePointers(buffer, offset, split), gathered);
  return f_.convert.FromMemory(
      f_.b.CreateMaskedGather(vector, pointers, align, LanesOf(mask), zero), dtype);
}

Value* MemoryEmitter::LoadVector(ir::BufferId buffer, const Index& offset, const Split& split,
                                 Value* mask) {
  const DType dtype = f_.state.program.buffers[buffer].dtype;
  llvm::Type* scalar = f_.convert.MemoryType(dtype);
  llvm::Type* vector = Conversion::Lanes(scalar, f_.lanes);
  llvm::Constant* zero = llvm::Constant::getNullValue(vector);
  const llvm::Align align(ir::DTypeBytes(dtype));
  if (split.irregular) {
    auto* const integer = llvm::dyn_cast<llvm::IntegerType>(scalar);
    if (mask == nullptr && integer != nullptr) {
      if (Value* const value = LoadInterleaved(buffer, offset, integer)) return value;
    }
    if (mask == nullptr) {
      if (Value* const value = LoadPicked(buffer, offset, scalar, align)) return value;
    }
  } else if (mask != nullptr) {
    if (split.lane == 1 && MayLoadAllLanes(buffer, split)) {
      return f_.b.CreateAlignedLoad(vector, Address(buffer, split), align);
    }
    if (split.lane == 1) {
      return f_.b.CreateMaskedLoad(vector, Address(buffer, split), align, mask, zero);
    }
  } else {
    const int64_t shuffled =
        ir::DTypeBytes(dtype) < 4 ? kMaxShuffledStrideNarrow : kMaxShuffledStride;
    if (std::abs(split.lane) <= std::min(shuffled, f_.lanes)) {
      return LoadStrided(buffer, split, scalar, align);
    }
    if (f_.state.machine->GathersSlowly()) {
      Value* value = llvm::PoisonValue::get(vector);
      for (int64_t lane = 0; lane < f_.lanes; ++lane) {
        Split at = split;
        at.constant += lane * split.lane;
        Value* element = f_.b.CreateAlignedLoad(scalar, Address(buffer, at), align);
        value = f_.b.CreateInsertElement(value, element, lane);
      }
      return value;
    }
  }
  Value* pointers = LanePointers(buffer, offset, split);
  return f_.b.CreateMaskedGather(vector, pointers, align, LanesOf(mask), zero);
}

bool MemoryEmitter::MayLoadAllLanes(ir::BufferId buffer, const Split& split) const {
  const lower::LoweredProgram& program = f_.state.program;
  const DType dtype = program.buffers[buffer].dtype;
  // Garbage in the lanes that are not live must not trap, as a division of integers would.
  if (!ir::IsFloat(dtype)) return false;
  const Storage& storage = program.storage[buffer];
  const ir::Range runtime = program.atoms.RangeOf(split.runtime);
  if (runtime.min + split.constant >= 0 &&
      runtime.max + split.constant + f_.lanes <= storage.elements)
    return true;
  // An aligned vector with a live lane does not leave the lines of its buffer.
  using Kind = Storage::Kind;
  if (storage.kind != Kind::kPacked && storage.kind != Kind::kWorkspace) return false;
  const int64_t bytes = f_.lanes * ir::DTypeBytes(dtype);
  const auto is_aligned = [&](int64_t elements) { return elements % f_.lanes == 0; };
  return std::has_single_bit(static_cast<uint64_t>(bytes)) && bytes <= target::kBufferAlignment &&
         storage.offset_bytes % bytes == 0 && is_aligned(split.constant) &&
         is_aligned(split.runtime.constant()) &&
         std::all_of(split.runtime.terms().begin(), split.runtime.terms().end(),
                     [&](const ir::IndexTerm& term) { return is_aligned(term.coeff); });
}

void MemoryEmitter::StoreFirstLanes(ir::BufferId buffer, const Split& split, Value* value,
                                    int64_t lanes, llvm::Align align) {
  for (int64_t at = 0; at < lanes;) {
    const auto part = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(lanes - at)));
    std::vector<int> picks(part);
    std::iota(picks.begin(), picks.end(), static_cast<int>(at));
    Split place = split;
    place.constant += at;
    f_.b.CreateAlignedStore(
        part == 1 ? f_.b.CreateExtractElement(value, at) : f_.b.CreateShuffleVector(value, picks),
        Address(buffer, place), align);
    at += part;
  }
}

absl::Status MemoryEmitter::Store(ir::BufferId buffer, const Index& offset, Value* value,
                                  Value* mask) {
  const lower::LoweredProgram& program = f_.state.program;
  const DType dtype = program.buffers[buffer].dtype;
  const Split split = index_.SplitOf(offset);
  const llvm::Align align(ir::DTypeBytes(dtype));
  value = f_.Widen(value);
  if (program.storage[buffer].kind == Storage::Kind::kRegister) {
    HONE_ASSIGN_OR_RETURN(llvm::AllocaInst * slot, RegisterSlot(buffer, split));
    // Other lanes keep their values, because they may be active at another step of the reduction.
    if (mask != nullptr) {
      value = f_.b.CreateSelect(mask, value, f_.b.CreateLoad(value->getType(), slot));
    }
    f_.b.CreateStore(value, slot);
    return absl::OkStatus();
  }
  const bool lane_by_lane =
      f_.state.machine->MisplacesThreeBytes() && f_.lanes == 3 && ir::DTypeBytes(dtype) == 1;
  const bool one_place = f_.lanes != 0 && split.is_uniform() && mask == nullptr;
  // If lanes share a location, the last one wins, as in the serial loop.
  if (one_place) value = f_.b.CreateExtractElement(value, f_.lanes - 1);
  value = f_.convert.ToMemory(value, dtype);
  if (f_.lanes == 0 || one_place) {
    f_.b.CreateAlignedStore(value, Address(buffer, split), align);
  } else if (lane_by_lane && !split.irregular && mask == nullptr) {
    for (int64_t lane = 0; lane < f_.lanes; ++lane) {
      Split at = split;
      at.constant += lane * split.lane;
      f_.b.CreateAlignedStore(f_.b.CreateExtractElement(value, lane), Address(buffer, at), align);
    }
  } else if (!lane_by_lane && !split.irregular && split.lane == 1) {
    Value* address = Address(buffer, split);
    if (mask == nullptr) {
      hints_.PassCaches(f_.b.CreateAlignedStore(value, address, align), buffer, split);
    } else if (const int64_t first = FirstLanesOf(mask);
               first > 0 && f_.state.machine->MasksSlowly()) {
      StoreFirstLanes(buffer, split, value, first, align);
    } else {
      f_.b.CreateMaskedStore(value, address, align, mask);
    }
  } else if (!split.irregular && split.lane == -1 && mask == nullptr) {
    Split first = split;
    first.constant -= f_.lanes - 1;
    std::vector<int> picks(f_.lanes);
    Reverse(picks);
    f_.b.CreateAlignedStore(f_.b.CreateShuffleVector(value, picks), Address(buffer, first), align);
  } else {
    // A scatter writes in lane order.
    Value* pointers = LanePointers(buffer, offset, split);
    f_.b.CreateMaskedScatter(value, pointers, align, LanesOf(mask));
  }
  return absl::OkStatus();
}

}  // namespace hone::codegen

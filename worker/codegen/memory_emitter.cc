// Loads and stores of one element or of all lanes: contiguous, reversed, strided by shuffles,
// gathered and scattered, masked.
#include <algorithm>

#include "absl/strings/match.h"
#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

using ir::DType;
using ir::Index;
using llvm::Value;
using lower::Storage;

namespace {

// Up to this stride, lanes are loaded as whole vectors and shuffled: one load and one shuffle per
// stride, where a gather costs a load per lane.
constexpr int64_t kMaxShuffledStride = 4;
constexpr int64_t kMaxShuffledStrideNarrow = 8;  // for elements too narrow for a gather

// AMD's gathers are microcode and slower than a load per lane: on Zen 5, 16 lanes of f32 from L1
// take 12.7 cycles, and 16 loads with their inserts take 7.8. Its scatters cost as much as the
// stores.
bool GathersSlowly(const target::Target& target) { return absl::StartsWith(target.cpu, "znver"); }

}  // namespace

Value* FunctionEmitter::LanePointers(ir::BufferId buffer, const Index& offset, const Split& split) {
  llvm::Type* scalar = convert_.MemoryType(state_.program.buffers[buffer].dtype);
  if (split.irregular)
    return builder_.CreateInBoundsGEP(scalar, BasePointer(buffer), VectorIndex(offset));
  // One base and constant distances, which fit into 32 bits and need no address registers.
  std::vector<llvm::Constant*> distances;
  const bool narrow = std::abs(split.lane) * lanes_ < (int64_t{1} << 30);
  llvm::Type* integer = narrow ? builder_.getInt32Ty() : builder_.getInt64Ty();
  for (int64_t lane = 0; lane < lanes_; ++lane)
    distances.push_back(llvm::ConstantInt::get(integer, lane * split.lane, true));
  return builder_.CreateInBoundsGEP(scalar, Address(buffer, split),
                                    llvm::ConstantVector::get(distances));
}

// Reads whole vectors between the elements of the first and the last lane, and nothing beyond.
Value* FunctionEmitter::LoadLanes(ir::BufferId buffer, Split split, llvm::Type* scalar,
                                  llvm::Align align) {
  llvm::Type* vector = Conversion::Lanes(scalar, lanes_);
  const int64_t stride = std::abs(split.lane);
  const bool reversed = split.lane < 0;
  if (reversed) split.constant -= stride * (lanes_ - 1);
  const int lanes = static_cast<int>(lanes_);
  std::vector<int> picks(lanes);
  Value* result = nullptr;
  for (int64_t part = 0, next = 0; next < lanes_; ++part) {
    // The part with the next lane's element; the last part ends with the last element.
    const int64_t begin = std::min(next * stride, (lanes_ - 1) * (stride - 1));
    Split at = split;
    at.constant += begin;
    Value* piece = builder_.CreateAlignedLoad(vector, Address(buffer, at), align);
    const int64_t first = next;
    while (next < lanes_ && next * stride - begin < lanes_) ++next;
    if (stride == 1) {
      result = piece;
      break;
    }
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      const bool here = lane >= first && lane < next;
      const int in_piece = static_cast<int>(lane * stride - begin);
      picks[lane] = here           ? (result == nullptr ? in_piece : lanes + in_piece)
                    : lane < first ? static_cast<int>(lane)
                                   : llvm::PoisonMaskElem;
    }
    result = result == nullptr ? builder_.CreateShuffleVector(piece, picks)
                               : builder_.CreateShuffleVector(result, piece, picks);
  }
  if (!reversed) return result;
  for (int lane = 0; lane < lanes; ++lane) picks[lane] = lanes - 1 - lane;
  return builder_.CreateShuffleVector(result, picks);
}

absl::StatusOr<Value*> FunctionEmitter::EmitLoad(const ir::Expr& load, Value* mask) {
  lower::LoweredProgram& program = state_.program;
  const Index offset = program.pool.IndicesOf(load)[0];
  const Split split = SplitIndex(offset);
  if (program.storage[load.buffer].kind == Storage::Kind::kRegister) {
    if (!split.runtime.IsConstant() || split.irregular)
      return absl::InternalError("a register at an index that is not known");
    return builder_.CreateLoad(ValueType(load.dtype), RegisterSlot(load.buffer, split.constant));
  }
  PrefetchAhead(load.buffer, offset, ir::DTypeBytes(load.dtype));
  llvm::Type* scalar = convert_.MemoryType(load.dtype);
  const llvm::Align align(ir::DTypeBytes(load.dtype));
  if (lanes_ == 0 || (!split.irregular && split.lane == 0)) {
    return convert_.FromMemory(
        builder_.CreateAlignedLoad(scalar, Address(load.buffer, split), align), load.dtype);
  }
  llvm::Type* vector = Conversion::Lanes(scalar, lanes_);
  llvm::Constant* zero = llvm::Constant::getNullValue(vector);
  if (!split.irregular && split.lane == 1 && mask != nullptr) {
    return convert_.FromMemory(
        builder_.CreateMaskedLoad(vector, Address(load.buffer, split), align, mask, zero),
        load.dtype);
  }
  const int64_t shuffled =
      ir::DTypeBytes(load.dtype) < 4 ? kMaxShuffledStrideNarrow : kMaxShuffledStride;
  if (!split.irregular && mask == nullptr && std::abs(split.lane) <= std::min(shuffled, lanes_)) {
    return convert_.FromMemory(LoadLanes(load.buffer, split, scalar, align), load.dtype);
  }
  auto* const integer = llvm::dyn_cast<llvm::IntegerType>(scalar);
  if (split.irregular && mask == nullptr && integer != nullptr) {
    Value* const value = LoadInterleaved(load.buffer, offset, integer);
    if (value != nullptr) return convert_.FromMemory(value, load.dtype);
  }
  if (!split.irregular && mask == nullptr && GathersSlowly(*state_.target)) {
    Value* value = llvm::PoisonValue::get(vector);
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      Split at = split;
      at.constant += lane * split.lane;
      Value* element = builder_.CreateAlignedLoad(scalar, Address(load.buffer, at), align);
      value = builder_.CreateInsertElement(value, element, lane);
    }
    return convert_.FromMemory(value, load.dtype);
  }
  Value* pointers = LanePointers(load.buffer, offset, split);
  Value* lanes = mask != nullptr ? mask : builder_.CreateVectorSplat(lanes_, builder_.getTrue());
  return convert_.FromMemory(builder_.CreateMaskedGather(vector, pointers, align, lanes, zero),
                             load.dtype);
}

absl::Status FunctionEmitter::StoreTo(ir::BufferId buffer, const Index& offset, Value* value,
                                      Value* mask) {
  const lower::LoweredProgram& program = state_.program;
  const DType dtype = program.buffers[buffer].dtype;
  const Split split = SplitIndex(offset);
  const llvm::Align align(ir::DTypeBytes(dtype));
  value = Widen(value);
  if (program.storage[buffer].kind == Storage::Kind::kRegister) {
    if (!split.runtime.IsConstant() || split.irregular)
      return absl::InternalError("a register at an index that is not known");
    llvm::AllocaInst* slot = RegisterSlot(buffer, split.constant);
    // Inactive lanes keep their values, because they may be active at another step of the
    // reduction.
    if (mask != nullptr)
      value = builder_.CreateSelect(mask, value, builder_.CreateLoad(value->getType(), slot));
    builder_.CreateStore(value, slot);
    return absl::OkStatus();
  }
  const bool one_place = lanes_ != 0 && !split.irregular && split.lane == 0 && mask == nullptr;
  // If lanes share a location, the last one wins, as in the serial loop.
  if (one_place) value = builder_.CreateExtractElement(value, lanes_ - 1);
  value = convert_.ToMemory(value, dtype);
  if (lanes_ == 0 || one_place) {
    builder_.CreateAlignedStore(value, Address(buffer, split), align);
    return absl::OkStatus();
  }
  if (!split.irregular && split.lane == 1) {
    Value* address = Address(buffer, split);
    if (mask == nullptr) {
      PassCaches(builder_.CreateAlignedStore(value, address, align), split, ir::DTypeBytes(dtype));
    } else {
      builder_.CreateMaskedStore(value, address, align, mask);
    }
    return absl::OkStatus();
  }
  if (!split.irregular && split.lane == -1 && mask == nullptr) {
    Split first = split;
    first.constant -= lanes_ - 1;
    std::vector<int> picks(lanes_);
    for (int64_t lane = 0; lane < lanes_; ++lane) picks[lane] = static_cast<int>(lanes_ - 1 - lane);
    builder_.CreateAlignedStore(builder_.CreateShuffleVector(value, picks), Address(buffer, first),
                                align);
    return absl::OkStatus();
  }
  // A scatter writes in lane order.
  Value* pointers = LanePointers(buffer, offset, split);
  Value* lanes = mask != nullptr ? mask : builder_.CreateVectorSplat(lanes_, builder_.getTrue());
  builder_.CreateMaskedScatter(value, pointers, align, lanes);
  return absl::OkStatus();
}

}  // namespace hone::codegen

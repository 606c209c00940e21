#include "worker/compile/llvm/vector_parts.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "llvm/IR/Instructions.h"

namespace hone::codegen {

using llvm::Value;

namespace {

const llvm::FixedVectorType* VectorTypeOf(const Value* value) {
  return llvm::cast<llvm::FixedVectorType>(value->getType());
}
int LaneCount(const Value* value) {
  return static_cast<int>(VectorTypeOf(value)->getNumElements());
}

llvm::Type* WithLanes(const Value* value, int lanes) {
  return llvm::FixedVectorType::get(value->getType()->getScalarType(),
                                    static_cast<unsigned>(lanes));
}

int PowerOfTwo(int lanes) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(lanes))); }

bool IsOdd(const Value* value) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type != nullptr && !type->getElementType()->isPointerTy() &&
         !std::has_single_bit(type->getNumElements());
}

// The lanes of a part.
int PartOf(const Value* value, int vector_bits) {
  const int bits = static_cast<int>(value->getType()->getScalarSizeInBits());
  return std::min(PowerOfTwo(LaneCount(value)), std::max(1, vector_bits / std::max(bits, 8)));
}

// Splits the vectors of one function.
class Splitter {
 public:
  Splitter(llvm::Function& function, int vector_bits)
      : function_(function), b_(function.getContext()), vector_bits_(vector_bits) {}

  void Run() {
    std::vector<llvm::PHINode*> phis;
    for (llvm::BasicBlock& block : function_) {
      for (llvm::PHINode& phi : block.phis()) {
        if (IsOdd(&phi)) phis.push_back(&phi);
      }
    }
    for (llvm::PHINode* const phi : phis) AddPhis(*phi);
    for (llvm::PHINode* const phi : phis) FillPhis(*phi);
    for (llvm::PHINode* const phi : phis) {
      phi->replaceAllUsesWith(joined_[phi]);
      parts_.erase(phi);
    }
    for (llvm::PHINode* const phi : phis) {
      phi->dropAllReferences();
      phi->eraseFromParent();
    }
    std::vector<llvm::Instruction*> defined;
    for (llvm::BasicBlock& block : function_) {
      for (llvm::Instruction& instruction : block) {
        if (IsOdd(&instruction)) defined.push_back(&instruction);
      }
    }
    for (llvm::Instruction* const instruction : defined) ReplaceUsesElsewhere(*instruction);
  }

 private:
  using Parts = llvm::SmallVector<Value*, 8>;

  void AddPhis(llvm::PHINode& phi) {
    const int part = PartOf(&phi, vector_bits_), lanes = LaneCount(&phi);
    b_.SetInsertPoint(&phi);
    Parts parts;
    for (int begin = 0; begin < lanes; begin += part)
      parts.push_back(b_.CreatePHI(WithLanes(&phi, part), phi.getNumIncomingValues()));
    b_.SetInsertPoint(phi.getParent(), phi.getParent()->getFirstInsertionPt());
    joined_[&phi] = JoinLanes(b_, parts, lanes);
    parts_[&phi] = parts;
    parts_[joined_[&phi]] = parts;
  }

  void FillPhis(llvm::PHINode& phi) {
    const Parts parts = parts_[&phi];
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      llvm::BasicBlock* const from = phi.getIncomingBlock(i);
      const Parts incoming = PartsOf(phi.getIncomingValue(i), *from);
      for (size_t p = 0; p < parts.size(); ++p)
        llvm::cast<llvm::PHINode>(parts[p])->addIncoming(incoming[p], from);
    }
  }

  // Returns the parts of a value that is available at the end of a block.
  Parts PartsOf(Value* value, llvm::BasicBlock& from) {
    const auto known = parts_.find(value);
    if (known != parts_.end()) return known->second;
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction == nullptr) {
      b_.SetInsertPoint(from.getTerminator());
      return SplitLanes(b_, value, PartOf(value, vector_bits_));
    }
    b_.SetInsertPoint(instruction->getNextNode());
    return parts_[value] = SplitLanes(b_, value, PartOf(value, vector_bits_));
  }

  void ReplaceUsesElsewhere(llvm::Instruction& instruction) {
    std::map<llvm::BasicBlock*, std::vector<llvm::Use*>> uses;
    for (llvm::Use& use : instruction.uses()) {
      auto* const user = llvm::cast<llvm::Instruction>(use.getUser());
      if (user->getParent() != instruction.getParent()) uses[user->getParent()].push_back(&use);
    }
    if (uses.empty()) return;
    const Parts parts = PartsOf(&instruction, *instruction.getParent());
    for (auto& [block, list] : uses) {
      b_.SetInsertPoint(block, block->getFirstInsertionPt());
      Value* const joined = JoinLanes(b_, parts, LaneCount(&instruction));
      for (llvm::Use* const use : list) use->set(joined);
    }
  }

  llvm::Function& function_;
  llvm::IRBuilder<> b_;
  const int vector_bits_;
  std::map<Value*, Parts> parts_;
  std::map<llvm::PHINode*, Value*> joined_;
};

}  // namespace

Value* PadLanes(llvm::IRBuilder<>& b, Value* vector) {
  const int lanes = LaneCount(vector), padded = PowerOfTwo(lanes);
  if (lanes == padded) return vector;
  llvm::Type* const type = WithLanes(vector, padded);
  return b.CreateInsertVector(type, llvm::PoisonValue::get(type), vector, b.getInt64(0));
}

llvm::SmallVector<Value*, 8> SplitLanes(llvm::IRBuilder<>& b, Value* vector, int part) {
  const int lanes = LaneCount(vector);
  Value* padded = PadLanes(b, vector);
  if (LaneCount(padded) < part) {
    llvm::Type* const type = WithLanes(vector, part);
    llvm::Value* const none = llvm::PoisonValue::get(type);
    // LLVM aborts at vectors of one lane that are inserted as vectors.
    padded = lanes == 1 ? b.CreateInsertElement(none, b.CreateExtractElement(vector, uint64_t{0}),
                                                uint64_t{0})
                        : b.CreateInsertVector(type, none, padded, b.getInt64(0));
  }
  llvm::SmallVector<Value*, 8> parts;
  for (int begin = 0; begin < lanes; begin += part) {
    parts.push_back(LaneCount(padded) == part
                        ? padded
                        : b.CreateExtractVector(WithLanes(vector, part), padded,
                                                b.getInt64(static_cast<uint64_t>(begin))));
  }
  return parts;
}

Value* JoinLanes(llvm::IRBuilder<>& b, llvm::ArrayRef<Value*> parts, int lanes) {
  const int part = LaneCount(parts[0]);
  const int padded = std::max(PowerOfTwo(lanes), part);
  Value* joined = parts[0];
  if (part < padded) {
    llvm::Type* const type = WithLanes(parts[0], padded);
    joined = llvm::PoisonValue::get(type);
    for (size_t p = 0; p < parts.size(); ++p)
      joined =
          b.CreateInsertVector(type, joined, parts[p], b.getInt64(p * static_cast<uint64_t>(part)));
  }
  if (padded == lanes) return joined;
  if (lanes == 1) return b.CreateVectorSplat(1, b.CreateExtractElement(joined, uint64_t{0}));
  return b.CreateExtractVector(WithLanes(parts[0], lanes), joined, b.getInt64(0));
}

void KeepInParts(llvm::Function& function, int vector_bits) {
  if (!function.isDeclaration()) Splitter(function, vector_bits).Run();
}

}  // namespace hone::codegen

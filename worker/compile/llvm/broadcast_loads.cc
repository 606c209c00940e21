#include "worker/compile/llvm/broadcast_loads.h"

#include <algorithm>
#include <vector>

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "worker/compile/llvm/unrolled_loop.h"

namespace hone::codegen {
namespace {

using llvm::Value;

constexpr int kJoined = 4;  // f32 in a register
// Registers left for the allocator.
constexpr int kSpare = 2;

// A load of one f32 from a constant distance to a pointer.
struct ScalarLoad {
  llvm::LoadInst* load;
  Value* base;
  int64_t offset;  // in bytes
};

// Returns whether all uses broadcast the value: insertions into lane 0 of a vector that is then
// shuffled.
bool IsBroadcast(const llvm::LoadInst& load) {
  return !load.use_empty() && std::all_of(load.user_begin(), load.user_end(), [](const auto* user) {
    const auto* const insert = llvm::dyn_cast<llvm::InsertElementInst>(user);
    return insert != nullptr && llvm::isa<llvm::UndefValue>(insert->getOperand(0)) &&
           llvm::PatternMatch::match(insert->getOperand(2), llvm::PatternMatch::m_ZeroInt());
  });
}

// Replaces kJoined loads, from `first` on, with one load. `loads` is sorted by offset.
void Join(const std::vector<ScalarLoad>& loads, size_t first) {
  llvm::LoadInst* earliest = loads[first].load;
  for (int i = 1; i < kJoined; ++i) {
    if (loads[first + i].load->comesBefore(earliest)) earliest = loads[first + i].load;
  }
  llvm::IRBuilder<> b(earliest);
  // Not "inbounds": the base alone may lie outside the buffer.
  Value* const address =
      b.CreateConstGEP1_64(b.getInt8Ty(), loads[first].base, loads[first].offset);
  auto* const type = llvm::FixedVectorType::get(b.getFloatTy(), kJoined);
  Value* const joined = b.CreateAlignedLoad(type, address, llvm::Align(4));
  for (int i = 0; i < kJoined; ++i) {
    llvm::LoadInst* const load = loads[first + i].load;
    const std::vector<llvm::User*> inserts(load->user_begin(), load->user_end());
    for (llvm::User* const user : inserts) {
      auto* const insert = llvm::cast<llvm::Instruction>(user);
      const std::vector<llvm::User*> shuffles(insert->user_begin(), insert->user_end());
      for (llvm::User* const use : shuffles) {
        auto* const shuffle = llvm::cast<llvm::ShuffleVectorInst>(use);
        const auto* const wide = llvm::cast<llvm::FixedVectorType>(shuffle->getType());
        b.SetInsertPoint(shuffle);
        const llvm::SmallVector<int, 16> lanes(wide->getNumElements(), i);
        shuffle->replaceAllUsesWith(b.CreateShuffleVector(joined, lanes));
        shuffle->eraseFromParent();
      }
      insert->eraseFromParent();
    }
    load->eraseFromParent();
  }
}

// Returns whether each use of each insertion is a shuffle of that insertion alone, to at most
// `lanes` lanes.
bool IsShuffled(const llvm::LoadInst& load, unsigned lanes) {
  return std::all_of(load.user_begin(), load.user_end(), [&](const auto* insert) {
    return std::all_of(insert->user_begin(), insert->user_end(), [&](const auto* user) {
      const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(user);
      return shuffle != nullptr && shuffle->isZeroEltSplat() &&
             llvm::cast<llvm::FixedVectorType>(shuffle->getType())->getNumElements() <= lanes &&
             llvm::isa<llvm::UndefValue>(shuffle->getOperand(1));
    });
  });
}

void JoinRuns(std::vector<ScalarLoad>& loads) {
  std::stable_sort(loads.begin(), loads.end(), [](const ScalarLoad& x, const ScalarLoad& y) {
    return std::pair(x.base, x.offset) < std::pair(y.base, y.offset);
  });
  for (size_t first = 0; first + kJoined <= loads.size();) {
    bool adjacent = true;
    for (int i = 1; i < kJoined; ++i) {
      adjacent &= loads[first + i].base == loads[first].base &&
                  loads[first + i].offset == loads[first].offset + 4 * i;
    }
    if (adjacent) Join(loads, first);
    first += adjacent ? kJoined : 1;
  }
  loads.clear();
}

// Counts the registers of a block's accumulators and of the operands of its current step.
struct Registers {
  int accumulators = 0, operands = 0;

  void Count(const llvm::Instruction& instruction) {
    const bool vector = instruction.getType()->isVectorTy();
    if (llvm::isa<llvm::PHINode>(instruction)) accumulators += vector;
    operands += llvm::isa<llvm::LoadInst>(instruction);
  }
  // Whether operands of several steps fit into `registers`. Without accumulators this is unknown.
  bool Fit(int registers) const {
    return accumulators > 0 && accumulators + operands + kSpare <= registers;
  }
};

}  // namespace

void JoinBroadcastLoads(llvm::Module& module, unsigned lanes, int registers) {
  const llvm::DataLayout& layout = module.getDataLayout();
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      std::vector<ScalarLoad> loads;
      Registers used;
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
        used.Count(instruction);
        if (instruction.mayWriteToMemory()) {
          if (!SeparatesSteps(instruction) || !used.Fit(registers)) JoinRuns(loads);
          used.operands = 0;
        }
        auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        if (load == nullptr || !load->isSimple() || !load->getType()->isFloatTy()) continue;
        if (!IsBroadcast(*load) || !IsShuffled(*load, lanes)) continue;
        int64_t offset = 0;
        Value* const base =
            llvm::GetPointerBaseWithConstantOffset(load->getPointerOperand(), offset, layout);
        loads.push_back({load, base, offset});
      }
      JoinRuns(loads);
    }
  }
}

}  // namespace hone::codegen

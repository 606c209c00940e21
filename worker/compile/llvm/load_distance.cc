#include "worker/compile/llvm/load_distance.h"

#include <algorithm>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "worker/compile/llvm/unrolled_loop.h"

namespace hone::codegen {
namespace {

using llvm::Instruction;
using llvm::Value;

constexpr int kLeastMultiplyAdds = 16;
// In multiply-adds; a load takes four to six cycles.
constexpr int kDistance = 12;
// The longest way of a load in a group.
constexpr int kGroupDistance = 64;
// Registers left for the allocator, which cannot use all of them everywhere.
constexpr int kSpare = 2, kGroupSpare = 1;

bool IsMultiplyAdd(const Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::fma &&
         call->getType()->isVectorTy();
}

// A load. Positions are those of multiply-adds: it is placed before `at`, and used from `first` to
// `last`.
struct Operand {
  llvm::LoadInst* load;
  int at, first, last;
};

// Follows a loaded value through broadcasts to multiply-adds.
void VisitUses(const Value& value, const llvm::DenseMap<const Instruction*, int>& positions,
               int& first, int& last) {
  for (const llvm::User* const user : value.users()) {
    const auto* const instruction = llvm::cast<Instruction>(user);
    if (const auto found = positions.find(instruction); found != positions.end()) {
      first = std::min(first, found->second);
      last = std::max(last, found->second);
    } else if (llvm::isa<llvm::InsertElementInst, llvm::ShuffleVectorInst>(instruction)) {
      VisitUses(*instruction, positions, first, last);
    }
  }
}

// Moves an instruction, preceded by those that compute its address, in front of a place in its
// block.
void MoveBefore(Instruction& instruction, Instruction& place) {
  if (instruction.comesBefore(&place)) return;
  for (Value* const operand : instruction.operands()) {
    auto* const needed = llvm::dyn_cast<Instruction>(operand);
    if (needed != nullptr && needed->getParent() == place.getParent() &&
        !llvm::isa<llvm::PHINode>(needed))
      MoveBefore(*needed, place);
  }
  instruction.moveBefore(&place);
}

// Returns whether an address is computed only from phis and values of other blocks, without loads.
bool IsMovable(const Value& value, const llvm::BasicBlock& block) {
  const auto* const instruction = llvm::dyn_cast<Instruction>(&value);
  if (instruction == nullptr || instruction->getParent() != &block) return true;
  if (llvm::isa<llvm::PHINode>(instruction)) return true;
  if (instruction->mayReadOrWriteMemory() || instruction->mayHaveSideEffects()) return false;
  return std::all_of(instruction->value_op_begin(), instruction->value_op_end(),
                     [&](const Value* operand) { return IsMovable(*operand, block); });
}

// Places each load some multiply-adds ahead of its first use while fewer than `limit` registers are
// live there. `operands` is sorted by first use.
void Spread(std::vector<Operand>& operands, std::vector<int>& live, int limit) {
  for (Operand& operand : operands) {
    operand.at = operand.first;
    const int earliest = std::max(0, operand.first - kDistance);
    while (operand.at > earliest && live[operand.at - 1] < limit) ++live[--operand.at];
  }
}

// Returns how many of the operands from `begin` on can be loaded at `at`. Adds them to `live`,
// whose first element is that of `at`.
size_t Load(const std::vector<Operand>& operands, size_t begin, int at, int limit,
            std::vector<int>& live) {
  size_t end = begin;
  for (; end < operands.size(); ++end) {
    const int ahead = operands[end].first - at;
    if (ahead > static_cast<int>(live.size())) break;
    if (std::any_of(live.begin(), live.begin() + ahead, [&](int n) { return n >= limit; })) break;
    for (int i = 0; i < ahead; ++i) ++live[i];
  }
  return end - begin;
}

// As Spread, but places the loads in few groups.
void Group(std::vector<Operand>& operands, std::vector<int>& live, int limit) {
  for (size_t begin = 0; begin < operands.size();) {
    const int first = operands[begin].first;
    size_t most = 0;
    int best = first;
    std::vector<int> best_live;
    for (int at = first; at >= std::max(0, first - kDistance); --at) {
      const auto end = std::min<size_t>(live.size(), at + kGroupDistance);
      std::vector<int> window(live.begin() + at, live.begin() + static_cast<int>(end));
      const size_t loads = Load(operands, begin, at, limit, window);
      if (loads == 0) break;
      if (loads < most) continue;
      most = loads;
      best = at;
      best_live = std::move(window);
    }
    std::copy(best_live.begin(), best_live.end(), live.begin() + best);
    for (const size_t end = begin + std::max<size_t>(most, 1); begin < end; ++begin)
      operands[begin].at = best;
  }
}

bool MoveLoadsOf(llvm::BasicBlock& block, int registers, bool grouped) {
  std::vector<Instruction*> steps;
  llvm::DenseMap<const Instruction*, int> positions;
  int accumulators = 0;
  std::vector<llvm::LoadInst*> loads;
  std::vector<Instruction*> separators;
  for (Instruction& instruction : block) {
    if (llvm::isa<llvm::PHINode>(instruction)) {
      accumulators += instruction.getType()->isVectorTy();
      continue;
    }
    if (IsMultiplyAdd(instruction)) {
      positions[&instruction] = static_cast<int>(steps.size());
      steps.push_back(&instruction);
    } else if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      if (!load->isSimple()) return false;
      loads.push_back(load);
    } else if (SeparatesSteps(instruction)) {
      separators.push_back(&instruction);
    } else if (instruction.mayWriteToMemory()) {
      return false;
    }
  }
  const int count = static_cast<int>(steps.size());
  if (count < kLeastMultiplyAdds || accumulators == 0) return false;
  std::vector<Operand> operands;
  std::vector<int> live(count, accumulators);
  for (llvm::LoadInst* const load : loads) {
    Operand operand{load, 0, count, -1};
    VisitUses(*load, positions, operand.first, operand.last);
    if (operand.last < 0) continue;
    for (int i = operand.first; i <= operand.last; ++i) ++live[i];
    if (IsMovable(*load->getPointerOperand(), block)) operands.push_back(operand);
  }
  std::stable_sort(operands.begin(), operands.end(),
                   [](const Operand& x, const Operand& y) { return x.first < y.first; });
  if (grouped) {
    Group(operands, live, registers - kGroupSpare);
  } else {
    Spread(operands, live, registers - kSpare);
  }
  for (const Operand& operand : operands) MoveBefore(*operand.load, *steps[operand.at]);
  for (Instruction* const separator : separators) separator->eraseFromParent();
  return true;
}

}  // namespace

bool MoveLoadsAhead(llvm::Module& module, int registers, bool grouped) {
  bool moved = false;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) moved |= MoveLoadsOf(block, registers, grouped);
  }
  return moved;
}

}  // namespace hone::codegen

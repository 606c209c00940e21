#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "worker/compile/llvm/cpu_guard.h"
#include "worker/compile/llvm/machine.h"
#include "worker/compile/llvm/unrolled_loop.h"

namespace hone::codegen {
namespace {

using llvm::Value;

constexpr int kJoined = 4;  // f32 in a register
// Registers left for the allocator.
constexpr int kSpareForLoads = 2;

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
    return accumulators > 0 && accumulators + operands + kSpareForLoads <= registers;
  }
};

// For CPUs whose multiply-adds take one operand from any lane of a register: loads of f32 that lie
// side by side in memory, each broadcast to a vector, become one load of a vector and broadcasts of
// its lanes. `lanes`: the longest vectors for which multiply-adds do so. Only loads with no write
// between them are joined. Loads of several steps (unrolled_loop.h) are joined if the operands
// fit into `registers` vector registers beside the accumulators. Reads no memory that the separate
// loads would not read.
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

// For cores that execute instructions in order: in blocks of many multiply-adds, moves each load of
// an operand some multiply-adds ahead of its first use, as long as the operands fit into
// `registers` vector registers beside the accumulators. `grouped`: loads together, for cores that
// do not issue them beside multiply-adds; otherwise each on its own. Returns whether there was such
// a block. If so, LLVM's scheduler should not change the order.
bool MoveLoadsAhead(llvm::Module& module, int registers, bool grouped) {
  bool moved = false;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) moved |= MoveLoadsOf(block, registers, grouped);
  }
  return moved;
}

struct Dot {
  absl::string_view name;  // of the instruction in common/ir/intrinsic.h
  DotCode code;
};
constexpr Dot kDots[] = {
    {"sdot_4x4", {"llvm.aarch64.neon.sdot.v4i32.v16i8", ir::DType::kI8}},
    {"udot_4x4", {"llvm.aarch64.neon.udot.v4i32.v16i8", ir::DType::kI8}},
    {"usdot_4x4", {"llvm.aarch64.neon.usdot.v4i32.v16i8", ir::DType::kI8}},
    {"bfdot_4x2", {"llvm.aarch64.neon.bfdot.v4f32.v8bf16", ir::DType::kBF16}},
    {"smmla_2x2x8", {"llvm.aarch64.neon.smmla.v4i32.v16i8", ir::DType::kI8}},
    {"ummla_2x2x8", {"llvm.aarch64.neon.ummla.v4i32.v16i8", ir::DType::kI8}},
    {"usmmla_2x2x8", {"llvm.aarch64.neon.usmmla.v4i32.v16i8", ir::DType::kI8}},
    {"bfmmla_2x2x4", {"llvm.aarch64.neon.bfmmla", ir::DType::kBF16}},
};

class AArch64 final : public Machine {
 public:
  explicit AArch64(const target::Target& target) : Machine(target) {}

  Passes Arrange(llvm::Module& module) const override {
    // Multiply-adds of SVE do not take an operand from a lane.
    constexpr unsigned kNeon = 4, kAny = 1024;
    JoinBroadcastLoads(module, target_.vector_bits == 128 ? kAny : kNeon, target_.vector_registers);
    if (!IsInOrder()) return {};
    if (!MoveLoadsAhead(module, target_.vector_registers, LoadsAlone())) return {.schedule = true};
    KeepOrder(module);
    return {.advance_pointers = true};
  }
  bool MasksSlowly() const override { return !target_.HasFeature("sve"); }
  bool RoundsI64Twice() const override { return true; }
  // If they come from integers of 64 bits (combineI8TruncStore in LLVM 19).
  bool MisplacesThreeBytes() const override { return true; }
  bool ComputesF16() const override { return target_.HasFeature("fullfp16"); }

  absl::StatusOr<llvm::Function*> EmitCpuGuard(
      llvm::Module& module, const llvm::MCSubtargetInfo& subtarget) const override {
    return EmitAArch64CpuGuard(module, subtarget, target_);
  }

  // If the length of SVE's vectors is known, LLVM uses them for vectors longer than NEON's, and
  // predicates for masks.
  void SetAttributes(llvm::Function& function) const override {
    if (!target_.HasFeature("sve")) return;
    const auto blocks = static_cast<unsigned>(target_.vector_bits / 128);
    function.addFnAttr(
        llvm::Attribute::getWithVScaleRangeArgs(function.getContext(), blocks, blocks));
  }

  absl::StatusOr<DotCode> DotOf(const ir::Intrinsic& intrinsic) const override {
    for (const Dot& dot : kDots) {
      if (dot.name == intrinsic.name) return dot.code;
    }
    return NoCodeError(intrinsic);
  }

 private:
  // "generic" counts as in-order, because out-of-order cores reorder instructions anyway.
  bool IsInOrder() const {
    constexpr absl::string_view kInOrder[] = {"cortex-a35",  "cortex-a53",  "cortex-a55",
                                              "cortex-a510", "cortex-a520", "generic"};
    return std::ranges::count(kInOrder, target_.cpu) > 0;
  }
  // Turns off what moves loads after the allocation of registers: a scheduler, and the pass that
  // makes pairs of loads.
  void KeepOrder(llvm::Module& module) const {
    std::string features = "-use-postra-scheduler,+slow-paired-128";
    for (const std::string& feature : target_.features) absl::StrAppend(&features, ",+", feature);
    for (llvm::Function& function : module) {
      if (function.getFnAttribute("target-cpu").getValueAsString() == target_.cpu)
        function.addFnAttr("target-features", features);
    }
  }
  // Whether loads of 128 bits do not issue in the cycle of a multiply-add.
  bool LoadsAlone() const { return target_.cpu == "cortex-a35" || target_.cpu == "cortex-a53"; }
};

}  // namespace

std::unique_ptr<Machine> MakeAArch64(const target::Target& target) {
  return std::make_unique<AArch64>(target);
}

}  // namespace hone::codegen

#include "worker/compile/llvm/executions.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/ExecutionEngine/ExecutionEngine.h"
#include "llvm/ExecutionEngine/MCJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ProfDataUtils.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"
#include "worker/compile/llvm/function_context.h"

namespace hone::codegen {
namespace {

constexpr char kCounters[] = "hone_block_counters";
constexpr int64_t kSlotBytes = 8;
// Of a larger function, the loops are run, not shortened: every counter would become a variable of
// every loop, and LLVM's time would grow with the square of the size.
constexpr size_t kMostShortened = 128;

struct ParallelLoop {
  int64_t extent = 1, chunk = 0, threads = 1;

  // Returns the share of the iterations that the busiest of the threads runs.
  double BusiestShare(int cores) const {
    const int64_t used = std::max<int64_t>(1, std::min<int64_t>({threads, cores, extent}));
    const int64_t part = chunk > 0 ? chunk : (extent + used - 1) / used;
    const int64_t parts = (extent + part - 1) / part;
    const int64_t most = std::min(extent, (parts + used - 1) / used * part);
    return static_cast<double>(most) / static_cast<double>(extent);
  }
};

std::optional<int64_t> ConstantOf(const llvm::Value* value) {
  const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  if (constant == nullptr) return std::nullopt;
  return constant->getSExtValue();
}

// Reads a call of HoneRuntime::parallel_for (common/target/hone_runtime.h), as EmitParallelFor in
// function_emitter.cc emits it. Returns its body; null: the call is something else.
llvm::Function* ReadParallelFor(const llvm::CallInst& call, ParallelLoop& loop) {
  if (call.getCalledFunction() != nullptr || call.arg_size() != 6) return nullptr;
  auto* const body = llvm::dyn_cast<llvm::Function>(call.getArgOperand(4));
  if (body == nullptr) return nullptr;
  loop.extent = ConstantOf(call.getArgOperand(1)).value_or(1);
  loop.chunk = ConstantOf(call.getArgOperand(2)).value_or(0);
  const llvm::Value* const used = call.getArgOperand(3);
  loop.threads = ConstantOf(used).value_or(1);
  if (const auto* const least = llvm::dyn_cast<llvm::MinMaxIntrinsic>(used)) {
    for (const llvm::Value* const side : {least->getLHS(), least->getRHS()})
      loop.threads = ConstantOf(side).value_or(loop.threads);
  }
  return body;
}

// The branches of a kernel, made from a copy of its module.
class BranchesOnly {
 public:
  BranchesOnly(std::unique_ptr<llvm::Module> module, int runtime_slot)
      : module_(std::move(module)), runtime_slot_(runtime_slot) {}

  // Reduces the functions that `main` reaches. Afterwards the module does nothing but count.
  absl::Status Reduce(llvm::Function& main, int cores) {
    for (llvm::Function& function : *module_) {
      if (!function.isDeclaration()) RunAlone(function, cores);
    }
    Reach(main);
    for (llvm::Function& function : *module_) {
      if (!reached_.contains(&function) && !function.isDeclaration()) function.deleteBody();
    }
    for (llvm::Function* const function : in_order_) HONE_RETURN_IF_ERROR(Strip(*function));
    auto* const type =
        llvm::ArrayType::get(llvm::Type::getInt64Ty(module_->getContext()), Blocks());
    counters_ = new llvm::GlobalVariable(*module_, type, /*isConstant=*/false,
                                         llvm::GlobalValue::ExternalLinkage,
                                         llvm::ConstantAggregateZero::get(type), kCounters);
    int64_t first = 0;
    for (llvm::Function* const function : in_order_) {
      AddCounters(*function, first);
      first += static_cast<int64_t>(function->size());
    }
    main.setLinkage(llvm::GlobalValue::ExternalLinkage);
    return absl::OkStatus();
  }

  // Replaces loops by what they count, as far as their length is known.
  void Shorten() {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager graph;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graph);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graph, modules);
    llvm::LoopPassManager of_loops;
    of_loops.addPass(llvm::IndVarSimplifyPass());
    of_loops.addPass(llvm::LoopDeletionPass());
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::PromotePass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(of_loops)));
    llvm::ModulePassManager pipeline;
    pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    pipeline.run(*module_, modules);
  }

  // Runs the module, which is used up. Returns the counters of all blocks, in the order of
  // `names()`.
  absl::StatusOr<std::vector<int64_t>> Run(const std::string& main, int slots) {
    const size_t blocks = names_.size();
    module_->setTargetTriple(llvm::sys::getProcessTriple());
    module_->setDataLayout("");
    std::string error;
    const std::unique_ptr<llvm::ExecutionEngine> engine(
        llvm::EngineBuilder(std::move(module_))
            .setEngineKind(llvm::EngineKind::JIT)
            .setOptLevel(llvm::CodeGenOptLevel::Less)
            .setErrorStr(&error)
            .create());
    if (engine == nullptr) {
      return absl::InternalError(
          absl::StrCat("LLVM cannot run the kernel's branches on this machine: ", error));
    }
    using Kernel = void(void* context);
    auto* const run = reinterpret_cast<Kernel*>(engine->getFunctionAddress(main));
    const auto* const counters =
        reinterpret_cast<const int64_t*>(engine->getGlobalValueAddress(kCounters));
    if (run == nullptr || counters == nullptr)
      return absl::InternalError("LLVM compiled the kernel's branches without their counters");
    std::vector<int64_t> context(slots);
    run(context.data());
    return std::vector<int64_t>(counters, counters + blocks);
  }

  // The function and the name of each block.
  const std::vector<std::pair<std::string, std::string>>& names() const { return names_; }
  // By the name of the body.
  const std::map<std::string, double>& shares() const { return shares_; }

 private:
  // Returns the slot of the context to which a pointer points; nullopt: it points elsewhere.
  std::optional<int64_t> SlotOf(const llvm::Function& function, llvm::Value* pointer) const {
    int64_t offset = 0;
    const llvm::Value* const base =
        llvm::GetPointerBaseWithConstantOffset(pointer, offset, module_->getDataLayout());
    if (function.arg_empty() || base != function.getArg(0)) return std::nullopt;
    return offset / kSlotBytes;
  }

  // Notes the parallel loops, and then lets the function run them itself, as without a runtime.
  void RunAlone(llvm::Function& function, int cores) {
    const llvm::DataLayout& layout = module_->getDataLayout();
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        ParallelLoop loop;
        const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        if (const llvm::Function* const body =
                call != nullptr ? ReadParallelFor(*call, loop) : nullptr)
          shares_[body->getName().str()] = loop.BusiestShare(cores);
        // A branch with weights depends on the data, and goes the usual way.
        auto* const branch = llvm::dyn_cast<llvm::BranchInst>(&instruction);
        if (uint64_t taken = 0, other = 0;
            branch != nullptr && llvm::extractBranchWeights(*branch, taken, other))
          branch->setCondition(llvm::ConstantInt::getBool(module_->getContext(), taken > other));
        auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        if (load != nullptr && load->getType()->isPointerTy() &&
            SlotOf(function, load->getPointerOperand()) == runtime_slot_)
          load->replaceAllUsesWith(llvm::Constant::getNullValue(load->getType()));
        if (llvm::isa<llvm::ICmpInst>(instruction)) {
          if (llvm::Constant* const known = llvm::ConstantFoldInstruction(&instruction, layout))
            instruction.replaceAllUsesWith(known);
        }
      }
    }
    for (llvm::BasicBlock& block : function) llvm::ConstantFoldTerminator(&block);
    llvm::removeUnreachableBlocks(function);
  }

  void Reach(llvm::Function& function) {
    if (function.isDeclaration() || !reached_.insert(&function).second) return;
    in_order_.push_back(&function);
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        if (call != nullptr && call->getCalledFunction() != nullptr)
          Reach(*call->getCalledFunction());
      }
    }
  }

  // Whether an instruction decides where control goes, itself or through the variables of loops
  // that functions pass to each other.
  bool Steers(const llvm::Function& function, llvm::Instruction& instruction) const {
    if (instruction.isTerminator()) return true;
    if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
      return SlotOf(function, store->getPointerOperand()).has_value();
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    return call != nullptr && reached_.contains(call->getCalledFunction());
  }

  // Removes all instructions on which no branch depends.
  absl::Status Strip(llvm::Function& function) const {
    std::set<llvm::Instruction*> needed;
    std::vector<llvm::Instruction*> open;
    const auto need = [&](llvm::Instruction* instruction) {
      if (needed.insert(instruction).second) open.push_back(instruction);
    };
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block)
        if (Steers(function, instruction)) need(&instruction);
    }
    while (!open.empty()) {
      llvm::Instruction* const instruction = open.back();
      open.pop_back();
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction);
      if ((load != nullptr && !SlotOf(function, load->getPointerOperand()).has_value()) ||
          (instruction->mayReadFromMemory() && load == nullptr && !Steers(function, *instruction)))
        return absl::UnimplementedError("a branch of the kernel depends on the data");
      for (llvm::Value* const operand : instruction->operands()) {
        if (auto* const before = llvm::dyn_cast<llvm::Instruction>(operand)) need(before);
      }
    }
    std::vector<llvm::Instruction*> rest;
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block)
        if (!needed.contains(&instruction)) rest.push_back(&instruction);
    }
    for (llvm::Instruction* const instruction : rest) {
      if (!instruction->getType()->isVoidTy())
        instruction->replaceAllUsesWith(llvm::PoisonValue::get(instruction->getType()));
      instruction->eraseFromParent();
    }
    for (const char* const attribute : {"target-cpu", "target-features"})
      function.removeFnAttr(attribute);
    return absl::OkStatus();
  }

  int64_t Blocks() const {
    int64_t blocks = 0;
    for (const llvm::Function* const function : in_order_)
      blocks += static_cast<int64_t>(function->size());
    return blocks;
  }

  // Counts in variables of the function, which become registers, and adds these to the counters
  // from `first` on when the function returns.
  void AddCounters(llvm::Function& function, int64_t first) {
    std::vector<llvm::BasicBlock*> blocks;
    for (llvm::BasicBlock& block : function) blocks.push_back(&block);
    llvm::IRBuilder<> b(module_->getContext());
    std::vector<llvm::AllocaInst*> variables;
    b.SetInsertPoint(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
    for (size_t i = 0; i < blocks.size(); ++i) variables.push_back(b.CreateAlloca(b.getInt64Ty()));
    for (llvm::AllocaInst* const variable : variables) b.CreateStore(b.getInt64(0), variable);
    const auto add = [&](llvm::Value* to, llvm::Value* value, bool in_memory) {
      b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt64Ty(), to), value), to, in_memory);
    };
    for (size_t i = 0; i < blocks.size(); ++i) {
      b.SetInsertPoint(blocks[i]->getTerminator());
      // A volatile variable stays in memory.
      add(variables[i], b.getInt64(1), /*in_memory=*/blocks.size() > kMostShortened);
      names_.emplace_back(function.getName().str(), blocks[i]->getName().str());
    }
    for (llvm::BasicBlock* const block : blocks) {
      if (!llvm::isa<llvm::ReturnInst>(block->getTerminator())) continue;
      b.SetInsertPoint(block->getTerminator());
      for (size_t i = 0; i < blocks.size(); ++i) {
        add(b.CreateConstInBoundsGEP2_64(counters_->getValueType(), counters_, 0, first + i),
            b.CreateLoad(b.getInt64Ty(), variables[i]), /*in_memory=*/false);
      }
    }
  }

  std::unique_ptr<llvm::Module> module_;
  const int runtime_slot_;
  std::set<const llvm::Function*> reached_;
  std::vector<llvm::Function*> in_order_;  // those that are reached
  llvm::GlobalVariable* counters_ = nullptr;
  std::vector<std::pair<std::string, std::string>> names_;
  std::map<std::string, double> shares_;
};

}  // namespace

absl::StatusOr<std::map<std::string, Executions>> CountExecutions(llvm::Module& module,
                                                                  const std::string& main,
                                                                  int arguments, int cores) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function)
      if (!block.hasName()) block.setName("block");
  }
  ModuleState slots;
  slots.program.arguments = arguments;
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::Function* const function = copy->getFunction(main);
  if (function == nullptr) return absl::InternalError(absl::StrCat("there is no function ", main));
  BranchesOnly branches(std::move(copy), slots.RuntimeSlot());
  HONE_RETURN_IF_ERROR(branches.Reduce(*function, cores));
  branches.Shorten();
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                        branches.Run(main, slots.CaptureSlot() + kMaxCaptures));
  std::map<std::string, Executions> executions;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto& [name, block] = branches.names()[i];
    Executions& of_function = executions[name];
    if (const auto share = branches.shares().find(name); share != branches.shares().end())
      of_function.busiest_share = share->second;
    if (counts[i] > 0) of_function.blocks[block] = counts[i];
  }
  return executions;
}

}  // namespace hone::codegen

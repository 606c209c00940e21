#include "worker/compile/llvm/modelled_cost.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/program.h"
#include "llvm/CodeGen/AsmPrinter.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/MCA/Context.h"
#include "llvm/MCA/CustomBehaviour.h"
#include "llvm/MCA/InstrBuilder.h"
#include "llvm/MCA/Pipeline.h"
#include "llvm/MCA/SourceMgr.h"
#include "worker/compile/llvm/executions.h"
#include "worker/compile/llvm/generated_module.h"

namespace hone::codegen {
namespace {

// A machine block: the block of LLVM IR that it belongs to, and its instructions.
struct MachineBlock {
  std::string function;
  std::string name;                        // "" if code generation has added the block
  std::vector<std::string> before, after;  // the labels of the blocks beside it
  std::vector<llvm::MCInst> code;          // without calls and branches
};
using MachineBlocks = std::map<std::string, MachineBlock>;  // by label; that of a function's entry
                                                            // is the function's name
using BlockNames = std::map<std::string, std::set<std::string>>;  // by function

// Gives each machine block a label, so that the streamer below sees where it begins.
class LabelBlocks final : public llvm::MachineFunctionPass {
 public:
  // `names`: of the blocks of LLVM IR before code generation.
  LabelBlocks(BlockNames names, MachineBlocks* blocks)
      : MachineFunctionPass(kId), names_(std::move(names)), blocks_(*blocks) {}

  bool runOnMachineFunction(llvm::MachineFunction& function) override {
    const std::string of = function.getName().str();
    const auto label = [&](const llvm::MachineBasicBlock* block) {
      return block == &function.front() ? of : block->getSymbol()->getName().str();
    };
    // First all of them, because a symbol that is made earlier has no name.
    for (llvm::MachineBasicBlock& block : function) block.setLabelMustBeEmitted();
    for (const llvm::MachineBasicBlock& block : function) {
      MachineBlock described{.function = of};
      if (const llvm::BasicBlock* const origin = block.getBasicBlock()) {
        std::string name = origin->getName().str();
        if (names_[of].contains(name)) described.name = std::move(name);
      }
      for (const llvm::MachineBasicBlock* const beside : block.predecessors())
        described.before.push_back(label(beside));
      for (const llvm::MachineBasicBlock* const beside : block.successors())
        described.after.push_back(label(beside));
      blocks_[label(&block)] = std::move(described);
    }
    return false;
  }

 private:
  static inline char kId = 0;
  BlockNames names_;
  MachineBlocks& blocks_;
};

// Receives the machine code instead of a file.
class CollectCode final : public llvm::MCStreamer {
 public:
  CollectCode(llvm::MCContext& context, const llvm::MCInstrInfo& instructions,
              MachineBlocks* blocks)
      : MCStreamer(context), instructions_(instructions), blocks_(*blocks) {}

  void emitLabel(llvm::MCSymbol* symbol, llvm::SMLoc location) override {
    MCStreamer::emitLabel(symbol, location);
    if (const auto found = blocks_.find(symbol->getName().str()); found != blocks_.end())
      current_ = &found->second;
  }
  void emitInstruction(const llvm::MCInst& instruction, const llvm::MCSubtargetInfo&) override {
    const llvm::MCInstrDesc& description = instructions_.get(instruction.getOpcode());
    if (description.isTerminator() || description.isCall() || current_ == nullptr) return;
    current_->code.push_back(instruction);
  }
  bool hasRawTextSupport() const override { return true; }
  bool emitSymbolAttribute(llvm::MCSymbol*, llvm::MCSymbolAttr) override { return true; }
  void emitCommonSymbol(llvm::MCSymbol*, uint64_t, llvm::Align) override {}
  void emitZerofill(llvm::MCSection*, llvm::MCSymbol*, uint64_t, llvm::Align,
                    llvm::SMLoc) override {}

 protected:
  void emitRawTextImpl(llvm::StringRef) override {}

 private:
  const llvm::MCInstrInfo& instructions_;
  MachineBlocks& blocks_;
  MachineBlock* current_ = nullptr;
};

// Generates machine code. The instructions refer to expressions that `passes` keeps alive.
absl::Status CollectBlocks(const GeneratedModule& generated, llvm::legacy::PassManager& passes,
                           MachineBlocks& blocks) {
  auto& machine = static_cast<llvm::LLVMTargetMachine&>(*generated.machine);
  SetOptions(generated.passes);
  BlockNames names;
  for (const llvm::Function& function : *generated.module) {
    for (const llvm::BasicBlock& block : function)
      names[function.getName().str()].insert(block.getName().str());
  }
  auto* const information = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig* const config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(information);
  if (config->addISelPasses())
    return absl::InternalError("LLVM cannot select instructions for this target");
  config->addMachinePasses();
  config->setInitialized();
  passes.add(new LabelBlocks(std::move(names), &blocks));
  auto streamer = std::make_unique<CollectCode>(information->getMMI().getContext(),
                                                *machine.getMCInstrInfo(), &blocks);
  machine.getTarget().createNullTargetStreamer(*streamer);
  llvm::AsmPrinter* const printer =
      machine.getTarget().createAsmPrinter(machine, std::move(streamer));
  if (printer == nullptr) return absl::InternalError("LLVM cannot print code of this target");
  passes.add(printer);
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(*generated.module);
  return absl::OkStatus();
}

// The number of executions of each machine block by its label: that of its block of LLVM IR. Code
// generation adds copies on the way from one block to another, and divides a block where a vector
// has a mask that the CPU has no instruction for: an element is loaded in a block of its own, and
// what follows is a block as well. An added block runs as often as the blocks before it, as if all
// elements of the mask were set, and at most as often as the blocks after it.
std::map<std::string, double> ExecutionsOf(const MachineBlocks& blocks,
                                           const std::map<std::string, Executions>& functions) {
  std::map<std::string, double> executions;
  std::vector<std::pair<const MachineBlock*, double*>> added;
  for (const auto& [label, block] : blocks) {
    const auto function = functions.find(block.function);
    if (function == functions.end()) continue;
    double& count = executions[label];
    if (block.name.empty()) {
      added.emplace_back(&block, &count);
    } else if (const auto found = function->second.blocks.find(block.name);
               found != function->second.blocks.end()) {
      count = static_cast<double>(found->second);
    }
  }
  const auto most = [&](const std::vector<std::string>& labels) {
    double count = 0;
    for (const std::string& label : labels) count = std::max(count, executions[label]);
    return count;
  };
  const auto is_known = [&](const std::string& label) { return !blocks.at(label).name.empty(); };
  // Counts only grow, and are those of other blocks.
  for (bool changes = true; changes;) {
    changes = false;
    for (const auto& [block, count] : added) {
      double now = most(block->before);
      if (!block->after.empty() && absl::c_all_of(block->after, is_known))
        now = std::min(now, most(block->after));
      changes |= now > *count;
      *count = now;
    }
  }
  return executions;
}

// LLVM's machine code analysis for one CPU.
class Analysis {
 public:
  explicit Analysis(const llvm::TargetMachine& machine)
      : subtarget_(*machine.getMCSubtargetInfo()),
        instructions_(*machine.getMCInstrInfo()),
        registers_(*machine.getMCRegisterInfo()),
        analysis_(machine.getTarget().createMCInstrAnalysis(&instructions_)),
        instruments_(subtarget_, instructions_),
        builder_(subtarget_, instructions_, registers_, analysis_.get(), instruments_,
                 kCallCycles) {}

  const llvm::MCSchedModel& model() const { return subtarget_.getSchedModel(); }

  // Returns the cycles of one execution once the block runs steadily.
  absl::StatusOr<double> SteadyCycles(const std::vector<llvm::MCInst>& code) {
    if (code.empty()) return 0.0;
    const auto size = static_cast<int64_t>(code.size());
    const int64_t few = std::clamp(kWarmUp / size, kLeastRuns, kMostRuns), many = 3 * few;
    HONE_ASSIGN_OR_RETURN(const double shorter, Cycles(code, few));
    HONE_ASSIGN_OR_RETURN(const double longer, Cycles(code, many));
    return (longer - shorter) / static_cast<double>(many - few);
  }

 private:
  static constexpr unsigned kCallCycles = 1;  // there are none
  // Executions before the steady state, so that the queues of the CPU are full.
  static constexpr int64_t kWarmUp = 1000, kLeastRuns = 4, kMostRuns = 100;

  absl::StatusOr<double> Cycles(const std::vector<llvm::MCInst>& code, int64_t runs) {
    builder_.clear();
    double unknown = 0;  // instructions without a model
    std::vector<std::unique_ptr<llvm::mca::Instruction>> sequence;
    for (const llvm::MCInst& instruction : code) {
      auto made =
          builder_.createInstruction(instruction, llvm::SmallVector<llvm::mca::Instrument*>());
      if (made) {
        sequence.push_back(std::move(*made));
      } else {
        llvm::consumeError(made.takeError());
        ++unknown;
      }
    }
    const double rest = unknown * static_cast<double>(runs) / model().IssueWidth;
    if (sequence.empty()) return rest;
    llvm::mca::CircularSourceMgr source(sequence, static_cast<unsigned>(runs));
    llvm::mca::CustomBehaviour behaviour(subtarget_, source, instructions_);
    llvm::mca::Context context(registers_, subtarget_);
    const llvm::mca::PipelineOptions options(0, 0, 0, 0, 0, 0, /*NoAlias=*/true);
    const std::unique_ptr<llvm::mca::Pipeline> pipeline =
        model().isOutOfOrder() ? context.createDefaultPipeline(options, source, behaviour)
                               : context.createInOrderPipeline(options, source, behaviour);
    llvm::Expected<unsigned> cycles = pipeline->run();
    if (!cycles)
      return absl::InternalError(
          absl::StrCat("LLVM cannot model a block: ", llvm::toString(cycles.takeError())));
    return *cycles + rest;
  }

  const llvm::MCSubtargetInfo& subtarget_;
  const llvm::MCInstrInfo& instructions_;
  const llvm::MCRegisterInfo& registers_;
  const std::unique_ptr<llvm::MCInstrAnalysis> analysis_;
  const llvm::mca::InstrumentManager instruments_;
  llvm::mca::InstrBuilder builder_;
};

// Blocks with a smaller share of the executed instructions are not simulated: they count as if the
// CPU issued as many instructions per cycle as it can.
constexpr double kLeastShare = 1e-3;

}  // namespace

absl::StatusOr<ModelledCost> ModelCost(const lower::LoweredProgram& program,
                                       const target::Target& target) {
  if (target.kind != target::Kind::kCpu)
    return absl::UnimplementedError("LLVM has models of CPUs only");
  HONE_ASSIGN_OR_RETURN(const GeneratedModule generated, GenerateModule(program, target));
  Analysis analysis(*generated.machine);
  if (!analysis.model().hasInstrSchedModel()) {
    return absl::InvalidArgumentError(
        absl::StrCat("LLVM has no model of the CPU ", target.cpu, "; name one that it models"));
  }
  HONE_ASSIGN_OR_RETURN(const auto executions,
                        CountExecutions(*generated.module, absl::StrCat("hone_", ir::kMainKernel),
                                        program.arguments, target.cores));
  llvm::legacy::PassManager passes;
  MachineBlocks blocks;
  HONE_RETURN_IF_ERROR(CollectBlocks(generated, passes, blocks));

  const std::map<std::string, double> counts = ExecutionsOf(blocks, executions);
  ModelledCost cost;
  std::vector<const MachineBlock*> code;
  double executed = 0;
  for (const auto& [label, block] : blocks) {
    const auto function = executions.find(block.function);
    if (function == executions.end()) continue;
    const double runs = counts.at(label) * function->second.busiest_share;
    const auto instructions = static_cast<int64_t>(block.code.size());
    if (runs == 0 || instructions == 0) continue;
    cost.blocks.push_back({.name = absl::StrCat(block.function, "/", block.name),
                           .executions = runs,
                           .instructions = instructions});
    code.push_back(&block);
    executed += runs * static_cast<double>(instructions);
  }
  for (size_t i = 0; i < code.size(); ++i) {
    ModelledBlock& block = cost.blocks[i];
    const auto instructions = static_cast<double>(block.instructions);
    if (block.executions * instructions < kLeastShare * executed) {
      block.cycles = instructions / analysis.model().IssueWidth;
    } else {
      HONE_ASSIGN_OR_RETURN(block.cycles, analysis.SteadyCycles(code[i]->code));
    }
    cost.cycles += block.executions * block.cycles;
  }
  absl::c_stable_sort(cost.blocks, [](const ModelledBlock& x, const ModelledBlock& y) {
    return x.executions * x.cycles > y.executions * y.cycles;
  });
  return cost;
}

}  // namespace hone::codegen

#include "worker/compile/llvm/compile.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "worker/compile/backend.h"
#include "worker/compile/llvm/entry_points.h"
#include "worker/compile/llvm/function_emitter.h"
#include "worker/compile/llvm/generated_module.h"
#include "worker/compile/llvm/machine.h"
#include "worker/compile/llvm/vector_parts.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

void InitializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
  });
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeTargetMachine(
    const target::Target& target) {
  InitializeTargets();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("LLVM has no target '", target.triple, "': ", error));
  const std::string features =
      absl::StrJoin(target.features, ",",
                    [](std::string* out, const std::string& f) { absl::StrAppend(out, "+", f); });
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.triple, target.cpu, features, options, llvm::Reloc::PIC_,
                                 std::nullopt, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("LLVM cannot generate code for ", target.cpu));
  return machine;
}

// A short pipeline: the emitter already hoists and unrolls. This promotes accumulators to
// registers, merges equal subexpressions and removes empty blocks.
void Optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::FunctionPassManager passes;
  // Also promotes small stack buffers whose indices are all known, such as a tile between two
  // transforms.
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::DCEPass());
  llvm::ModulePassManager pipeline;
  pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  pipeline.run(module, modules);
}

// Sets LLVM options that exist only on its command line. LLD resets them at each link, so they are
// set each time.
void SetOption(absl::string_view name, absl::string_view value) {
  auto& options = llvm::cl::getRegisteredOptions();
  if (const auto found = options.find(llvm::StringRef(name.data(), name.size()));
      found != options.end()) {
    found->second->addOccurrence(0, found->first(), llvm::StringRef(value.data(), value.size()));
  }
}

absl::StatusOr<std::string> Generate(llvm::Module& module, const Passes& optional,
                                     llvm::TargetMachine& target_machine,
                                     llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  SetOptions(optional);
  llvm::legacy::PassManager passes;
  if (target_machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return absl::InternalError("LLVM cannot emit this kind of file");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

// Counts instructions as selection and register allocation will see them: an instruction on a
// vector wider than the target's registers counts once per part.
int64_t CountInstructions(const llvm::Module& module, int vector_bits) {
  const llvm::DataLayout& layout = module.getDataLayout();
  int64_t count = 0;
  for (const llvm::Function& function : module) {
    for (const llvm::BasicBlock& block : function) {
      for (const llvm::Instruction& instruction : block) {
        int64_t bits = 0;
        const auto widen = [&](llvm::Type* type) {
          if (type->isVectorTy())
            bits = std::max(bits,
                            static_cast<int64_t>(layout.getTypeSizeInBits(type).getFixedValue()));
        };
        widen(instruction.getType());
        for (const llvm::Value* operand : instruction.operand_values()) widen(operand->getType());
        count += std::max<int64_t>(1, (bits + vector_bits - 1) / vector_bits);
      }
    }
  }
  return count;
}

class Llvm final : public Backend {
 public:
  absl::string_view name() const override { return "llvm"; }
  bool Serves(const target::Target& target) const override {
    return target.kind == target::Kind::kCpu;
  }
  absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target& target,
                                const CodeOptions& options) const override {
    HONE_ASSIGN_OR_RETURN(CompiledObject compiled,
                          Compile(program, target, {.keep_assembly = options.keep_source}));
    return Code{kElfObject, std::move(compiled.object), std::move(compiled.assembly)};
  }
};

}  // namespace

void SetOptions(const Passes& passes) {
  SetOption("disable-lsr", passes.advance_pointers ? "false" : "true");
  SetOption("enable-misched", passes.schedule ? "true" : "false");
  SetOption("pre-RA-sched", passes.schedule ? "default" : "source");
}

absl::StatusOr<GeneratedModule> GenerateModule(const lower::LoweredProgram& program,
                                               const target::Target& target) {
  HONE_RETURN_IF_ERROR(lower::CheckIntrinsics(program, target));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine, Machine::For(target));
  GeneratedModule result{.context = std::make_unique<llvm::LLVMContext>()};
  HONE_ASSIGN_OR_RETURN(result.machine, MakeTargetMachine(target));
  result.module = std::make_unique<llvm::Module>("hone_kernel", *result.context);
  llvm::Module& module = *result.module;
  module.setTargetTriple(target.triple);
  module.setDataLayout(result.machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::SmallPIC);
  ModuleState state{
      .program = program, .module = &module, .target = &target, .machine = machine.get()};
  llvm::Function* prepack = nullptr;
  llvm::Function* main = nullptr;
  for (const lower::LoweredKernel& kernel : program.kernels) {
    const bool prepacks = kernel.name == ir::kPrepackKernel;
    if (!prepacks && kernel.name != ir::kMainKernel) {
      return absl::UnimplementedError(
          absl::StrCat("a kernel with the name ", kernel.name, " has no CPU code"));
    }
    HONE_ASSIGN_OR_RETURN(llvm::Function * function,
                          FunctionEmitter::EmitKernel(state, "hone_" + kernel.name, kernel.body));
    if (prepacks) state.last_parallel = {};
    (prepacks ? prepack : main) = function;
  }
  if (main == nullptr) return absl::InternalError("the program has no kernel \"main\"");
  const llvm::MCSubtargetInfo& subtarget = *result.machine->getMCSubtargetInfo();
  HONE_ASSIGN_OR_RETURN(llvm::Function* const guard, machine->EmitCpuGuard(module, subtarget));
  EmitEntryPoints(state, guard, prepack, main);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
    function.addFnAttr("min-legal-vector-width", std::to_string(target.vector_bits));
    // The guard has its own attributes: it runs on every CPU.
    if (function.hasFnAttribute("target-cpu")) continue;
    function.addFnAttr("target-cpu", target.cpu);
    machine->SetAttributes(function);
  }
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    return absl::InternalError(absl::StrCat("LLVM refuses the generated code: ", problem));
  machine->ReplaceCalls(module, subtarget);
  Optimize(module, *result.machine);
  for (llvm::Function& function : module) KeepInParts(function, target.vector_bits);
  result.passes = machine->Arrange(module);
  if (const int64_t instructions = CountInstructions(module, target.vector_bits);
      instructions > kMaxInstructions) {
    return absl::InvalidArgumentError(absl::StrCat("the unrolled code has ", instructions,
                                                   " instructions; at most ", kMaxInstructions,
                                                   " are compiled"));
  }
  return result;
}

absl::StatusOr<CompiledObject> Compile(const lower::LoweredProgram& program,
                                       const target::Target& target,
                                       const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const GeneratedModule generated, GenerateModule(program, target));
  llvm::Module& module = *generated.module;
  CompiledObject result;
  if (options.keep_ir) {
    llvm::raw_string_ostream text(result.ir);
    module.print(text, nullptr);
  }
  if (options.keep_assembly) {
    const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    HONE_ASSIGN_OR_RETURN(result.assembly, Generate(*copy, generated.passes, *generated.machine,
                                                    llvm::CodeGenFileType::AssemblyFile));
  }
  HONE_ASSIGN_OR_RETURN(result.object, Generate(module, generated.passes, *generated.machine,
                                                llvm::CodeGenFileType::ObjectFile));
  return result;
}

const Backend* LlvmBackend() {
  static const auto* const backend = new Llvm;
  return backend;
}

}  // namespace hone::codegen

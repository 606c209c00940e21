#include "worker/builder/stub_library.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace hone::builder {

const std::vector<StubLibrary>& KnownLibraries() {
  static const auto* const libraries = new std::vector<StubLibrary>{
      {"libgomp.so.1",
       {"GOMP_barrier", "GOMP_loop_dynamic_next", "GOMP_loop_end_nowait", "GOMP_parallel",
        "GOMP_parallel_loop_dynamic", "omp_get_max_threads", "omp_get_num_threads",
        "omp_get_thread_num", "omp_in_parallel"}},
      {"libc.so.6", {"bzero", "memcmp", "memcpy", "memmove", "memset"}},
      {"libm.so.6",
       {"exp",    "exp2",   "exp2f", "expf",  "expm1", "expm1f", "erf",       "erff",      "log",
        "log1p",  "log1pf", "log2",  "log2f", "logf",  "pow",    "powf",      "sin",       "sinf",
        "cos",    "cosf",   "tanh",  "tanhf", "sqrt",  "sqrtf",  "fma",       "fmaf",      "floor",
        "floorf", "ceil",   "ceilf", "rint",  "rintf", "round",  "roundf",    "trunc",     "truncf",
        "fmin",   "fminf",  "fmax",  "fmaxf", "fmod",  "fmodf",  "nearbyint", "nearbyintf"}},
  };
  return *libraries;
}

absl::StatusOr<std::string> CompileStub(const StubLibrary& library, const std::string& triple) {
  static const bool initialized = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    return true;
  }();
  (void)initialized;
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no code generator for ", triple, ": ", error));
  }
  const std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, "", "", llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::None));
  llvm::LLVMContext context;
  llvm::Module module("stub", context);
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  for (const std::string& name : library.functions) {
    llvm::Function* const function =
        llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), false),
                               llvm::Function::ExternalLinkage, name, module);
    llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", function));
    builder.CreateRetVoid();
  }
  llvm::SmallVector<char, 4096> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return absl::InvalidArgumentError(absl::StrCat("LLVM writes no object files for ", triple));
  }
  passes.run(module);
  return std::string(object.data(), object.size());
}

}  // namespace hone::builder

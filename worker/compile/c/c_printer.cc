#include "worker/compile/c/c_printer.h"

#include "common/base/status_macros.h"
#include "worker/compile/c/c_kernel.h"

namespace hone::codegen {

absl::StatusOr<CModule> PrintC(const lower::LoweredProgram& program, const CDialect& dialect) {
  lower::LoweredProgram copy = program;  // reductions add expressions
  CPrelude prelude(dialect);
  CNames names;
  for (const char* const parameter : {"packed", "workspace"}) names.Add(parameter);
  const std::vector<std::string> buffers = NameBuffers(copy, names);
  CNames functions;
  CModule module;
  std::string kernels;
  for (const lower::LoweredKernel& kernel : program.kernels) {
    const std::string& function = module.functions.emplace_back(functions.Add(
        kernel.name == ir::kMainKernel ? absl::StrCat(kernel.name, "_kernel") : kernel.name));
    CKernelPrinter printer(copy, dialect, prelude, names, buffers);
    HONE_ASSIGN_OR_RETURN(const std::string text, printer.Print(kernel, function));
    absl::StrAppend(&kernels, kernels.empty() ? "" : "\n", text);
  }
  module.text = absl::StrCat(prelude.Text(), kernels);
  module.uses_f64 = prelude.uses_f64();
  return module;
}

}  // namespace hone::codegen

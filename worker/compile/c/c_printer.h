#ifndef HONE_WORKER_COMPILE_C_C_PRINTER_H_
#define HONE_WORKER_COMPILE_C_C_PRINTER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/compile/backend.h"
#include "worker/compile/c/dialect.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Generates source text for GPUs in a dialect, and the description of how to launch its kernels.
// Errors as in Backend::Generate; also InvalidArgument if a kernel needs more threads or shared
// memory than the target allows, or f64 on a target without it.
absl::StatusOr<Code> PrintGpuSource(const lower::LoweredProgram& program,
                                    const target::Target& target, const CDialect& dialect,
                                    absl::string_view format);

// The text of a program. Each kernel of the program is a function. Its parameters are pointers to
// the arguments in order, to the packed constants and to the workspace; the last two are pointers
// to uchar.
struct CModule {
  std::string text;
  std::vector<std::string> functions;  // names, one per kernel
  bool uses_f64 = false;
};

// Prints a program for people and compilers to read. Equal programs give equal texts.
// InvalidArgument: the unrolled code would exceed a limit. Unimplemented: the program has a
// statement or memory without code in the dialect.
absl::StatusOr<CModule> PrintC(const lower::LoweredProgram& program, const CDialect& dialect);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_PRINTER_H_

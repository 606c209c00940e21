#ifndef HONE_WORKER_COMPILE_C_C_PRINTER_H_
#define HONE_WORKER_COMPILE_C_C_PRINTER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compile/c/dialect.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

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

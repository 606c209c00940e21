#ifndef HONE_TESTS_WORKER_COMPILE_CLANG_CHECK_H_
#define HONE_TESTS_WORKER_COMPILE_CLANG_CHECK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::codegen {

// Whether a Clang is installed on this machine.
bool HasClang();

// Checks OpenCL C 1.2 with Clang for SPIR and for NVIDIA GPUs, without generating code. Code with
// integer dot products is checked as OpenCL C 3.0 for SPIR, which has them. Returns the errors and
// warnings of each target, after the text; empty if there are none, or no Clang.
std::string ClangErrors(absl::string_view text);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_CLANG_CHECK_H_

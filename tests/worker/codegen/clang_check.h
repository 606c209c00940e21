#ifndef HONE_TESTS_WORKER_CODEGEN_CLANG_CHECK_H_
#define HONE_TESTS_WORKER_CODEGEN_CLANG_CHECK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::codegen {

// Whether this machine has a Clang that knows OpenCL C.
bool HasClang();

// Compiles OpenCL C 1.2 without generating code, for SPIR and for NVIDIA GPUs. Returns the errors
// and warnings, and the text in front of them; empty if there are none, or no Clang.
std::string ClangErrors(absl::string_view text);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_CODEGEN_CLANG_CHECK_H_

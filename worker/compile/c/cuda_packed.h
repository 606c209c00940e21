#ifndef HONE_WORKER_COMPILE_C_CUDA_PACKED_H_
#define HONE_WORKER_COMPILE_C_CUDA_PACKED_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::codegen {

// Returns the definition of a function that computes in f16 or bf16: of vectors ("hone_add_f16"),
// or of two elements in a register ("hone_add_f16x2"); also of their parts. Empty if there is no
// such function. Where an architecture lacks the instruction, and on a CPU, they compute in float.
// In the text, $Q is the qualifier of functions.
std::string DefineCudaPacked(absl::string_view name);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_CUDA_PACKED_H_

#ifndef HONE_TESTS_WORKER_COMPILE_NVRTC_CHECK_H_
#define HONE_TESTS_WORKER_COMPILE_NVRTC_CHECK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::codegen {

// Whether NVIDIA's compiler for CUDA C++ is in one of the places that worker/builder/nvrtc.h lists.
bool HasNvrtc();

struct NvrtcResult {
  std::string errors;  // and warnings, with the text in front of them; empty if there are none
  std::string ptx;
};

// Compiles CUDA C++ for an architecture such as "sm_80". REQUIRES HasNvrtc().
NvrtcResult CompileWithNvrtc(const std::string& text, absl::string_view architecture);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_NVRTC_CHECK_H_

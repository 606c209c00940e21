#ifndef HONE_COMMON_TARGET_OPENCL_API_H_
#define HONE_COMMON_TARGET_OPENCL_API_H_

#include "absl/status/statusor.h"
#include "common/target/opencl/functions.h"

namespace hone::opencl {

// A table of OpenCL's functions. The library is opened at run time, so programs start without a
// driver. Tests fill in their own functions.
struct Api {
#define HONE_OPENCL_MEMBER(name) decltype(&::cl##name) name = nullptr;
  HONE_OPENCL_FUNCTIONS(HONE_OPENCL_MEMBER)
#undef HONE_OPENCL_MEMBER
};

// Opens an ICD loader, which loads the drivers and stays loaded. NotFound: the library is not
// installed, or lacks a function of OpenCL 1.2; the message says what to install.
absl::StatusOr<Api> OpenApi(const char* library);

// The functions of libOpenCL.so.1, opened once. Errors as for OpenApi.
absl::StatusOr<const Api*> LoadedApi();

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_API_H_

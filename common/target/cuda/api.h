#ifndef HONE_COMMON_TARGET_CUDA_API_H_
#define HONE_COMMON_TARGET_CUDA_API_H_

#include "absl/status/statusor.h"
#include "common/target/cuda/driver_functions.h"

namespace hone::cuda {

// A table of the driver's functions. The library is opened at run time, so programs start without a
// driver. Tests fill in their own functions.
struct Api {
#define HONE_CUDA_MEMBER(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_MEMBER)
#undef HONE_CUDA_MEMBER
};

// Opens a driver's library, which stays loaded, and initializes the driver. NotFound: the library
// is not installed, lacks a function, or knows no device; the message says what to do. Unavailable:
// the driver refuses to start.
absl::StatusOr<Api> OpenApi(const char* library);

// The newest version of CUDA that the driver of this machine supports, as 1000 · major + 10 ·
// minor; 0 if there is no driver. Does not start the driver.
int DriverVersion();

// The functions of libcuda.so.1, opened once. Errors as for OpenApi.
absl::StatusOr<const Api*> LoadedApi();

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_API_H_

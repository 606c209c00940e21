#ifndef HONE_COMMON_TARGET_CUDA_ERROR_H_
#define HONE_COMMON_TARGET_CUDA_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/target/cuda/api.h"

namespace hone::cuda {

// "CUDA_ERROR_OUT_OF_MEMORY", or "CUDA error 12345" for a code that is not in the table.
std::string ErrorName(Result code);

// Converts the code of a call; `what` describes the attempt. The message has the name and, where a
// user can do something, what to do. OK: success. NotFound: there is no device. InvalidArgument:
// the kernel or its launch is refused. FailedPrecondition: the code is not for this device or
// driver. ResourceExhausted: no memory. Aborted: a fault of the kernel, after which this process
// cannot use the device. Unavailable: any other failure, after which the device may be unusable.
absl::Status ToStatus(Result code, absl::string_view what);

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_ERROR_H_

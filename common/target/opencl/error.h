#ifndef HONE_COMMON_TARGET_OPENCL_ERROR_H_
#define HONE_COMMON_TARGET_OPENCL_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/target/opencl/api.h"

namespace hone::opencl {

// "CL_OUT_OF_RESOURCES", or "OpenCL error -9999" for a driver's own code.
std::string ErrorName(cl_int code);

// Converts the code of a call; `what` describes the attempt. OK: CL_SUCCESS. InvalidArgument: the
// kernel or its launch is refused. ResourceExhausted: no memory. Unavailable: any other failure,
// after which the device may be unusable.
absl::Status ToStatus(cl_int code, absl::string_view what);

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_ERROR_H_

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

// A text from a driver in printable ASCII of at most `most` characters, so that it can be shown and
// stored. Line breaks stay if `lines`; all other characters become '?'.
std::string Printable(absl::string_view text, size_t most, bool lines = false);

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_ERROR_H_

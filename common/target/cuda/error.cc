#include "common/target/cuda/error.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace hone::cuda {
namespace {

using Code = absl::StatusCode;

struct Error {
  Result code;
  const char* name;  // after CUDA_ERROR_
  Code status;
  const char* advice;  // what a user can do; may be ""
};

constexpr Code kRefused = Code::kInvalidArgument;
constexpr Code kNotForThis = Code::kFailedPrecondition;
constexpr Code kFault = Code::kAborted;
constexpr Code kFailed = Code::kUnavailable;

constexpr char kReset[] =
    "the GPU needs a reset (nvidia-smi --gpu-reset) or the machine a restart; dmesg shows the Xid";
constexpr char kUpdate[] = "update NVIDIA's driver";

// By code.
constexpr Error kErrors[] = {
    {1, "INVALID_VALUE", kRefused, ""},
    {2, "OUT_OF_MEMORY", Code::kResourceExhausted, ""},
    {3, "NOT_INITIALIZED", kFailed, ""},
    {4, "DEINITIALIZED", kFailed, ""},
    {34, "STUB_LIBRARY", Code::kNotFound,
     "libcuda.so.1 is the stub of the CUDA toolkit; put the driver's own library first in the "
     "library path"},
    {46, "DEVICE_UNAVAILABLE", kFailed,
     "another process has exclusive use of the GPU; nvidia-smi shows its compute mode and "
     "processes"},
    {100, "NO_DEVICE", Code::kNotFound,
     "the driver sees no GPU: nvidia-smi must list one, and CUDA_VISIBLE_DEVICES must not hide it"},
    {101, "INVALID_DEVICE", kRefused, ""},
    {200, "INVALID_IMAGE", kNotForThis, ""},
    {201, "INVALID_CONTEXT", kFailed, ""},
    {209, "NO_BINARY_FOR_GPU", kNotForThis, "the code was built for a different GPU architecture"},
    {214, "ECC_UNCORRECTABLE", kFailed, kReset},
    {218, "INVALID_PTX", kNotForThis, ""},
    {220, "NVLINK_UNCORRECTABLE", kFailed, kReset},
    {221, "JIT_COMPILER_NOT_FOUND", kNotForThis,
     "the driver's libnvidia-ptxjitcompiler.so.1 is missing; install the driver completely"},
    {222, "UNSUPPORTED_PTX_VERSION", kNotForThis, kUpdate},
    {223, "JIT_COMPILATION_DISABLED", kNotForThis, "unset CUDA_DISABLE_PTX_JIT"},
    {226, "CONTAINED", kFailed, kReset},
    {303, "SHARED_OBJECT_INIT_FAILED", kFailed, ""},
    {304, "OPERATING_SYSTEM", kFailed, ""},
    {400, "INVALID_HANDLE", kRefused, ""},
    {500, "NOT_FOUND", kRefused, ""},
    {700, "ILLEGAL_ADDRESS", kFault, ""},
    {701, "LAUNCH_OUT_OF_RESOURCES", kRefused,
     "a block needs more registers or shared memory than a multiprocessor has"},
    {702, "LAUNCH_TIMEOUT", kFault,
     "a GPU that drives a display stops kernels after a few seconds"},
    {709, "CONTEXT_IS_DESTROYED", kFailed, ""},
    {710, "ASSERT", kFault, ""},
    {714, "HARDWARE_STACK_ERROR", kFault, ""},
    {715, "ILLEGAL_INSTRUCTION", kFault, ""},
    {716, "MISALIGNED_ADDRESS", kFault, ""},
    {717, "INVALID_ADDRESS_SPACE", kFault, ""},
    {718, "INVALID_PC", kFault, ""},
    {719, "LAUNCH_FAILED", kFault, ""},
    {800, "NOT_PERMITTED", kFailed, "the user of this process may not use the GPU"},
    {801, "NOT_SUPPORTED", kRefused, ""},
    {802, "SYSTEM_NOT_READY", kFailed,
     "the machine's fabric is not ready; start nvidia-fabricmanager"},
    {803, "SYSTEM_DRIVER_MISMATCH", kFailed,
     "the driver's library and kernel module have different versions; restart the machine after an "
     "update"},
    {804, "COMPAT_NOT_SUPPORTED_ON_DEVICE", kFailed,
     "remove the CUDA compatibility package, which this GPU does not support, or update the "
     "driver"},
    {909, "TIMEOUT", kFailed, ""},
    {999, "UNKNOWN", kFailed, kReset},
};

const Error* Find(Result code) {
  const Error* const found = std::ranges::find(kErrors, code, &Error::code);
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace

std::string ErrorName(Result code) {
  if (code == 0) return "CUDA_SUCCESS";
  const Error* const error = Find(code);
  return error == nullptr ? absl::StrCat("CUDA error ", code)
                          : absl::StrCat("CUDA_ERROR_", error->name);
}

absl::Status ToStatus(Result code, absl::string_view what) {
  if (code == 0) return absl::OkStatus();
  const Error* const error = Find(code);
  const absl::string_view advice = error == nullptr ? "" : error->advice;
  return absl::Status(
      error == nullptr ? kFailed : error->status,
      absl::StrCat(what, ": ", ErrorName(code), advice.empty() ? "" : "; ", advice));
}

}  // namespace hone::cuda

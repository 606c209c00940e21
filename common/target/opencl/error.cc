#include "common/target/opencl/error.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hone::opencl {

std::string ErrorName(cl_int code) {
  switch (code) {
#define HONE_OPENCL_NAME(name) \
  case name:                   \
    return #name;
    HONE_OPENCL_NAME(CL_SUCCESS)
    HONE_OPENCL_NAME(CL_DEVICE_NOT_FOUND)
    HONE_OPENCL_NAME(CL_DEVICE_NOT_AVAILABLE)
    HONE_OPENCL_NAME(CL_COMPILER_NOT_AVAILABLE)
    HONE_OPENCL_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    HONE_OPENCL_NAME(CL_OUT_OF_RESOURCES)
    HONE_OPENCL_NAME(CL_OUT_OF_HOST_MEMORY)
    HONE_OPENCL_NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
    HONE_OPENCL_NAME(CL_BUILD_PROGRAM_FAILURE)
    HONE_OPENCL_NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    HONE_OPENCL_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    HONE_OPENCL_NAME(CL_INVALID_VALUE)
    HONE_OPENCL_NAME(CL_INVALID_PLATFORM)
    HONE_OPENCL_NAME(CL_INVALID_DEVICE)
    HONE_OPENCL_NAME(CL_INVALID_CONTEXT)
    HONE_OPENCL_NAME(CL_INVALID_QUEUE_PROPERTIES)
    HONE_OPENCL_NAME(CL_INVALID_COMMAND_QUEUE)
    HONE_OPENCL_NAME(CL_INVALID_MEM_OBJECT)
    HONE_OPENCL_NAME(CL_INVALID_BINARY)
    HONE_OPENCL_NAME(CL_INVALID_BUILD_OPTIONS)
    HONE_OPENCL_NAME(CL_INVALID_PROGRAM)
    HONE_OPENCL_NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    HONE_OPENCL_NAME(CL_INVALID_KERNEL_NAME)
    HONE_OPENCL_NAME(CL_INVALID_KERNEL_DEFINITION)
    HONE_OPENCL_NAME(CL_INVALID_KERNEL)
    HONE_OPENCL_NAME(CL_INVALID_ARG_INDEX)
    HONE_OPENCL_NAME(CL_INVALID_ARG_VALUE)
    HONE_OPENCL_NAME(CL_INVALID_ARG_SIZE)
    HONE_OPENCL_NAME(CL_INVALID_KERNEL_ARGS)
    HONE_OPENCL_NAME(CL_INVALID_WORK_DIMENSION)
    HONE_OPENCL_NAME(CL_INVALID_WORK_GROUP_SIZE)
    HONE_OPENCL_NAME(CL_INVALID_WORK_ITEM_SIZE)
    HONE_OPENCL_NAME(CL_INVALID_GLOBAL_OFFSET)
    HONE_OPENCL_NAME(CL_INVALID_OPERATION)
    HONE_OPENCL_NAME(CL_INVALID_BUFFER_SIZE)
    HONE_OPENCL_NAME(CL_INVALID_GLOBAL_WORK_SIZE)
#undef HONE_OPENCL_NAME
    default:
      return absl::StrCat("OpenCL error ", code);
  }
}

absl::Status ToStatus(cl_int code, absl::string_view what) {
  if (code == CL_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", ErrorName(code));
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return absl::ResourceExhaustedError(message);
    case CL_INVALID_KERNEL_NAME:
    case CL_INVALID_KERNEL_DEFINITION:
    case CL_INVALID_KERNEL_ARGS:
    case CL_INVALID_ARG_INDEX:
    case CL_INVALID_ARG_VALUE:
    case CL_INVALID_ARG_SIZE:
    case CL_INVALID_WORK_DIMENSION:
    case CL_INVALID_WORK_GROUP_SIZE:
    case CL_INVALID_WORK_ITEM_SIZE:
    case CL_INVALID_GLOBAL_WORK_SIZE:
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnavailableError(message);
  }
}

std::string Printable(absl::string_view text, size_t most, bool lines) {
  std::string printable(text.substr(0, std::min(most, text.find('\0'))));
  for (char& c : printable) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) && !(lines && c == '\n')) c = '?';
  }
  return std::string(absl::StripAsciiWhitespace(printable));
}

}  // namespace hone::opencl

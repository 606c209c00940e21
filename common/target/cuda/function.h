#ifndef HONE_COMMON_TARGET_CUDA_FUNCTION_H_
#define HONE_COMMON_TARGET_CUDA_FUNCTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/target/cuda/api.h"

namespace hone::cuda {

// An attribute of a loaded kernel, or `otherwise` if the driver does not know it.
int AttributeOr(const Api& api, Function function, FunctionAttribute attribute, int otherwise);

// Prepares a kernel for blocks with this much shared memory in total. Returns the bytes that a
// launch must request because the code does not declare them. InvalidArgument: the device
// has less.
absl::StatusOr<unsigned> ReserveShared(const Api& api, Function function, int64_t shared_bytes);

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_FUNCTION_H_

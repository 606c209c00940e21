#ifndef HONE_COMMON_TARGET_CUDA_FUNCTION_H_
#define HONE_COMMON_TARGET_CUDA_FUNCTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/target/cuda/api.h"

namespace hone::cuda {

// An attribute of a loaded kernel, or `otherwise` if the driver does not know it.
int AttributeOr(const Api& api, Function function, FunctionAttribute attribute, int otherwise);

// Prepares a kernel for blocks with this much shared memory in all. Returns the bytes of it that a
// launch must ask for, because the code does not declare them itself. InvalidArgument: the device
// has not so much.
absl::StatusOr<unsigned> ReserveShared(const Api& api, Function function, int64_t shared_bytes);

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_FUNCTION_H_

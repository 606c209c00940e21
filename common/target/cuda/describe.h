#ifndef HONE_COMMON_TARGET_CUDA_DESCRIBE_H_
#define HONE_COMMON_TARGET_CUDA_DESCRIBE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/cuda/api.h"
#include "common/target/target.h"

namespace hone::cuda {

// An attribute of a device, or `otherwise` if the driver does not know it.
int AttributeOr(const Api& api, DeviceNumber device, DeviceAttribute attribute, int otherwise);

// Asks a driver for the properties of one device. A device of a known model with the model's number
// of multiprocessors has the target of the preset, so that records are shared. The target of any
// other, such as a MIG slice, is made from the attributes that the driver reports, clamped to the
// ranges that targets allow. FailedPrecondition: the architecture is not supported. Unavailable:
// the driver does not answer.
absl::StatusOr<target::Target> DescribeDevice(const Api& api, DeviceNumber device,
                                              absl::string_view name);

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_DESCRIBE_H_

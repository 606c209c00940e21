#ifndef HONE_COMMON_TARGET_OPENCL_DESCRIBE_H_
#define HONE_COMMON_TARGET_OPENCL_DESCRIBE_H_

#include "absl/status/statusor.h"
#include "common/target/opencl/api.h"
#include "common/target/target.h"

namespace hone::opencl {

// Asks a driver for the properties of one device. Properties that drivers do not report (registers,
// threads of a compute unit) come from the presets of known GPUs and are otherwise unknown. Values
// are clamped to the ranges that targets allow. Unavailable: the driver does not
// answer.
absl::StatusOr<target::Target> DescribeDevice(const Api& api, cl_device_id device);

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_DESCRIBE_H_

#ifndef HONE_COMMON_TARGET_OPENCL_DESCRIBE_H_
#define HONE_COMMON_TARGET_OPENCL_DESCRIBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/opencl/api.h"
#include "common/target/target.h"

namespace hone::opencl {

// Asks a driver for the properties of one device. What drivers do not tell (registers, threads of a
// compute unit) comes from the presets of known GPUs, and stays unknown otherwise. Values of
// hostile drivers are limited to the ranges that targets allow. Unavailable: the driver does not
// answer.
absl::StatusOr<target::Target> DescribeDevice(const Api& api, cl_device_id device);

// A device's name as a word of a target, of the characters a-z, 0-9, '.' and '-': "AMD EPYC (4)" →
// "amd-epyc-4". "unknown" if no character is left.
std::string TargetWord(absl::string_view name);

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_DESCRIBE_H_

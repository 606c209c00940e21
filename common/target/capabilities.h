#ifndef HONE_COMMON_TARGET_CAPABILITIES_H_
#define HONE_COMMON_TARGET_CAPABILITIES_H_

#include <bit>

#include "common/target/target.h"

namespace hone::target {

// Whether kernels can use f64, which OpenCL leaves to the device.
inline bool ComputesF64(const Target& target) {
  return target.kind != Kind::kOpenCl || target.HasFeature("fp64");
}

// The number of consecutive threads of a block that can exchange values without memory: the size
// of a sub-group, or 1 if the device has no shuffles.
inline int ShuffleWidth(const Target& target) {
  const bool shuffles = target.kind == Kind::kCuda || target.HasFeature("shuffle");
  const bool is_power = std::has_single_bit(static_cast<unsigned>(target.gpu.sub_group));
  return shuffles && is_power ? target.gpu.sub_group : 1;
}

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_CAPABILITIES_H_

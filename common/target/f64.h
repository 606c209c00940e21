#ifndef HONE_COMMON_TARGET_F64_H_
#define HONE_COMMON_TARGET_F64_H_

#include "common/target/target.h"

namespace hone::target {

// Whether kernels can use f64, which OpenCL leaves to the device.
inline bool ComputesF64(const Target& target) {
  return target.kind != Kind::kOpenCl || target.HasFeature("fp64");
}

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_F64_H_

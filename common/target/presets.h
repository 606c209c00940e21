#ifndef HONE_COMMON_TARGET_PRESETS_H_
#define HONE_COMMON_TARGET_PRESETS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/target.h"

namespace hone::target {

// A server GPU model, from NVIDIA's public documentation. CudaTarget has the properties that all
// models of a compute capability share.
struct NvidiaGpu {
  absl::string_view preset;  // "nvidia/a100"
  absl::string_view word;    // "a100", a word of the name that the driver reports
  int major, minor;          // compute capability
  int units;                 // streaming multiprocessors
  int64_t l2_bytes;
};

// All models that are presets.
absl::Span<const NvidiaGpu> NvidiaGpus();

// Makes the target of a device of a compute capability, with the limits of the CUDA programming
// guide. `model` tells apart devices that run the same code at different speeds, such as the H100
// and the H200; it is the target's only feature. `cpu` is what NVRTC calls the architecture:
// "sm_80", and with the suffix "a" for architecture-specific instructions: "sm_90a".
Target CudaTarget(int major, int minor, int units, int64_t l2_bytes, absl::string_view model);
Target CudaTarget(const NvidiaGpu& gpu);

// A preset for an Arm CPU as found in boards, phones and servers.
struct ArmPreset {
  absl::string_view name;  // "arm/cortex-a72", …
  Target target;
};
const std::vector<ArmPreset>& ArmPresets();

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_PRESETS_H_

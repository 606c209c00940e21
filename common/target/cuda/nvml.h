#ifndef HONE_COMMON_TARGET_CUDA_NVML_H_
#define HONE_COMMON_TARGET_CUDA_NVML_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace hone::cuda {

// The state of a GPU as reported by NVIDIA's management library (NVML). 0: unknown.
struct NvmlState {
  double clock_mhz = 0;  // of the multiprocessors, now
  double temperature_c = 0;
  uint64_t slowed_by = 0;      // NVML's bits of reasons for reduced clocks, except idleness
  uint64_t memory_errors = 0;  // uncorrected, since the driver was loaded
  bool mig = false;            // the GPU is divided into instances

  // What disturbs measurements, with advice; "" if nothing does.
  std::string Warning() const;
};

// A handle of a GPU in NVML. Kernels do not need NVML, so everything works without it.
class NvmlDevice {
 public:
  // Loads libnvidia-ml.so.1. `pci` is DeviceFacts::pci. NotFound: the library is missing or does
  // not know the device. Unavailable: the library fails; the message has NVML's code.
  static absl::StatusOr<std::unique_ptr<NvmlDevice>> Open(const std::string& pci);

  NvmlState Look() const;

 private:
  struct Api;
  NvmlDevice(const Api& api, void* device) : api_(api), device_(device) {}

  const Api& api_;
  void* const device_;
};

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_NVML_H_

#include "common/target/cuda/describe.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/target/device_name.h"
#include "common/target/nvidia_gpus.h"

namespace hone::cuda {
namespace {

using target::NvidiaGpu;
using target::Target;

// Kernels use instructions of Turing, and NVRTC 13 does not support older architectures.
constexpr int kOldestMajor = 7, kOldestMinor = 5;

}  // namespace

int AttributeOr(const Api& api, DeviceNumber device, DeviceAttribute attribute, int otherwise) {
  int value = 0;
  return api.DeviceGetAttribute(&value, attribute, device) == 0 ? value : otherwise;
}

absl::StatusOr<Target> DescribeDevice(const Api& api, DeviceNumber device, absl::string_view name) {
  const auto ask = [&](DeviceAttribute attribute) {
    return AttributeOr(api, device, attribute, 0);
  };
  const int major = ask(kComputeCapabilityMajor), minor = ask(kComputeCapabilityMinor);
  const int units = std::clamp(ask(kMultiprocessorCount), 1, 1 << 16);
  if (major <= 0 || major > 99 || minor < 0 || minor > 9) {
    return absl::UnavailableError("its driver does not report its compute capability");
  }
  if (10 * major + minor < 10 * kOldestMajor + kOldestMinor) {
    return absl::FailedPreconditionError(
        absl::StrCat("its compute capability ", major, ".", minor, " is older than ", kOldestMajor,
                     ".", kOldestMinor, ", the oldest that is supported"));
  }
  const std::string model = target::TargetWord(name);
  const std::vector<absl::string_view> words = absl::StrSplit(model, '-');
  for (const NvidiaGpu& gpu : target::NvidiaGpus()) {
    const bool slice = std::ranges::find(words, "mig") != words.end();
    if (!slice && std::ranges::find(words, gpu.word) != words.end() && gpu.major == major &&
        gpu.minor == minor && gpu.units == units) {
      return target::CudaTarget(gpu);
    }
  }
  Target described = target::CudaTarget(major, minor, units, 0, model);
  described.l2_bytes = std::clamp(ask(kL2CacheSize), 0, 1 << 30);
  target::GpuLimits& gpu = described.gpu;
  const auto use = [&](DeviceAttribute attribute, int most, auto& field) {
    if (const int value = ask(attribute); value > 0) field = std::min(value, most);
  };
  use(kMaxThreadsPerBlock, 1 << 16, gpu.max_threads);
  use(kMaxSharedMemoryPerBlockOptin, 1 << 30, gpu.shared_bytes);
  use(kWarpSize, 1 << 10, gpu.sub_group);
  use(kMaxThreadsPerMultiprocessor, 1 << 20, gpu.unit_threads);
  use(kMaxSharedMemoryPerMultiprocessor, 1 << 30, gpu.unit_shared_bytes);
  use(kMaxRegistersPerMultiprocessor, 1 << 30, gpu.unit_registers);
  return described;
}

}  // namespace hone::cuda

#include "common/target/opencl/describe.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/target/device_name.h"
#include "common/target/opencl/device_info.h"

namespace hone::opencl {
namespace {

using target::Target;

// Properties of vendor extensions, which cl.h does not define.
constexpr cl_device_info kCapabilityMajorNv = 0x4000, kCapabilityMinorNv = 0x4001,
                         kRegistersPerBlockNv = 0x4002, kWarpSizeNv = 0x4003,
                         kWavefrontWidthAmd = 0x4043;
constexpr cl_device_info kHalfConfig = 0x1033;  // of cl_khr_fp16

constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr int kNvidiaRegistersPerThread = 255;

int64_t Within(cl_ulong value, int64_t min, int64_t max) {
  return std::clamp(
      static_cast<int64_t>(std::min<cl_ulong>(value, std::numeric_limits<int64_t>::max())), min,
      max);
}

// Threads of a compute unit by compute capability, from the CUDA programming guide.
int NvidiaUnitThreads(cl_ulong major, cl_ulong minor) {
  if (major == 7 && minor == 5) return 1024;
  return (major == 8 && minor > 0) || major >= 12 ? 1536 : 2048;
}

// Returns the preset of a known GPU, otherwise "generic/opencl".
Target Base(absl::string_view word) {
  for (const std::string& name : target::TargetNames()) {
    absl::StatusOr<Target> preset = name == "native" ? Target{} : target::TargetByName(name);
    const std::string model = name.substr(name.find('/') + 1);
    if (preset->kind == target::Kind::kOpenCl && name != "generic/opencl" &&
        absl::StrContains(word, model)) {
      return *std::move(preset);
    }
  }
  return *target::TargetByName("generic/opencl");
}

std::vector<std::string> Features(const Api& api, cl_device_id device, absl::string_view extensions,
                                  int sub_group) {
  const std::vector<absl::string_view> words = absl::StrSplit(extensions, ' ');
  const auto has = [&](absl::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  const auto profile = DeviceText(api, device, CL_DEVICE_PROFILE);
  const bool is_full = profile.ok() && *profile == "FULL_PROFILE";
  // Kernels that use the functions of these extensions are OpenCL C 3.0.
  const auto version = DeviceText(api, device, CL_DEVICE_VERSION);
  const bool is_new = version.ok() && *version >= "OpenCL 3";
  std::vector<std::string> features;  // sorted
  if (has("cl_arm_integer_dot_product_accumulate_int8")) features.emplace_back("arm_dot");
  if (is_new && has("cl_khr_integer_dot_product")) features.emplace_back("dot");
  // The extension alone does not promise denormal numbers, nor rounding to nearest.
  constexpr cl_device_fp_config kExact = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST;
  const auto half = DeviceValue<cl_device_fp_config>(api, device, kHalfConfig, 0);
  if (has("cl_khr_fp16") && (half & kExact) == kExact) features.emplace_back("fp16");
  if (has("cl_khr_fp64")) features.emplace_back("fp64");
  if (is_full || has("cles_khr_int64")) features.emplace_back("int64");
  // Kernels that exchange values between lanes rely on the size of a sub-group.
  if (is_new && has("cl_khr_subgroup_shuffle") && sub_group > 1) features.emplace_back("shuffle");
  if (has("cl_khr_subgroups")) features.emplace_back("subgroups");
  return features;
}

}  // namespace

absl::StatusOr<Target> DescribeDevice(const Api& api, cl_device_id device) {
  HONE_ASSIGN_OR_RETURN(const std::string name, DeviceText(api, device, CL_DEVICE_NAME));
  HONE_ASSIGN_OR_RETURN(const std::string extensions,
                        DeviceText(api, device, CL_DEVICE_EXTENSIONS));
  const auto number = [&](cl_device_info property) {
    return static_cast<cl_ulong>(DeviceValue<cl_uint>(api, device, property, 0));
  };
  const auto size = [&](cl_device_info property) {
    return DeviceValue<cl_ulong>(api, device, property, 0);
  };
  Target target = Base(target::TargetWord(name));
  target.cpu = target::TargetWord(name);
  target.cores = static_cast<int>(Within(number(CL_DEVICE_MAX_COMPUTE_UNITS), 1, 1 << 16));
  if (const cl_ulong cache = size(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE); cache > 0) {
    target.l2_bytes = Within(cache, 0, kMaxBytes);
  }
  if (const cl_ulong line = number(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE); line > 0) {
    target.cache_line_bytes = static_cast<int>(Within(line, 8, 1 << 12));
  }

  target::GpuLimits& gpu = target.gpu;
  const auto threads = DeviceValue<size_t>(api, device, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1);
  gpu.max_threads = static_cast<int>(Within(threads, 1, 1 << 16));
  gpu.unit_threads = std::max(gpu.unit_threads, gpu.max_threads);
  gpu.shared_bytes = Within(size(CL_DEVICE_LOCAL_MEM_SIZE), 0, kMaxBytes);
  gpu.unit_shared_bytes = gpu.shared_bytes;
  gpu.has_shared_memory = DeviceValue<cl_device_local_mem_type>(
                              api, device, CL_DEVICE_LOCAL_MEM_TYPE, CL_GLOBAL) == CL_LOCAL;
  if (const cl_ulong warp = number(kWarpSizeNv); warp > 0) {
    gpu.sub_group = static_cast<int>(Within(warp, 1, 1 << 10));
    gpu.registers = kNvidiaRegistersPerThread;
    gpu.unit_registers = Within(number(kRegistersPerBlockNv), 0, int64_t{1} << 32);
    gpu.unit_threads = NvidiaUnitThreads(number(kCapabilityMajorNv), number(kCapabilityMinorNv));
  } else if (const cl_ulong wavefront = number(kWavefrontWidthAmd); wavefront > 0) {
    gpu.sub_group = static_cast<int>(Within(wavefront, 1, 1 << 10));
  }
  target.features = Features(api, device, extensions, gpu.sub_group);
  return target;
}

}  // namespace hone::opencl

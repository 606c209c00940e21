#include "common/target/opencl/detect.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/target/device_name.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/device_info.h"
#include "common/target/opencl/error.h"

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

using target::Printable;

constexpr char kKind[] = "opencl";
constexpr cl_uint kMaxDevices = 256;  // per driver; also the limit on drivers
constexpr size_t kMaxName = 128;
constexpr cl_int kPlatformNotFound = -1001;  // cl_khr_icd: there is no driver

absl::StatusOr<std::vector<cl_platform_id>> Platforms(const Api& api) {
  cl_uint count = 0;
  cl_platform_id ids[kMaxDevices];
  const cl_int code = api.GetPlatformIDs(kMaxDevices, ids, &count);
  if (code == kPlatformNotFound) return std::vector<cl_platform_id>{};
  HONE_RETURN_IF_ERROR(ToStatus(code, "list the OpenCL drivers"));
  return std::vector<cl_platform_id>(ids, ids + std::min(count, kMaxDevices));
}

absl::StatusOr<std::vector<cl_device_id>> DevicesOf(const Api& api, cl_platform_id platform) {
  cl_uint count = 0;
  cl_device_id ids[kMaxDevices];
  const cl_int code = api.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, kMaxDevices, ids, &count);
  if (code == CL_DEVICE_NOT_FOUND) return std::vector<cl_device_id>{};
  HONE_RETURN_IF_ERROR(ToStatus(code, "list the devices"));
  return std::vector<cl_device_id>(ids, ids + std::min(count, kMaxDevices));
}

absl::StatusOr<DeviceFacts> Describe(const Api& api, cl_platform_id platform,
                                     const std::string& platform_name, cl_device_id device) {
  DeviceFacts facts{.platform = platform, .device = device, .platform_name = platform_name};
  facts.type = DeviceValue<cl_device_type>(api, device, CL_DEVICE_TYPE, 0);
  for (const auto& [property, field] :
       {std::pair{CL_DEVICE_NAME, &facts.name}, std::pair{CL_DEVICE_VENDOR, &facts.vendor},
        std::pair{CL_DRIVER_VERSION, &facts.driver_version}}) {
    HONE_ASSIGN_OR_RETURN(const std::string text, DeviceText(api, device, property));
    *field = Printable(text, kMaxName);
  }
  if (DeviceValue<cl_bool>(api, device, CL_DEVICE_AVAILABLE, CL_TRUE) == CL_FALSE) {
    return absl::UnavailableError("it is not available");
  }
  if (DeviceValue<cl_bool>(api, device, CL_DEVICE_COMPILER_AVAILABLE, CL_TRUE) == CL_FALSE) {
    return absl::UnavailableError("its driver has no compiler");
  }
  HONE_ASSIGN_OR_RETURN(facts.target, DescribeDevice(api, device));
  return facts;
}

int Rank(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return 0;
  return (type & CL_DEVICE_TYPE_CPU) != 0 ? 2 : 1;
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

absl::StatusOr<std::vector<DeviceFacts>> ListDevices(const Api& api) {
  std::vector<DeviceFacts> devices;
  std::vector<std::string> problems;
  HONE_ASSIGN_OR_RETURN(const std::vector<cl_platform_id> platforms, Platforms(api));
  for (const cl_platform_id platform : platforms) {
    const std::string name =
        Printable(PlatformText(api, platform, CL_PLATFORM_NAME).value_or("driver"), kMaxName);
    const auto ids = DevicesOf(api, platform);
    if (!ids.ok()) problems.push_back(absl::StrCat(name, ": ", ids.status().message()));
    for (const cl_device_id id : ids.value_or(std::vector<cl_device_id>{})) {
      absl::StatusOr<DeviceFacts> facts = Describe(api, platform, name, id);
      if (facts.ok()) {
        devices.push_back(*std::move(facts));
      } else {
        problems.push_back(absl::StrCat("a device of ", name, ": ", facts.status().message()));
      }
    }
  }
  if (devices.empty()) {
    if (problems.empty()) {
      problems.emplace_back(platforms.empty() ? "no driver is installed"
                                              : "the installed drivers have none");
    }
    return absl::NotFoundError(
        absl::StrCat("there is no OpenCL device: ", absl::StrJoin(problems, "; "),
                     "; install a driver, such as pocl-opencl-icd"));
  }
  std::ranges::stable_sort(devices, {}, [](const DeviceFacts& facts) {
    return std::tuple(Rank(facts.type), facts.platform_name, facts.name);
  });
  return devices;
}

absl::StatusOr<DeviceFacts> FindDevice(const Api& api, absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const uint32_t number, target::DeviceNumberOf(kKind, name));
  HONE_ASSIGN_OR_RETURN(std::vector<DeviceFacts> devices, ListDevices(api));
  if (number < devices.size()) return std::move(devices[number]);
  std::string known;
  for (size_t i = 0; i < devices.size(); ++i) {
    absl::StrAppend(&known, i == 0 ? "" : ", ", kKind, ":", i, " (", devices[i].name, ")");
  }
  return absl::NotFoundError(
      absl::StrCat("there is no device ", name, "; this machine has ", known));
}

absl::StatusOr<target::Target> TargetOf(absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const Api* const api, LoadedApi());
  HONE_ASSIGN_OR_RETURN(DeviceFacts facts, FindDevice(*api, name));
  return std::move(facts.target);
}

void AddTargets() { target::AddTargetResolver("opencl", TargetOf); }

}  // namespace hone::opencl

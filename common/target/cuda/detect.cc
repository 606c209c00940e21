#include "common/target/cuda/detect.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/error.h"
#include "common/target/device_name.h"
#include "common/target/presets.h"

namespace hone::cuda {
namespace {

using target::NvidiaGpu;
using target::Target;

// Kernels use instructions of Turing, and NVRTC 13 does not support older architectures.
constexpr int kOldestMajor = 7, kOldestMinor = 5;

constexpr char kKind[] = "cuda";
constexpr int kMaxDevices = 256;
constexpr int kMaxName = 128;
// Modules made by NVRTC 12 or 13 need a driver for CUDA 12 or later.
constexpr int kOldestDriver = 12000;

std::string Version(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

std::string UuidText(const Api& api, DeviceNumber device) {
  Uuid uuid = {};
  if (api.DeviceGetUuid(&uuid, device) != 0) return "";
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    const bool begins = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    absl::StrAppend(&text, begins ? "-" : "", absl::Hex(uuid.bytes[i], absl::kZeroPad2));
  }
  return text;
}

DeviceFacts Describe(const Api& api, DeviceNumber device, const std::string& driver) {
  DeviceFacts facts{.device = device, .driver = driver};
  char name[kMaxName] = "";
  api.DeviceGetName(name, kMaxName - 1, device);
  facts.name = target::Printable(name, kMaxName);
  facts.uuid = UuidText(api, device);
  facts.pci = absl::StrFormat("%04x:%02x:%02x.0", AttributeOr(api, device, kPciDomainId, 0),
                              AttributeOr(api, device, kPciBusId, 0),
                              AttributeOr(api, device, kPciDeviceId, 0));
  absl::StatusOr<target::Target> target = DescribeDevice(api, device, facts.name);
  if (target.ok()) {
    facts.target = *std::move(target);
  } else {
    facts.problem = std::string(target.status().message());
  }
  if (AttributeOr(api, device, kComputeMode, 0) == kComputeModeProhibited) {
    facts.problem = "its compute mode prohibits programs; set it with nvidia-smi --compute-mode=0";
  }
  return facts;
}

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

absl::StatusOr<std::vector<DeviceFacts>> ListDevices(const Api& api) {
  int version = 0, count = 0;
  HONE_RETURN_IF_ERROR(ToStatus(api.DriverGetVersion(&version), "ask the CUDA driver's version"));
  if (version < kOldestDriver) {
    return absl::NotFoundError(absl::StrCat("the driver supports CUDA up to ", Version(version),
                                            ", which is too old; update NVIDIA's driver to one of "
                                            "CUDA ",
                                            Version(kOldestDriver), " or later"));
  }
  HONE_RETURN_IF_ERROR(ToStatus(api.DeviceGetCount(&count), "count the CUDA devices"));
  if (count <= 0) return ToStatus(100, "count the CUDA devices");
  std::vector<DeviceFacts> devices;
  for (int i = 0; i < std::min(count, kMaxDevices); ++i) {
    DeviceNumber device = 0;
    const absl::Status found = ToStatus(api.DeviceGet(&device, i), "find it");
    devices.push_back(found.ok() ? Describe(api, device, Version(version))
                                 : DeviceFacts{.name = "unknown",
                                               .driver = Version(version),
                                               .problem = std::string(found.message())});
  }
  return devices;
}

absl::StatusOr<DeviceFacts> FindDevice(const Api& api, absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const uint32_t number, target::DeviceNumberOf(kKind, name));
  HONE_ASSIGN_OR_RETURN(std::vector<DeviceFacts> devices, ListDevices(api));
  if (number >= devices.size()) {
    std::string known;
    for (size_t i = 0; i < devices.size(); ++i) {
      absl::StrAppend(&known, i == 0 ? "" : ", ", kKind, ":", i, " (", devices[i].name, ")");
    }
    return absl::NotFoundError(
        absl::StrCat("there is no device ", name, "; this machine has ", known));
  }
  DeviceFacts& found = devices[number];
  if (found.problem.empty()) return std::move(found);
  return absl::FailedPreconditionError(
      absl::StrCat(name, " (", found.name, ") cannot be used: ", found.problem));
}

absl::StatusOr<target::Target> TargetOf(absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const Api* const api, LoadedApi());
  HONE_ASSIGN_OR_RETURN(DeviceFacts facts, FindDevice(*api, name));
  return std::move(facts.target);
}

void AddTargets() { target::AddTargetResolver("cuda", TargetOf); }

}  // namespace hone::cuda

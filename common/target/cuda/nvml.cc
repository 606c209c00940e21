#include "common/target/cuda/nvml.h"

#include <dlfcn.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace hone::cuda {
namespace {

constexpr char kLibrary[] = "libnvidia-ml.so.1";
constexpr int kClockOfMultiprocessors = 1, kTemperatureOfGpu = 0, kUncorrected = 1, kVolatile = 0;

// Those of NVML's reasons for reduced clocks that an administrator can remove.
struct Reason {
  uint64_t bit;
  const char* text;
};
constexpr Reason kReasons[] = {
    {0x4, "its power limit"},
    {0x8, "hardware slowdown"},
    {0x20, "its temperature"},
    {0x40, "its temperature (hardware)"},
    {0x80, "an external power brake signal"},
};

}  // namespace

// The functions that are used, without "nvml". Their results are 0 for success.
struct NvmlDevice::Api {
  int (*Init_v2)() = nullptr;
  int (*DeviceGetHandleByPciBusId_v2)(const char*, void**) = nullptr;
  int (*DeviceGetClockInfo)(void*, int, unsigned*) = nullptr;
  int (*DeviceGetTemperature)(void*, int, unsigned*) = nullptr;
  int (*DeviceGetCurrentClocksThrottleReasons)(void*, unsigned long long*) = nullptr;
  int (*DeviceGetTotalEccErrors)(void*, int, int, unsigned long long*) = nullptr;
  int (*DeviceGetMigMode)(void*, unsigned*, unsigned*) = nullptr;

  absl::Status Load() {
    void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return absl::NotFoundError(dlerror());
    std::vector<std::string> missing;
    const auto load = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr) missing.emplace_back(name);
    };
    load(Init_v2, "nvmlInit_v2");
    load(DeviceGetHandleByPciBusId_v2, "nvmlDeviceGetHandleByPciBusId_v2");
    load(DeviceGetClockInfo, "nvmlDeviceGetClockInfo");
    load(DeviceGetTemperature, "nvmlDeviceGetTemperature");
    load(DeviceGetCurrentClocksThrottleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    load(DeviceGetTotalEccErrors, "nvmlDeviceGetTotalEccErrors");
    load(DeviceGetMigMode, "nvmlDeviceGetMigMode");
    if (!missing.empty()) {
      return absl::NotFoundError(absl::StrCat(kLibrary, " has no ", absl::StrJoin(missing, ", ")));
    }
    const int code = Init_v2();
    if (code == 0) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(kLibrary, " does not start (NVML error ", code, ")"));
  }

  static absl::StatusOr<const Api*> Loaded() {
    static Api api;
    static const absl::Status loaded = api.Load();
    HONE_RETURN_IF_ERROR(loaded);
    return &api;
  }
};

std::string NvmlState::Warning() const {
  std::vector<std::string> findings;
  std::vector<absl::string_view> reasons;
  for (const Reason& reason : kReasons) {
    if ((slowed_by & reason.bit) != 0) reasons.emplace_back(reason.text);
  }
  if (!reasons.empty()) {
    findings.push_back(absl::StrCat("its clock is reduced by ", absl::StrJoin(reasons, ", "),
                                    "; latencies will vary: see nvidia-smi -q -d PERFORMANCE"));
  }
  if (memory_errors > 0) {
    findings.push_back(absl::StrCat("its memory had ", memory_errors,
                                    " errors that were not corrected; reset the GPU, and replace "
                                    "it if they come back"));
  }
  if (mig) {
    findings.emplace_back(
        "it is divided into instances (MIG), and other instances may use its memory bandwidth");
  }
  return absl::StrJoin(findings, "; ");
}

absl::StatusOr<std::unique_ptr<NvmlDevice>> NvmlDevice::Open(const std::string& pci) {
  HONE_ASSIGN_OR_RETURN(const Api* const api, Api::Loaded());
  void* device = nullptr;
  const int code = api->DeviceGetHandleByPciBusId_v2(pci.c_str(), &device);
  if (code == 0) return std::unique_ptr<NvmlDevice>(new NvmlDevice(*api, device));
  return absl::NotFoundError(absl::StrCat("NVML does not know ", pci, " (NVML error ", code, ")"));
}

NvmlState NvmlDevice::Look() const {
  NvmlState state;
  unsigned number = 0, pending = 0;
  unsigned long long wide = 0;
  if (api_.DeviceGetClockInfo(device_, kClockOfMultiprocessors, &number) == 0) {
    state.clock_mhz = number;
  }
  if (api_.DeviceGetTemperature(device_, kTemperatureOfGpu, &number) == 0) {
    state.temperature_c = number;
  }
  if (api_.DeviceGetCurrentClocksThrottleReasons(device_, &wide) == 0) state.slowed_by = wide;
  if (api_.DeviceGetTotalEccErrors(device_, kUncorrected, kVolatile, &wide) == 0) {
    state.memory_errors = wide;
  }
  if (api_.DeviceGetMigMode(device_, &number, &pending) == 0) state.mig = number == 1;
  return state;
}

}  // namespace hone::cuda

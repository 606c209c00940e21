#include "common/target/opencl/device_info.h"

#include <algorithm>
#include <array>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/target/opencl/error.h"

namespace hone::opencl {
namespace {

constexpr size_t kMaxText = 1 << 20;
constexpr cl_uint kMaxDimensions = 64;
// Properties of extensions. The first has domain, bus, device and function.
constexpr cl_device_info kPciBusInfo = 0x410F;
constexpr cl_device_info kPciBusNv = 0x4008, kPciSlotNv = 0x4009, kPciDomainNv = 0x400A;

absl::StatusOr<std::string> Text(
    absl::FunctionRef<cl_int(size_t bytes, void* to, size_t* needed)> get) {
  size_t bytes = 0;
  HONE_RETURN_IF_ERROR(ToStatus(get(0, nullptr, &bytes), "ask for a property"));
  if (bytes > kMaxText) {
    return absl::UnavailableError(absl::StrCat("the driver gives a property of ", bytes, " bytes"));
  }
  std::string text(bytes, '\0');
  HONE_RETURN_IF_ERROR(ToStatus(get(bytes, text.data(), nullptr), "read a property"));
  return text.substr(0, text.find('\0'));
}

}  // namespace

absl::StatusOr<std::string> PlatformText(const Api& api, cl_platform_id platform,
                                         cl_platform_info property) {
  return Text([&](size_t bytes, void* to, size_t* needed) {
    return api.GetPlatformInfo(platform, property, bytes, to, needed);
  });
}

absl::StatusOr<std::string> DeviceText(const Api& api, cl_device_id device,
                                       cl_device_info property) {
  return Text([&](size_t bytes, void* to, size_t* needed) {
    return api.GetDeviceInfo(device, property, bytes, to, needed);
  });
}

std::string PciAddress(const Api& api, cl_device_id device) {
  const auto text = [](cl_uint domain, cl_uint bus, cl_uint slot, cl_uint function) {
    return absl::StrFormat("%04x:%02x:%02x.%x", domain, bus, slot, function);
  };
  std::array<cl_uint, 4> info = {};
  size_t bytes = 0;
  if (api.GetDeviceInfo(device, kPciBusInfo, sizeof(info), info.data(), &bytes) == CL_SUCCESS &&
      bytes == sizeof(info)) {
    return text(info[0], info[1], info[2], info[3]);
  }
  constexpr cl_uint kNone = ~cl_uint{0};
  const auto bus = DeviceValue<cl_uint>(api, device, kPciBusNv, kNone);
  if (bus == kNone) return "";
  // NVIDIA's slot is the device and, in the last three bits, its function.
  const auto slot = DeviceValue<cl_uint>(api, device, kPciSlotNv, 0);
  return text(DeviceValue<cl_uint>(api, device, kPciDomainNv, 0), bus, slot >> 3, slot & 7);
}

std::vector<size_t> MaxBlock(const Api& api, cl_device_id device) {
  const auto dimensions = DeviceValue<cl_uint>(api, device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 3);
  std::vector<size_t> sizes(std::clamp<cl_uint>(dimensions, 3, kMaxDimensions), 1);
  const cl_int code = api.GetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES,
                                        sizes.size() * sizeof(size_t), sizes.data(), nullptr);
  if (code != CL_SUCCESS) return {1, 1, 1};
  sizes.resize(3);
  return sizes;
}

}  // namespace hone::opencl

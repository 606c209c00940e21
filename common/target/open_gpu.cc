#include "common/target/open_gpu.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/context.h"
#include "common/target/device_list.h"
#include "common/target/device_name.h"
#include "common/target/opencl/context.h"

namespace hone::target {
namespace {

using Opened = absl::StatusOr<std::unique_ptr<GpuContext>>;

// cuda:: and opencl:: have functions and types of the same names.
Opened Open(const cuda::Api& api, const cuda::DeviceFacts& device) {
  return cuda::CudaContext::Create(api, device);
}
Opened Open(const opencl::Api& api, const opencl::DeviceFacts& device) {
  return opencl::OpenClContext::Create(api, device);
}
std::string Problem(const cuda::DeviceFacts& device) { return device.problem; }
std::string Problem(const opencl::DeviceFacts&) { return ""; }

template <typename Api>
Opened OpenNamed(absl::StatusOr<const Api*> api, absl::string_view name) {
  HONE_RETURN_IF_ERROR(api.status());
  HONE_ASSIGN_OR_RETURN(const auto device, FindDevice(**api, name));
  return Open(**api, device);
}

template <typename Api>
absl::StatusOr<int> NumberFor(absl::StatusOr<const Api*> api, const Target& target,
                              absl::string_view name, const GpuInterface& interface) {
  HONE_RETURN_IF_ERROR(api.status());
  if (!name.empty()) {
    HONE_ASSIGN_OR_RETURN(const auto named, FindDevice(**api, name));
    if (named.target == target) return DeviceNumberOf(interface.word, name);
    return absl::FailedPreconditionError(absl::StrCat("the kernel is for ", target.Key(), ", and ",
                                                      name, " is ", named.target.Key()));
  }
  HONE_ASSIGN_OR_RETURN(const auto devices, ListDevices(**api));
  for (size_t d = 0; d < devices.size(); ++d) {
    if (Problem(devices[d]).empty() && devices[d].target == target) return static_cast<int>(d);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the kernel is for ", target.Key(), "; the ", interface.name, " devices of this machine are ",
      absl::StrJoin(devices, ", ", [](std::string* out, const auto& device) {
        absl::StrAppend(out, Problem(device).empty() ? device.target.Key() : device.name);
      })));
}

}  // namespace

Opened OpenGpu(absl::string_view name) {
  const GpuInterface* const interface = InterfaceOfDevice(name);
  if (interface == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not the name of a GPU: cuda, cuda:N, opencl or opencl:N"));
  }
  if (interface->kind == Kind::kCuda) return OpenNamed(cuda::LoadedApi(), name);
  return OpenNamed(opencl::LoadedApi(), name);
}

absl::StatusOr<int> GpuNumberFor(const Target& target, absl::string_view name) {
  const GpuInterface& interface = *InterfaceOfDevice(KindName(target.kind));
  if (target.kind == Kind::kCuda) return NumberFor(cuda::LoadedApi(), target, name, interface);
  return NumberFor(opencl::LoadedApi(), target, name, interface);
}

Opened OpenGpuFor(const Target& target, absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const int number, GpuNumberFor(target, name));
  return OpenGpu(absl::StrCat(KindName(target.kind), ":", number));
}

}  // namespace hone::target

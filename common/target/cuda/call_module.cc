#include "common/target/cuda/call_module.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/cuda/error.h"
#include "common/target/cuda/function.h"

namespace hone::cuda {
namespace {

absl::StatusOr<DeviceNumber> DeviceOf(const Api& api, const target::Target& target,
                                      absl::string_view name) {
  if (!name.empty()) {
    HONE_ASSIGN_OR_RETURN(const DeviceFacts named, FindDevice(api, name));
    if (named.target == target) return named.device;
    return absl::FailedPreconditionError(absl::StrCat("the kernel is for ", target.Key(), ", and ",
                                                      name, " is ", named.target.Key()));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<DeviceFacts> devices, ListDevices(api));
  for (const DeviceFacts& device : devices) {
    if (device.problem.empty() && device.target == target) return device.device;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the kernel is for ", target.Key(), "; the CUDA devices of this machine are ",
      absl::StrJoin(devices, ", ", [](std::string* out, const DeviceFacts& device) {
        absl::StrAppend(out, device.problem.empty() ? device.target.Key() : device.name);
      })));
}

// The device memory of one call. Freed when the call ends.
class Buffers {
 public:
  explicit Buffers(const Api& api) : api_(api) {}
  ~Buffers() {
    for (const DevicePointer pointer : pointers_) {
      if (pointer != 0) api_.MemFree(pointer);
    }
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Adds a buffer, which is a parameter of all kernels; null if `bytes` is 0.
  absl::StatusOr<DevicePointer> Add(int64_t bytes) {
    DevicePointer pointer = 0;
    if (bytes > 0) {
      HONE_RETURN_IF_ERROR(ToStatus(api_.MemAlloc(&pointer, static_cast<size_t>(bytes)),
                                    absl::StrCat("allocate ", bytes, " bytes")));
    }
    pointers_.push_back(pointer);
    return pointer;
  }
  // Returns the parameters in the order in which they were added.
  std::vector<void*> Parameters() {
    std::vector<void*> parameters;
    for (DevicePointer& pointer : pointers_) parameters.push_back(&pointer);
    return parameters;
  }

 private:
  const Api& api_;
  std::vector<DevicePointer> pointers_;
};

class Caller final : public target::ModuleCaller {
 public:
  explicit Caller(const Api& api) : api_(api) {}
  ~Caller() override {
    if (context_ != nullptr) api_.CtxDestroy(context_);
  }

  absl::Status Open(DeviceNumber device) {
    return ToStatus(api_.CtxCreate(&context_, 0, device), "make a CUDA context");
  }

  absl::StatusOr<std::vector<std::string>> Call(const target::GpuModule& module,
                                                absl::Span<const absl::string_view> inputs,
                                                absl::Span<const int64_t> output_bytes) override {
    HONE_RETURN_IF_ERROR(CheckNumbers(module, inputs.size(), output_bytes.size()));
    Module loaded = nullptr;
    HONE_RETURN_IF_ERROR(
        ToStatus(api_.ModuleLoadData(&loaded, module.code.c_str()), "load the kernel's code"));
    const absl::Cleanup unload = [&] { api_.ModuleUnload(loaded); };
    Buffers buffers(api_);
    for (const absl::string_view input : inputs) {
      HONE_ASSIGN_OR_RETURN(const DevicePointer at,
                            buffers.Add(static_cast<int64_t>(input.size())));
      if (input.empty()) continue;
      HONE_RETURN_IF_ERROR(
          ToStatus(api_.MemcpyHtoD(at, input.data(), input.size()), "write an input"));
    }
    std::vector<DevicePointer> outputs;
    for (const int64_t bytes : output_bytes) {
      HONE_ASSIGN_OR_RETURN(outputs.emplace_back(), buffers.Add(bytes));
      if (bytes == 0) continue;
      HONE_RETURN_IF_ERROR(ToStatus(api_.MemsetD8(outputs.back(), 0xff, static_cast<size_t>(bytes)),
                                    "fill an output"));
    }
    for (const int64_t bytes : {module.packed_bytes, module.workspace_bytes}) {
      HONE_RETURN_IF_ERROR(buffers.Add(bytes).status());
    }
    std::vector<void*> parameters = buffers.Parameters();
    for (const bool prepack : {true, false}) {
      for (const target::GpuLaunch& launch : module.launches) {
        if (launch.prepack == prepack) HONE_RETURN_IF_ERROR(Launch(loaded, launch, parameters));
      }
    }
    HONE_RETURN_IF_ERROR(ToStatus(api_.StreamSynchronize(nullptr), "run the kernels"));
    std::vector<std::string> results;
    for (size_t o = 0; o < outputs.size(); ++o) {
      std::string& content = results.emplace_back(static_cast<size_t>(output_bytes[o]), '\0');
      if (content.empty()) continue;
      HONE_RETURN_IF_ERROR(
          ToStatus(api_.MemcpyDtoH(content.data(), outputs[o], content.size()), "read an output"));
    }
    return results;
  }

 private:
  absl::Status Launch(Module module, const target::GpuLaunch& launch,
                      std::vector<void*>& parameters) const {
    Function function = nullptr;
    HONE_RETURN_IF_ERROR(ToStatus(api_.ModuleGetFunction(&function, module, launch.kernel.c_str()),
                                  absl::StrCat("find the kernel ", launch.kernel)));
    HONE_ASSIGN_OR_RETURN(const unsigned dynamic,
                          ReserveShared(api_, function, launch.shared_bytes));
    const auto size = [](int64_t n) { return static_cast<unsigned>(n); };
    return ToStatus(
        api_.LaunchKernel(function, size(launch.grid[0]), size(launch.grid[1]),
                          size(launch.grid[2]), size(launch.block[0]), size(launch.block[1]),
                          size(launch.block[2]), dynamic, nullptr, parameters.data(), nullptr),
        absl::StrCat("launch ", launch.kernel));
  }

  const Api& api_;
  Context context_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<target::ModuleCaller>> MakeModuleCaller(const target::Target& target,
                                                                       absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const Api* const api, LoadedApi());
  HONE_ASSIGN_OR_RETURN(const DeviceNumber device, DeviceOf(*api, target, name));
  auto caller = std::make_unique<Caller>(*api);
  HONE_RETURN_IF_ERROR(caller->Open(device));
  return caller;
}

}  // namespace hone::cuda

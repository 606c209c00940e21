#include "common/target/opencl/call_module.h"

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/target/device_name.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/detect.h"
#include "common/target/opencl/error.h"

namespace hone::opencl {
namespace {

// Measurements use the same options.
constexpr char kBuildOptions[] = "-cl-std=CL1.2";
constexpr size_t kMaxLog = 8192;

absl::StatusOr<cl_device_id> DeviceOf(const Api& api, const target::Target& target,
                                      absl::string_view name) {
  if (!name.empty()) {
    HONE_ASSIGN_OR_RETURN(const DeviceFacts named, FindDevice(api, name));
    if (named.target == target) return named.device;
    return absl::FailedPreconditionError(absl::StrCat("the kernel is for ", target.Key(), ", and ",
                                                      name, " is ", named.target.Key()));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<DeviceFacts> devices, ListDevices(api));
  for (const DeviceFacts& device : devices) {
    if (device.target == target) return device.device;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the kernel is for ", target.Key(), "; the OpenCL devices of this machine are ",
                   absl::StrJoin(devices, ", ", [](std::string* out, const DeviceFacts& device) {
                     absl::StrAppend(out, device.target.Key());
                   })));
}

// Releases an object of OpenCL with one of the functions of the table.
template <typename Object>
using Owned = std::unique_ptr<std::remove_pointer_t<Object>, cl_int(CL_API_CALL*)(Object)>;

// The OpenCL objects that all calls on a device share.
struct Session {
  Session(const Api& api, cl_device_id device) : api(api), device(device) {}

  absl::Status Open() {
    cl_int code = CL_SUCCESS;
    context = {api.CreateContext(nullptr, 1, &device, nullptr, nullptr, &code), api.ReleaseContext};
    HONE_RETURN_IF_ERROR(ToStatus(code, "create an OpenCL context"));
    queue = {api.CreateCommandQueue(context.get(), device, 0, &code), api.ReleaseCommandQueue};
    return ToStatus(code, "create an OpenCL queue");
  }

  const Api& api;
  cl_device_id device;
  Owned<cl_context> context{nullptr, nullptr};
  Owned<cl_command_queue> queue{nullptr, nullptr};
};

// One call of a module. Its objects are released with it.
class ModuleCall {
 public:
  ModuleCall(const Session& session, const target::GpuModule& module)
      : api_(session.api), session_(session), module_(module) {}

  absl::Status Build() {
    cl_int code = CL_SUCCESS;
    const char* source = module_.code.data();
    const size_t size = module_.code.size();
    program_ = {api_.CreateProgramWithSource(session_.context.get(), 1, &source, &size, &code),
                api_.ReleaseProgram};
    HONE_RETURN_IF_ERROR(ToStatus(code, "create an OpenCL program"));
    code = api_.BuildProgram(program_.get(), 1, &session_.device, kBuildOptions, nullptr, nullptr);
    if (code == CL_SUCCESS) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the driver cannot build the kernel (", ErrorName(code), "): ", Log()));
  }

  // Adds a buffer, which is a parameter of all kernels; null if `bytes` is 0.
  absl::StatusOr<cl_mem> AddBuffer(int64_t bytes) {
    cl_int code = CL_SUCCESS;
    cl_mem memory = nullptr;
    if (bytes > 0) {
      memory = api_.CreateBuffer(session_.context.get(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
    }
    buffers_.emplace_back(memory, api_.ReleaseMemObject);
    HONE_RETURN_IF_ERROR(ToStatus(code, absl::StrCat("allocate ", bytes, " bytes")));
    return memory;
  }

  absl::Status Write(cl_mem memory, absl::string_view bytes) {
    if (bytes.empty()) return absl::OkStatus();
    return ToStatus(api_.EnqueueWriteBuffer(session_.queue.get(), memory, CL_TRUE, 0, bytes.size(),
                                            bytes.data(), 0, nullptr, nullptr),
                    "write a buffer");
  }
  absl::StatusOr<std::string> Read(cl_mem memory, int64_t bytes) {
    std::string content(bytes, '\0');
    if (bytes == 0) return content;
    HONE_RETURN_IF_ERROR(
        ToStatus(api_.EnqueueReadBuffer(session_.queue.get(), memory, CL_TRUE, 0, bytes,
                                        content.data(), 0, nullptr, nullptr),
                 "read a buffer"));
    return content;
  }

  absl::Status Launch(const target::GpuLaunch& launch) {
    cl_int code = CL_SUCCESS;
    const Owned<cl_kernel> kernel(api_.CreateKernel(program_.get(), launch.kernel.c_str(), &code),
                                  api_.ReleaseKernel);
    HONE_RETURN_IF_ERROR(ToStatus(code, absl::StrCat("find the kernel ", launch.kernel)));
    for (size_t i = 0; i < buffers_.size(); ++i) {
      cl_mem memory = buffers_[i].get();
      HONE_RETURN_IF_ERROR(ToStatus(
          api_.SetKernelArg(kernel.get(), static_cast<cl_uint>(i), sizeof(memory), &memory),
          absl::StrCat("set argument ", i, " of ", launch.kernel)));
    }
    size_t block[3], items[3];
    for (int d = 0; d < 3; ++d) {
      block[d] = launch.block[d];
      items[d] = launch.grid[d] * launch.block[d];
    }
    return ToStatus(api_.EnqueueNDRangeKernel(session_.queue.get(), kernel.get(), 3, nullptr, items,
                                              block, 0, nullptr, nullptr),
                    absl::StrCat("launch ", launch.kernel));
  }

  absl::Status Finish() { return ToStatus(api_.Finish(session_.queue.get()), "run the kernels"); }

 private:
  std::string Log() const {
    size_t size = 0;
    if (api_.GetProgramBuildInfo(program_.get(), session_.device, CL_PROGRAM_BUILD_LOG, 0, nullptr,
                                 &size) != CL_SUCCESS) {
      return "there is no build log";
    }
    std::string log(size, '\0');
    api_.GetProgramBuildInfo(program_.get(), session_.device, CL_PROGRAM_BUILD_LOG, size,
                             log.data(), nullptr);
    const absl::string_view text = absl::StripAsciiWhitespace(log.c_str());
    return target::Printable(text, kMaxLog, /*lines=*/true);
  }

  const Api& api_;
  const Session& session_;
  const target::GpuModule& module_;
  Owned<cl_program> program_{nullptr, nullptr};
  std::vector<Owned<cl_mem>> buffers_;
};

class OpenClCaller final : public target::ModuleCaller {
 public:
  OpenClCaller(const Api& api, cl_device_id device) : session_(api, device) {}

  absl::Status Open() { return session_.Open(); }

  absl::StatusOr<std::vector<std::string>> Call(const target::GpuModule& module,
                                                absl::Span<const absl::string_view> inputs,
                                                absl::Span<const int64_t> output_bytes) override {
    HONE_RETURN_IF_ERROR(CheckNumbers(module, inputs.size(), output_bytes.size()));
    ModuleCall call(session_, module);
    HONE_RETURN_IF_ERROR(call.Build());
    for (const absl::string_view input : inputs) {
      HONE_ASSIGN_OR_RETURN(const cl_mem memory,
                            call.AddBuffer(static_cast<int64_t>(input.size())));
      HONE_RETURN_IF_ERROR(call.Write(memory, input));
    }
    std::vector<cl_mem> outputs;
    for (const int64_t bytes : output_bytes) {
      HONE_ASSIGN_OR_RETURN(outputs.emplace_back(), call.AddBuffer(bytes));
      HONE_RETURN_IF_ERROR(call.Write(outputs.back(), std::string(bytes, '\xff')));
    }
    for (const int64_t bytes : {module.packed_bytes, module.workspace_bytes}) {
      HONE_RETURN_IF_ERROR(call.AddBuffer(bytes).status());
    }
    for (const bool prepack : {true, false}) {
      for (const target::GpuLaunch& launch : module.launches) {
        if (launch.prepack == prepack) HONE_RETURN_IF_ERROR(call.Launch(launch));
      }
    }
    HONE_RETURN_IF_ERROR(call.Finish());
    std::vector<std::string> results;
    for (size_t o = 0; o < outputs.size(); ++o) {
      HONE_ASSIGN_OR_RETURN(results.emplace_back(), call.Read(outputs[o], output_bytes[o]));
    }
    return results;
  }

 private:
  Session session_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<target::ModuleCaller>> MakeModuleCaller(const target::Target& target,
                                                                       absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const Api* const api, LoadedApi());
  HONE_ASSIGN_OR_RETURN(const cl_device_id device, DeviceOf(*api, target, name));
  auto caller = std::make_unique<OpenClCaller>(*api, device);
  HONE_RETURN_IF_ERROR(caller->Open());
  return caller;
}

}  // namespace hone::opencl

// libcuda.so.1 for tests: the functions of common/target/cuda/api.h, and those that the Python
// package also calls, see README.md.
#include <errno.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "common/target/cuda/api.h"
#include "tests/fakes/cuda/libraries/compile_helper.h"
#include "tests/fakes/cuda/libraries/fake_device.h"

using hone::cuda::Result;
using hone::fakes::FakeDriver;
using hone::fakes::FakeFunction;
using hone::fakes::FakeLaunch;
using hone::fakes::FakeModule;

namespace hone::cuda {

struct ContextObject {};
thread_local Context current_context = nullptr;  // the one that calls of this thread use
thread_local std::vector<Context> contexts_below;
struct EventObject {
  std::chrono::steady_clock::time_point at;
};
struct GraphObject {
  std::vector<std::function<Result()>> commands;
};
struct GraphExecObject : GraphObject {};
struct StreamObject {
  Graph recorded = nullptr;  // while the stream is captured
};

}  // namespace hone::cuda

namespace {

using namespace hone::cuda;

constexpr Result kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101,
                 kInvalidHandle = 400, kIllegalAddress = 700, kNotSupported = 801;

FakeModule* Of(Module module) { return reinterpret_cast<FakeModule*>(module); }
FakeFunction* Of(Function function) { return reinterpret_cast<FakeFunction*>(function); }
bool HasDevice() { return !FakeDriver::Get().faults.Has("no_device"); }

__attribute__((constructor)) void HelpTheBuilder() {
  if (std::strcmp(program_invocation_short_name, "hone-builder") == 0) {
    hone::fakes::StartCompileHelper();
  }
}

Result Copy(void* to, const void* from, DevicePointer pointer, size_t bytes) {
  FakeDriver& driver = FakeDriver::Get();
  if (driver.sticky() != 0) return driver.sticky();
  if (!driver.Holds(pointer, bytes)) return kInvalidValue;
  std::memcpy(to, from, bytes);
  return 0;
}

// Runs a command, or records it if the stream is captured.
Result RunOrRecord(Stream stream, std::function<Result()> command) {
  if (stream == nullptr || stream->recorded == nullptr) return command();
  stream->recorded->commands.push_back(std::move(command));
  return 0;
}

}  // namespace

// Their types must be those of the table, see below.
extern "C" {

Result cuInit(unsigned) {
  return HasDevice() ? static_cast<Result>(FakeDriver::Get().faults.Number("init", 0)) : kNoDevice;
}
Result cuDriverGetVersion(int* version) {
  *version = static_cast<int>(FakeDriver::Get().faults.Number("driver", 12080));
  return 0;
}
Result cuDeviceGetCount(int* count) {
  *count = HasDevice() ? static_cast<int>(FakeDriver::Get().faults.Number("devices", 1)) : 0;
  return 0;
}
Result cuDeviceGet(DeviceNumber* device, int ordinal) {
  int count = 0;
  cuDeviceGetCount(&count);
  if (ordinal < 0 || ordinal >= count) return kInvalidDevice;
  *device = ordinal;
  return 0;
}
Result cuDeviceGetName(char* name, int bytes, DeviceNumber) {
  const std::string text = FakeDriver::Get().faults.Text("name", "Emulated GPU");
  std::strncpy(name, text.c_str(), static_cast<size_t>(bytes));
  return 0;
}
Result cuDeviceGetUuid(Uuid* uuid, DeviceNumber device) {
  std::memset(uuid, 0x10 + device, sizeof(*uuid));
  return 0;
}
Result cuDeviceTotalMem_v2(size_t* bytes, DeviceNumber) {
  *bytes = static_cast<size_t>(FakeDriver::Get().faults.Number("memory", int64_t{1} << 30));
  return 0;
}
Result cuDeviceGetAttribute(int* value, int attribute, DeviceNumber) {
  *value = FakeDriver::Get().Attribute(attribute);
  return 0;
}
Result cuCtxSetCurrent(Context context) {
  current_context = context;
  return 0;
}
Result cuCtxPushCurrent_v2(Context context) {
  contexts_below.push_back(current_context);
  return cuCtxSetCurrent(context);
}
Result cuCtxPopCurrent_v2(Context* context) {
  *context = current_context;
  const bool is_last = contexts_below.empty();
  cuCtxSetCurrent(is_last ? nullptr : contexts_below.back());
  if (!is_last) contexts_below.pop_back();
  return 0;
}
Result cuCtxCreate_v2(Context* context, unsigned, DeviceNumber) {
  *context = new ContextObject;
  return cuCtxPushCurrent_v2(*context);
}
Result cuCtxDestroy_v2(Context context) {
  if (current_context == context) current_context = nullptr;
  delete context;
  return 0;
}
Result cuGetErrorName(Result code, const char** name) {
  *name = code == kNoDevice         ? "CUDA_ERROR_NO_DEVICE"
          : code == kOutOfMemory    ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                    : "CUDA_ERROR_UNKNOWN";
  return 0;
}

Result cuModuleLoadData(Module* module, const void* image) {
  FakeModule* loaded = nullptr;
  const Result code = FakeDriver::Get().Load(image, &loaded);
  *module = reinterpret_cast<Module>(loaded);
  return code;
}
Result cuModuleUnload(Module module) {
  delete Of(module);
  return 0;
}
Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  FakeFunction* found = nullptr;
  const Result code = FakeDriver::Get().Find(*Of(module), name, &found);
  if (code == 0) found->context = current_context;
  *function = reinterpret_cast<Function>(found);
  return code;
}
Result cuFuncGetAttribute(int* value, int attribute, Function function) {
  *value = attribute == kFunctionMaxThreadsPerBlock      ? 1024
           : attribute == kFunctionMaxDynamicSharedBytes ? Of(function)->max_dynamic_bytes
                                                         : 0;
  return 0;
}
Result cuFuncSetAttribute(Function function, int attribute, int value) {
  if (attribute != kFunctionMaxDynamicSharedBytes ||
      value > FakeDriver::Get().Attribute(kMaxSharedMemoryPerBlockOptin)) {
    return kInvalidValue;
  }
  Of(function)->max_dynamic_bytes = value;
  return 0;
}

Result cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  FakeDriver& driver = FakeDriver::Get();
  return driver.sticky() != 0 ? driver.sticky() : driver.Allocate(bytes, pointer);
}
Result cuMemFree_v2(DevicePointer pointer) { return FakeDriver::Get().Free(pointer); }
Result cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return Copy(reinterpret_cast<void*>(to), from, to, bytes);
}
Result cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return Copy(to, reinterpret_cast<const void*>(from), from, bytes);
}
Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, Stream stream) {
  return RunOrRecord(stream, [=] { return cuMemcpyHtoD_v2(to, from, bytes); });
}
Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, Stream stream) {
  return RunOrRecord(stream, [=] { return cuMemcpyDtoH_v2(to, from, bytes); });
}
Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, Stream stream) {
  return RunOrRecord(stream, [=] {
    if (!FakeDriver::Get().Holds(from, bytes)) return kInvalidValue;
    return Copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), to, bytes);
  });
}
Result cuMemsetD8_v2(DevicePointer to, unsigned char value, size_t bytes) {
  FakeDriver& driver = FakeDriver::Get();
  if (driver.sticky() != 0) return driver.sticky();
  if (!driver.Holds(to, bytes)) return kIllegalAddress;
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}

Result cuStreamCreate(Stream* stream, unsigned) {
  *stream = new StreamObject;
  return 0;
}
Result cuStreamDestroy_v2(Stream stream) {
  delete stream;
  return 0;
}
Result cuStreamSynchronize(Stream) { return FakeDriver::Get().sticky(); }
Result cuStreamBeginCapture_v2(Stream stream, int) {
  if (FakeDriver::Get().faults.Has("no_graphs")) return kNotSupported;
  if (stream == nullptr || stream->recorded != nullptr) return kInvalidValue;
  stream->recorded = new GraphObject;
  return 0;
}
Result cuStreamEndCapture(Stream stream, Graph* graph) {
  *graph = std::exchange(stream->recorded, nullptr);
  return *graph == nullptr ? kInvalidValue : 0;
}
Result cuGraphDestroy(Graph graph) {
  delete graph;
  return 0;
}
Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
  *exec = new GraphExecObject{*graph};
  return 0;
}
Result cuGraphLaunch(GraphExec exec, Stream) {
  for (const auto& command : exec->commands) {
    if (const Result code = command(); code != 0) return code;
  }
  return 0;
}
Result cuGraphExecDestroy(GraphExec exec) {
  delete exec;
  return 0;
}
Result cuEventCreate(Event* event, unsigned) {
  *event = new EventObject;
  return 0;
}
Result cuEventRecord(Event event, Stream) {
  event->at = std::chrono::steady_clock::now();
  return FakeDriver::Get().sticky();
}
Result cuEventElapsedTime(float* milliseconds, Event begin, Event end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
  return FakeDriver::Get().sticky();
}
Result cuEventDestroy_v2(Event event) {
  delete event;
  return 0;
}
Result cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      Stream stream, void** parameters, void**) {
  if (Of(function)->context != current_context) return kInvalidHandle;
  FakeLaunch launch(*Of(function),
                    {.grid = {grid_x, grid_y, grid_z},
                     .block = {block_x, block_y, block_z},
                     .dynamic_shared_bytes = shared_bytes},
                    parameters);
  return RunOrRecord(
      stream, [launch = std::move(launch)]() mutable { return FakeDriver::Get().Launch(launch); });
}

}  // extern "C"

#define HONE_SAME_TYPE(name, symbol, ...) \
  static_assert(std::is_same_v<decltype(&symbol), Result (*)(__VA_ARGS__)>, #symbol);
HONE_CUDA_FUNCTIONS(HONE_SAME_TYPE)
#undef HONE_SAME_TYPE

// What only client/python/hone/_cuda.py calls.
extern "C" {

// The context of a device that all libraries of a process share.
Result cuDevicePrimaryCtxRetain(Context* context, DeviceNumber device) {
  int count = 0;
  cuDeviceGetCount(&count);
  if (device < 0 || device >= count) return kInvalidDevice;
  static auto* const primary = new std::vector<ContextObject>(static_cast<size_t>(count));
  *context = &(*primary)[static_cast<size_t>(device)];
  return 0;
}
Result cuMemAllocAsync(DevicePointer* pointer, size_t bytes, Stream) {
  return cuMemAlloc_v2(pointer, bytes);
}
Result cuMemFreeAsync(DevicePointer pointer, Stream stream) {
  return RunOrRecord(stream, [=] { return cuMemFree_v2(pointer); });
}

}  // extern "C"
